"""What is true of a method, of the model its claim is made in and of a guarantee: a row each.

Nothing else in microveil asks for a method by name: a new one is a row here, its functions in
`core.sensitivity` or `core.clusters`, its name in `core.choices`, its words in
`show.words.method_words`, and tests.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from microveil.core.choices import GuaranteeName, MethodName
from microveil.core.clusters import ClusterSummary
from microveil.core.sensitivity import (
    DomainSteps,
    Reaches,
    cluster_reaches,
    global_reaches,
    local_reaches,
    reclustered_reaches,
)
from microveil.types import Integers

Reach = Callable[[ClusterSummary, DomainSteps], Reaches]


@dataclass(frozen=True)
class Guarantee:
    """What ε covers.

    Attributes
    ----------
    level
        The level at which ε is enforced.
    allows_chosen_clusters
        Whether the data may decide where clusters begin and end.
    """

    name: GuaranteeName
    level: Literal[1, 2]
    allows_chosen_clusters: bool


GUARANTEES: dict[GuaranteeName, Guarantee] = {
    row.name: row
    for row in (
        Guarantee(
            "fixed-clusters",
            level=1,
            allows_chosen_clusters=True,
        ),
        Guarantee(
            "re-clustered",
            level=2,
            allows_chosen_clusters=False,
        ),
    )
}


@dataclass(frozen=True)
class Promise:
    """The model in which a claim is made, and what follows from it.

    Attributes
    ----------
    fixes_scales
        Whether it holds noise scales fixed as they were computed from the table, and so compares
        the table with its neighbours only.
    survives_data
        Whether the claim stands when clusters or the domain follow the data.
    publishes_agreement
        Whether a category that no record can change is published as it is.
    covers_persons_reclustered
        Whether re-clustering is covered for a person with several records.
    """

    name: Literal["DP", "iDP"]
    fixes_scales: bool
    survives_data: bool
    publishes_agreement: bool
    covers_persons_reclustered: bool


_DP = Promise(
    "DP",
    fixes_scales=False,
    survives_data=False,
    publishes_agreement=False,
    covers_persons_reclustered=True,
)
_IDP = Promise(
    "iDP",
    fixes_scales=True,
    survives_data=True,
    publishes_agreement=True,
    covers_persons_reclustered=False,
)


@dataclass(frozen=True)
class Method:
    """What tells one method from another.

    Attributes
    ----------
    centroid
        The centroids of summaries, after their sums have moved.
    calibration, fixed, reclustered
        The reaches that set the published noise, those of this table with fixed clusters, and
        those when clusters are formed again.
    reclustered_factor
        How many times ε the published noise loses at most when clusters are formed again, for any
        table of the domain; None: once per cluster.
    without_noise
        The guarantees under which a cluster that no record can move is published without noise.
    reclustered_covers_fixed
        Whether the noise of the re-clustered guarantee also covers fixed clusters.
    covers_shared_clusters
        Whether it covers several records of a person that share a cluster.
    clusters_units
        Whether its clusters are of units where a plan has them, and its noise covers all records of
        one, so that ε need not be divided by how many there can be.
    """

    name: MethodName
    promise: Promise
    clustered: bool
    least_k: int
    needs_domain: bool
    centroid: Callable[[ClusterSummary, Integers | int], Integers]
    calibration: Reach
    fixed: Reach
    reclustered: Reach
    reclustered_factor: int | None
    without_noise: frozenset[GuaranteeName]
    reclustered_covers_fixed: bool
    covers_shared_clusters: bool
    clusters_units: bool

    @property
    def pulls_in(self) -> bool:
        """Whether the paper's pre-processing pulls in a cluster's extremes."""
        return self.centroid is ClusterSummary.winsorised_mean

    @property
    def noise_covers_reclustering(self) -> bool:
        """Whether the published noise covers re-clustering, but for the rounding of centroids."""
        return self.reclustered_factor == 1


METHODS: dict[MethodName, Method] = {
    row.name: row
    for row in (  # from the least noise to the most, which is how people are offered them
        Method(
            "iDP-CBLS",
            _IDP,
            clustered=True,
            least_k=3,
            needs_domain=False,
            centroid=ClusterSummary.winsorised_mean,
            calibration=cluster_reaches,
            fixed=cluster_reaches,
            reclustered=cluster_reaches,
            reclustered_factor=None,
            without_noise=frozenset({"fixed-clusters", "re-clustered"}),
            reclustered_covers_fixed=True,
            covers_shared_clusters=False,
            clusters_units=True,
        ),
        Method(
            "iDP-LS",
            _IDP,
            clustered=True,
            least_k=1,
            needs_domain=True,
            centroid=ClusterSummary.mean,
            calibration=local_reaches,
            fixed=local_reaches,
            reclustered=reclustered_reaches,
            reclustered_factor=2,
            without_noise=frozenset({"re-clustered"}),
            reclustered_covers_fixed=False,  # it follows the gaps, not the way across the domain
            covers_shared_clusters=True,
            clusters_units=False,
        ),
        Method(
            "DP-UM",
            _DP,
            clustered=True,
            least_k=1,
            needs_domain=True,
            centroid=ClusterSummary.mean,
            calibration=global_reaches,
            fixed=local_reaches,
            reclustered=reclustered_reaches,
            reclustered_factor=1,
            without_noise=frozenset(),
            reclustered_covers_fixed=True,
            covers_shared_clusters=True,
            clusters_units=False,
        ),
        Method(
            "DP",
            _DP,
            clustered=False,
            least_k=1,
            needs_domain=True,
            centroid=ClusterSummary.mean,
            calibration=global_reaches,
            fixed=local_reaches,
            reclustered=local_reaches,
            reclustered_factor=1,
            without_noise=frozenset(),
            reclustered_covers_fixed=True,
            covers_shared_clusters=True,
            clusters_units=False,
        ),
    )
}


def methods_that(fit: Callable[[Method], bool]) -> str:
    """Name the methods that fit, for a message.

    Examples
    --------
    >>> methods_that(lambda method: method.needs_domain)
    'iDP-LS, DP-UM or DP'
    """
    *most, last = (method.name for method in METHODS.values() if fit(method))
    return f"{', '.join(most)} or {last}" if most else last
