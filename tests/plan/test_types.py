"""What a type checker says of plans: each mistake is reported, and no good use is."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
HEAD = """\
from datetime import date
from pathlib import Path

from microveil import Confidential, Derived, Group, Identifier, Kept, Plan, Scenario

AGE = {"age": "confidential"}
PLAN = Plan(epsilon=1.0, attributes=AGE)
"""
GOOD = [
    "Plan(epsilon=1, k='auto', method='iDP-LS', attributes={'age': Confidential(lower=0)})",
    "Plan(epsilon=1, attributes={'a': 'kept', 'b': Confidential(), 'c': Derived(expression='b')})",
    "Plan(epsilon=1.0, groups=[['a', 'b'], Group(attributes=['c'], anonymity=3)], attributes=AGE)",
    "Plan(epsilon=1.0, groups=(Group(attributes=['a'], pooling='average'),), attributes=AGE)",
    "Plan(epsilon=1.0, attributes={'age': {'role': 'confidential', 'lower': 0}})",
    "Plan(epsilon=1.0, attributes=dict.fromkeys(['a', 'b'], 'confidential'))",
    "Plan.published(epsilon=1.0, attributes=AGE, k=5).replace(epsilon=2.0, missing='keep')",
    "Plan.recommended(epsilon=1.0, attributes=AGE, anonymity=5, together=[['a', 'b']])",
    "PLAN.replace(attributes={**PLAN.attributes, 'name': Identifier(), 'region': Kept()})",
    "Confidential(lower=date(2000, 1, 1), upper=date(2025, 1, 1), time_step='day', budget_share=2)",
    "Plan(epsilon=1.0, trim=0.2, attributes={'age': Confidential(trim=0.1)})",
    "Confidential(kind='ordinal', categories=['low', 'high'], method=None, k=None)",
    "Confidential(kind='nominal', categories=(1, 2, 3), decimals=None)",
    "Confidential(kind='nominal', taxonomy={'health': ['nurse'], 'craft': {'wood': ['joiner']}})",
    "Confidential(kind='nominal', taxonomy='jobs.csv')",
    "Confidential(kind='nominal', taxonomy=Path('jobs.csv'))",
    "Group(attributes=('a', 'b'))",
    "Plan(epsilon=1.0, scenarios=[Scenario(known=['a']), Scenario(people=0.5)], attributes=AGE)",
]
MISTAKES = [
    "Plan(epsilom=1.0, attributes=AGE)",
    "Plan(epsilon=1.0)",
    "Plan(attributes=AGE)",
    "Plan(epsilon='1', attributes=AGE)",
    "Plan(epsilon=1.0, attributes='age')",
    "Plan(epsilon=1.0, method='iDP', attributes=AGE)",
    "Plan(epsilon=1.0, k='automatic', attributes=AGE)",
    "Plan(epsilon=1.0, missing='ignore', attributes=AGE)",
    "Plan(epsilon=1.0, guarantee='fixed', attributes=AGE)",
    "Plan(epsilon=1.0, groups=[{'attribute': ['a']}], attributes=AGE)",
    "Plan(1.0, attributes=AGE)",
    "Plan.published(epsilom=1.0, attributes=AGE)",
    "Plan.recommended(epsilon=1.0)",
    "PLAN.replace(epsilom=2.0)",
    "PLAN.replace(partition='none')",
    "Plan(epsilon=1.0, trim='0.2', attributes=AGE)",
    "Confidential(trim='none')",
    "Plan(epsilon=1.0, scenarios=[Scenario(knows=['a'])], attributes=AGE)",
    "Plan(epsilon=1.0, scenarios=[{'known': ['a']}], attributes=AGE)",
    "Plan(epsilon=1.0, within='age', attributes=AGE)",
    "Plan.published(attributes=AGE)",
    "Confidential(low=0)",
    "Confidential(0, 120)",
    "Confidential(kind='number')",
    "Confidential(k='many')",
    "Confidential(lower='0')",
    "Confidential(categories=[1.5, 2.5])",
    "Confidential(time_step='week')",
    "Group(attribute=['a'])",
    "Group()",
    "Group(attributes='age')",
    "Group(attributes=['a'], k='auto')",
    "Derived(expr='a + b')",
    "Derived()",
    "Identifier(name='x')",
    "Kept(role='confidential')",
]


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> set[int]:
    """The lines in which mypy, as strict as here, finds something wrong."""
    file = tmp_path_factory.mktemp("types") / "plans.py"
    file.write_text("\n".join([HEAD, *GOOD, *MISTAKES, ""]), encoding="utf-8")
    checked = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "mypy", "--no-error-summary", file],
        cwd=ROOT, env={**os.environ, "MYPYPATH": str(ROOT / "src")},
        capture_output=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert not checked.stderr
    errors = [line for line in checked.stdout.splitlines() if ": error: " in line]
    found = [
        re.search(rf"{file.name}:(\d+): error: ", line) for line in errors
    ]  # mypy may remember
    assert all(found), checked.stdout  # another directory, where it found the same
    return {int(match[1]) for match in found if match}


def test_each_mistake_is_reported_and_nothing_else(reported: set[int]) -> None:
    lines = dict(enumerate([*HEAD.splitlines(), "", *GOOD, *MISTAKES], start=1))
    assert [line for number, line in lines.items() if number in reported] == MISTAKES
