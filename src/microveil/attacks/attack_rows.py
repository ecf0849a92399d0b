"""The registry of attacks: a row says what an attack does, what it needs, its limits and its paper.

`evaluate`, the verdict, the report, the page, the benchmark and the documentation read it. A new
attack is one module, one row here and one test.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from microveil.attacks.inference import by_nearest_row
from microveil.attacks.informed import informed_figure
from microveil.attacks.intervals import interval_disclosure
from microveil.attacks.joint_inference import by_joint_cluster
from microveil.attacks.kept import kept_linkage_figure
from microveil.attacks.linkability import linkability_by_parts
from microveil.attacks.membership import membership_inference
from microveil.attacks.nearest import nearest_figure, nearest_linkage
from microveil.attacks.neighbour import neighbour_reconstruction
from microveil.attacks.one_to_one import one_to_one_figure, one_to_one_linkage
from microveil.attacks.own_values import own_values_figure
from microveil.attacks.singling_out import singled_out
from microveil.attacks.structure import structure_figure, structure_linkage
from microveil.attacks.subject import Controlled, LinkageWithControl, OverAttributes, Subject
from microveil.attacks.whole_units import unit_linkage_figure
from microveil.compare.asked import Asked
from microveil.compare.examined import Examined
from microveil.compare.figures import Figure, GradeLimits, Measure, NotComputed
from microveil.plan.scenarios import Scenario

LOW_LINKAGE, MEDIUM_LINKAGE = LINKAGE_LIMITS = (0.05, 0.1)
"""Risk is low, and a release passes, up to the first gain over chance; then medium."""

LOW_GAIN, MOST_GAIN = GAIN_LIMITS = (0.1, 0.33)
"""Gains over a control: risk is low up to the first, and medium up to the second, where a release
passes with a word on the attribute.

A crowd of fifty people gives away up to a sixth of what nobody else could tell of an attribute that
is evenly split; one of ten, whose values are known as a set, gives away up to a half, and more
where people of a crowd are alike.
"""

OnRelease = Callable[[Examined, Scenario, Asked], Figure | NotComputed | None]
WithControl = Callable[[Subject, int], Controlled | None]
Question = Literal["Singling out", "Linkability", "Inference"]


@dataclass(frozen=True)
class Attack(Measure):
    """An attack.

    Attributes
    ----------
    on_release
        Makes it on a release in a scenario; None where it is not made there, or finds nothing to
        attack.
    with_control
        Makes it on people and a way to release any of them, and says what its control achieves;
        None where it has no control.
    in_scenarios
        Whether it is made in every scenario, and not once.
    question
        Which of the three questions of WP216 it answers on halves of the people; None if none.
    """

    on_release: OnRelease | None = None
    with_control: WithControl | None = None
    in_scenarios: bool = False
    question: Question | None = None


_GIOMI = (
    'Giomi, Boenisch, Wehmeyer and Tasnádi (2022), "A unified framework for quantifying privacy '
    'risk in synthetic data", PoPETs 2023(2)'
)
_LIMITS: GradeLimits = LINKAGE_LIMITS
_GAINS: GradeLimits = GAIN_LIMITS

ATTACKS = {
    row.id: row
    for row in (
        Attack(
            "linkage.nearest", "nearest linkage",
            "Takes the nearest released row for each person.",
            "risk", "scenario", needs=("paired",), limits=_LIMITS, in_scenarios=True,
            paper='Domingo-Ferrer and Torra (2001), "A quantitative comparison of disclosure '
            'control methods for microdata", in Confidentiality, Disclosure and Data Access',
            on_release=nearest_figure, with_control=LinkageWithControl(nearest_linkage),
        ),
        Attack(
            "linkage.one_to_one", "one-to-one linkage",
            "Gives every person a released row of their own, at the least total distance.",
            "risk", "scenario", needs=("paired",), limits=_LIMITS, in_scenarios=True,
            paper='Herranz, Nin, Rodríguez and Tassa (2015), "Revisiting distance-based record '
            'linkage for privacy-preserving release of statistical datasets", Data & Knowledge '
            "Engineering 100",
            on_release=one_to_one_figure, with_control=LinkageWithControl(one_to_one_linkage),
        ),
        Attack(
            "linkage.structure", "structure linkage",
            "Matches rows with people by who shares masked values with whom, at any noise.",
            "risk", "scenario", needs=("paired",), limits=_LIMITS, in_scenarios=True,
            paper='after Narayanan and Shmatikov (2009), "De-anonymizing social networks", IEEE '
            "S&P",
            on_release=structure_figure, with_control=LinkageWithControl(structure_linkage),
        ),
        Attack(
            "linkage.informed", "informed linkage",
            "Counts who cannot be told apart by all but the random draws: joint clusters, kept "
            "columns, numbers of records. Exact.",
            "risk", "table", needs=("paired", "plan"), limits=_LIMITS, on_release=informed_figure,
            paper='after Soria-Comas and Domingo-Ferrer (2012), "Probabilistic k-anonymity through '
            'microaggregation and data swapping", FUZZ-IEEE',
        ),
        Attack(
            "linkage.own_values", "own values reunited",
            "Looks for rows that carry several masked values of one person, beyond chance.",
            "risk", "table", needs=("paired", "plan"), limits=_LIMITS, on_release=own_values_figure,
        ),
        Attack(
            "risk.linkage_with_kept", "linkage with kept columns",
            "Takes the nearest row among those with the person's kept columns.",
            "risk", "columns", needs=("paired", "plan"), limits=_LIMITS,
            on_release=kept_linkage_figure,
        ),
        Attack(
            "risk.linkage_of_units", "linkage of whole units",
            "Looks for a unit by all of its records at once.",
            "risk", "table", needs=("paired", "plan"), limits=_LIMITS,
            on_release=unit_linkage_figure,
        ),
        Attack(
            "risk.interval_disclosure", "interval disclosure",
            "Reads a number off between the masked values beside the person's own.",
            "risk", "table", needs=("control",),
            paper='Domingo-Ferrer, Mateo-Sanz, Oganian and Torres (2002), "On the security of '
            'microaggregation with individual ranking: analytical attacks", IJUFKS 10(5)',
            with_control=interval_disclosure,
        ),
        Attack(
            "risk.inference", "attribute inference",
            "Guesses each attribute of a person from all others, by the nearest released row.",
            "risk", "attribute", needs=("paired", "plan"), limits=_GAINS, paper=_GIOMI,
            with_control=OverAttributes(by_nearest_row), question="Inference",
        ),
        Attack(
            "risk.joint_inference", "inference by joint cluster",
            "Guesses each attribute of a person from all others: the likeliest value among those "
            "of the joint cluster that the others lead to.",
            "risk", "attribute", needs=("paired", "plan"), limits=_GAINS,
            with_control=OverAttributes(by_joint_cluster), question="Inference",
        ),
        Attack(
            "risk.singling_out", "singling out",
            "Finds conditions that one person alone meets, by conditions that one row meets.",
            "risk", "table", needs=("paired", "plan"), limits=_GAINS,
            paper=f'{_GIOMI}; after Cohen and Nissim (2020), "Towards formalizing the GDPR\'s '
            'notion of singling out", PNAS 117(15)',
            with_control=singled_out, question="Singling out",
        ),
        Attack(
            "risk.linkability", "linkability",
            "Links what two sources know of a person: both lead to the same released row.",
            "risk", "table", needs=("paired", "plan"), limits=_GAINS, paper=_GIOMI,
            with_control=linkability_by_parts, question="Linkability",
        ),
        Attack(
            "risk.membership", "membership inference",
            "Tells whether a person is in the table, by releases with and without the person.",
            "risk", "table", needs=("control",),
            paper='Carlini, Chien, Nasr, Song, Terzis and Tramèr (2022), "Membership inference '
            'attacks from first principles", IEEE S&P; on releases of tables Stadler, Oprisanu and '
            'Troncoso (2022), "Synthetic data: anonymisation groundhog day", USENIX Security',
            with_control=membership_inference,
        ),
        Attack(
            "risk.neighbour", "neighbour reconstruction",
            "Tells two values of a person apart, knowing everyone else and whose row is whose.",
            "risk", "table", needs=("control",),
            paper='Balle, Cherubin and Hayes (2022), "Reconstructing training data with informed '
            'adversaries", IEEE S&P, with two candidates',
            with_control=neighbour_reconstruction,
        ),
    )
}  # fmt: skip
"""Every attack by its id; the quickest first."""

LINKAGE = tuple(row.id for row in ATTACKS.values() if row.in_scenarios)
"""The attacks that are made in every scenario."""

CONTROLLED = tuple(row for row in ATTACKS.values() if row.with_control)
"""The attacks that say what their control achieves: those of the benchmark."""

INFORMED = ATTACKS["risk.neighbour"].label
"""The attack of someone who knows every record but one; all others know people's values."""

QUESTIONS = tuple(row for row in ATTACKS.values() if row.question)
"""The attacks on halves of the people, with the other half as control."""

GAINS = tuple(row.id for row in QUESTIONS)
"""Their ids."""

GRADED = tuple(row.id for row in ATTACKS.values() if row.limits and not row.question)
"""The attacks that look for people's rows: each of them alone can keep a release from passing."""
