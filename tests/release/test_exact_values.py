"""An attack: true birth dates and amounts that few people have, by default settings."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import polars as pl
import pytest

from microveil import Confidential, Plan, protect, verdict
from microveil.core.choices import MethodName, Partition
from microveil.errors import noted
from microveil.types import Integers

ENOUGH = 10


class Case(NamedTuple):
    """A table, its unit, and the attributes that few share values of."""

    table: pl.DataFrame
    unit: str | None
    per_unit: tuple[str, ...]
    looked_for: tuple[str, ...]

    @property
    def plan(self) -> Plan:
        """The recommended plan, not pooled, so that it shows whose value a masked one is."""
        roles = {
            name: "identifier" if name == self.unit
            else Confidential(per_unit=name in self.per_unit)
            for name in self.table.columns
        }  # fmt: skip
        return Plan(epsilon=1.0, unit=self.unit, anonymity=0, attributes=roles)


def hospital() -> Case:
    """Make 5,000 patients, born within ten years, with 20,000 visits."""
    random = np.random.default_rng(1)
    patient = np.repeat(np.arange(5_000), np.minimum(random.geometric(0.25, 5_000), 12))
    born = np.datetime64("1990-01-01") + random.integers(0, 3_652, 5_000)
    table = pl.DataFrame({
        "patient": [f"p{one}" for one in patient],
        "born": born[patient],
        "bill": np.rint(np.exp(7 + 0.6 * random.normal(size=len(patient)))).astype(int),
    })  # fmt: skip
    return Case(table, "patient", ("born",), ("born", "bill"))


def survey() -> Case:
    """Make persons of 4,000 households, with the rent of each household."""
    random = np.random.default_rng(2)
    home = np.repeat(np.arange(4_000), 1 + random.poisson(1.4, 4_000))
    rent = np.rint(np.exp(6 + 0.4 * random.normal(size=4_000))).astype(int)
    table = pl.DataFrame({
        "home": [f"h{one}" for one in home],
        "rent": rent[home],
        "income": np.rint(np.exp(7 + 0.6 * random.normal(size=len(home)))).astype(int),
    })  # fmt: skip
    return Case(table, "home", ("rent",), ("rent", "income"))


def plain() -> Case:
    """Make 5,000 persons, a record each."""
    table = hospital().table.group_by("patient", maintain_order=True).first().drop("patient")
    return Case(table, None, (), ("born", "bill"))


def numbers(column: pl.Series) -> Integers:
    """Return whole numbers, or days."""
    return column.to_physical().cast(pl.Int64).to_numpy()


def exact(case: Case, plan: Plan, attribute: str) -> int:
    """Count clusters without noise whose value fewer than ten people have, and so in the table."""
    release = protect(case.table, plan, seed=1)
    owner = case.table[case.unit] if case.unit else pl.Series(range(len(case.table)))
    people = pl.DataFrame({"value": numbers(case.table[attribute]), "owner": owner})
    having = people.unique().group_by("value").len("people")
    bare = release.detail.clusters.filter(attribute=attribute, scale=0.0)
    values = bare.select(value=pl.col("centroid").round().cast(pl.Int64))
    found = values.join(having, "value", "left")
    assert found["people"].null_count() == 0  # what a cluster agrees on somebody has
    return int((found["people"] < ENOUGH).sum())


def kept(case: Case, plan: Plan, attribute: str) -> tuple[int, float]:
    """Count people who keep a value that few have, and a control: who get the next one to it.

    Noise that tells nothing more than how large it is puts nearly as many on either neighbour.
    """
    owner = case.unit or "row"
    table = case.table.with_row_index("row")
    release = protect(case.table, plan, seed=1)
    new = np.empty(len(table), dtype=np.int64)
    new[release.rows.positions] = numbers(release.data[attribute])
    once = table.select(owner, own=numbers(case.table[attribute]), new=new)
    people = once.select("own", owner).unique().group_by("own").len("people")
    few = once.unique().join(people, "own").filter(pl.col("people") < ENOUGH)
    moved = (few["new"] - few["own"]).to_numpy()
    return int(np.sum(moved == 0)), float(np.sum(np.abs(moved) == 1)) / 2


@pytest.mark.parametrize("make", [hospital, survey, plain])
def test_nothing_that_few_people_have_goes_out_without_noise(make: Callable[[], Case]) -> None:
    case = make()
    for attribute in case.looked_for:
        assert exact(case, case.plan, attribute) == 0
        stayed, control = kept(case, case.plan, attribute)
        assert stayed <= 1.3 * control + 5 * np.sqrt(control) + 5
    before = case.plan.replace(exact_from=0)
    found = [exact(case, before, attribute) for attribute in case.looked_for]
    assert sum(found) > 100  # so it was
    stayed, control = kept(case, before, case.looked_for[int(np.argmax(found))])
    assert stayed > 1.3 * control + 5 * np.sqrt(control) + 5


def test_the_verdict_counts_what_few_people_have() -> None:
    case = plain()
    few = case.table.head(1_000)
    on = case.plan.replace(anonymity=10)
    off = on.replace(exact_from=0)
    safe, found = (verdict(few, protect(few, plan, seed=1), seed=1) for plan in (on, off))
    of_safe, of_found = (
        [figure.value for figure in one.figures if figure.measure == "risk.exact_values"]
        for one in (safe, found)
    )
    assert of_safe == [0, 0]
    assert sum(of_found) > 0
    assert not found.passed
    assert "carry no noise although fewer than 10 people have them" in str(found).replace(
        "\n  ", " "
    )


def test_the_certificate_says_who_must_have_a_value_and_what_chance_does() -> None:
    case = plain()
    few = case.table.head(300)
    told = "\n".join(protect(few, case.plan).certificate.reading["What is not protected"])
    assert "is published without noise, if at least 10 people have it: born, bill." in told
    assert "may coincide with a true one" in told
    assert "in up to 22.2% of all releases by rounding" in told  # 1 − exp(−0.5/2)
    published = protect(few, case.plan.replace(exact_from=0)).certificate
    assert "people have it" not in "\n".join(published.reading["What is not protected"])
    assert published.attributes[0].exact_from == 0


@pytest.mark.parametrize(
    ("partition", "method"),
    [("fixed", "DP-UM"), ("fixed", "iDP-CBLS"), ("noise-optimal", "iDP-CBLS"),
     ("least-squares", "iDP-LS")],
)  # fmt: skip
def test_decimals_far_coarser_than_the_values(partition: Partition, method: MethodName) -> None:
    """A rounding step may be more steps of the noise grid than 64 bits count."""
    table = pl.DataFrame({"x": [i * 3e-11 for i in range(34)]})
    plan = Plan.published(
        epsilon=1e6, k=4, method=method, exact_from=10, partition=partition,
        domain_from_data=True, attributes={"x": Confidential(decimals=0)},
    )  # fmt: skip
    with noted():
        assert set(protect(table, plan, seed=1).data["x"]) == {0.0}
