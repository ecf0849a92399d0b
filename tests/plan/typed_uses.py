"""What the type checker says of plans: it is run over this file with everything else.

Lines without a comment are good uses, which it must not report. A line with a comment is a mistake
that it must report: if it did not, the comment would be unused, which is an error of its own.
"""

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from microveil import Confidential, Derived, Group, Identifier, Kept, Plan, Scenario, Use

if TYPE_CHECKING:
    AGE = {"age": "confidential"}
    PLAN = Plan(epsilon=1.0, attributes=AGE)

    Plan(epsilon=1, k="auto", method="iDP-LS", attributes={"age": Confidential(lower=0)})
    Plan(epsilon=1, attributes={"a": "kept", "b": Confidential(), "c": Derived(expression="b")})
    Plan(epsilon=1.0, groups=[["a", "b"], Group(attributes=["c"], anonymity=3)], attributes=AGE)
    Plan(epsilon=1.0, groups=(Group(attributes=["a"], pooling="average"),), attributes=AGE)
    Plan(epsilon=1.0, attributes={"age": {"role": "confidential", "lower": 0}})
    Plan(epsilon=1.0, attributes=dict.fromkeys(["a", "b"], "confidential"))
    Plan.published(epsilon=1.0, attributes=AGE, k=5).replace(epsilon=2.0, missing="keep")
    Plan(epsilon=1.0, attributes=AGE, anonymity=5)
    PLAN.replace(attributes={**PLAN.attributes, "name": Identifier(), "region": Kept()})
    Confidential(lower=date(2000, 1, 1), upper=date(2025, 1, 1), time_step="day", budget_share=2)
    Plan(epsilon=1.0, trim=0.2, attributes={"age": Confidential(trim=0.1)})
    Confidential(kind="ordinal", categories=["low", "high"], method=None, k=None)
    Confidential(kind="nominal", categories=(1, 2, 3), decimals=None)
    Confidential(kind="nominal", taxonomy={"health": ["nurse"], "craft": {"wood": ["joiner"]}})
    Confidential(kind="nominal", taxonomy="jobs.csv")
    Confidential(kind="nominal", taxonomy=Path("jobs.csv"))
    Group(attributes=("a", "b"))
    Plan(epsilon=1.0, scenarios=[Scenario(known=["a"]), Scenario(people=0.5)], attributes=AGE)
    Plan(epsilon=1.0, uses=["mean age", Use.mean("age", by="b", bands={"b": 5})], attributes=AGE)

    Plan(epsilom=1.0, attributes=AGE)  # type: ignore[call-arg]
    Plan(epsilon=1.0)  # type: ignore[call-arg]
    Plan(attributes=AGE)  # type: ignore[call-arg]
    Plan(epsilon="1", attributes=AGE)  # type: ignore[arg-type]
    Plan(epsilon=1.0, attributes="age")  # type: ignore[arg-type]
    Plan(epsilon=1.0, method="iDP", attributes=AGE)  # type: ignore[arg-type]
    Plan(epsilon=1.0, k="automatic", attributes=AGE)  # type: ignore[arg-type]
    Plan(epsilon=1.0, missing="ignore", attributes=AGE)  # type: ignore[arg-type]
    Plan(epsilon=1.0, guarantee="fixed", attributes=AGE)  # type: ignore[arg-type]
    Plan(epsilon=1.0, groups=[{"attribute": ["a"]}], attributes=AGE)  # type: ignore[list-item]
    Plan(1.0, attributes=AGE)  # type: ignore[call-arg]
    Plan.published(epsilom=1.0, attributes=AGE)  # type: ignore[call-arg]
    Plan(epsilon=1.0)  # type: ignore[call-arg]
    PLAN.replace(epsilom=2.0)  # type: ignore[call-arg]
    PLAN.replace(partition="none")  # type: ignore[arg-type]
    Plan(epsilon=1.0, trim="0.2", attributes=AGE)  # type: ignore[arg-type]
    Confidential(trim="none")  # type: ignore[arg-type]
    Plan(epsilon=1.0, uses=[3], attributes=AGE)  # type: ignore[list-item]
    Plan(epsilon=1.0, scenarios=[Scenario(knows=["a"])], attributes=AGE)  # type: ignore[call-arg]
    Plan(epsilon=1.0, scenarios=[{"known": ["a"]}], attributes=AGE)  # type: ignore[list-item]
    Plan(epsilon=1.0, within="age", attributes=AGE)  # type: ignore[arg-type]
    Plan.published(attributes=AGE)  # type: ignore[call-arg]
    Confidential(low=0)  # type: ignore[call-arg]
    Confidential(0, 120)  # type: ignore[arg-type, call-arg]
    Confidential(kind="number")  # type: ignore[arg-type]
    Confidential(k="many")  # type: ignore[arg-type]
    Confidential(lower="0")  # type: ignore[arg-type]
    Confidential(categories=[1.5, 2.5])  # type: ignore[list-item]
    Confidential(time_step="week")  # type: ignore[arg-type]
    Group(attribute=["a"])  # type: ignore[call-arg]
    Group()  # type: ignore[call-arg]
    Group(attributes="age")  # type: ignore[arg-type]
    Group(attributes=["a"], k="auto")  # type: ignore[call-arg]
    Derived(expr="a + b")  # type: ignore[call-arg]
    Derived()  # type: ignore[call-arg]
    Identifier(name="x")  # type: ignore[call-arg]
    Kept(role="confidential")  # type: ignore[arg-type]
