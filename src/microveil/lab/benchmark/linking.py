"""Three intruders who know everybody's original values and look for their rows."""

from collections.abc import Callable

from microveil.attacks import linkage
from microveil.attacks.linkage import Linked
from microveil.lab.benchmark.subject import Outcome, Subject


def nearest_linkage(subject: Subject, seed: int) -> Outcome:
    """Take the nearest released row for each person; the control is a row at random.

    Domingo-Ferrer and Torra (2001), "A quantitative comparison of disclosure control methods for
    microdata", in Confidentiality, Disclosure and Data Access.
    """
    return _linked("nearest linkage", linkage.nearest, subject, seed)


def one_to_one_linkage(subject: Subject, seed: int) -> Outcome:
    """Give everybody a row of their own at the least total distance; the control as above.

    Herranz, Nin, Rodríguez and Tassa (2015), "Revisiting distance-based record linkage for privacy-
    preserving release of statistical datasets", Data & Knowledge Engineering 100.
    """
    return _linked("one-to-one linkage", linkage.one_to_one, subject, seed)


def structure_linkage(subject: Subject, seed: int) -> Outcome:
    """Match rows by who shares masked values with whom; the control as above.

    After Narayanan and Shmatikov (2009), "De-anonymizing social networks", IEEE S&P: noise moves a
    shared value for all who share it, so the structure stays; see `evaluation.linkage.structure`.
    """
    return _linked("structure linkage", linkage.structure, subject, seed)


def _linked(name: str, attack: Callable[..., Linked], subject: Subject, seed: int) -> Outcome:
    scene = subject.whole(seed)
    found = attack(scene.people, scene.rows, nominal=scene.nominal, seed=seed)
    return Outcome(name, found.share, found.chance, found.attacked)
