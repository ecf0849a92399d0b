"""What is true of a method, of the model its claim is made in and of a guarantee: a row each.

Nothing else in microveil asks for a method by name: a new one is a row here, its functions in
`core.sensitivity` or `core.clusters`, its name in `core.choices`, and tests.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from microveil.core.choices import GuaranteeName, MethodName, Post
from microveil.core.clusters import ClusterSummary
from microveil.core.sensitivity import (
    DomainUnits,
    Reaches,
    cluster_reaches,
    global_reaches,
    local_reaches,
    reclustered_reaches,
)
from microveil.types import Integers

Reach = Callable[[ClusterSummary, DomainUnits], Reaches]


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
    caveat
        What a statement of the guarantee adds.
    survives_data
        Whether the claim stands when clusters or the domain follow the data.
    if_domain_read, if_categories_read
        What it means that the domain, or the categories, were read from the data.
    publishes_agreement
        Whether a category that no record can change is published as it is.
    covers_persons_reclustered
        Whether re-clustering is covered for a person with several records.
    """

    name: Literal["DP", "iDP"]
    caveat: str
    survives_data: bool
    if_domain_read: str
    if_categories_read: str
    publishes_agreement: bool
    covers_persons_reclustered: bool


_VOID = "which voids the claim of differential privacy for it"
_DP = Promise(
    "DP",
    caveat="",
    survives_data=False,
    if_domain_read=_VOID,
    if_categories_read=_VOID,
    publishes_agreement=False,
    covers_persons_reclustered=True,
)
_IDP = Promise(
    "iDP",
    caveat="this is individual differential privacy with noise scales fixed: it compares this "
    "table with its neighbours, not any two neighbouring tables, and a neighbour's own noise "
    "scales, which may differ and tell it apart, are not covered.",
    survives_data=True,
    if_domain_read="so the guarantee covers only values inside the observed range",
    if_categories_read="so the guarantee covers only those that were seen",
    publishes_agreement=True,
    covers_persons_reclustered=False,
)


@dataclass(frozen=True)
class Method:
    """What tells one method from another.

    Attributes
    ----------
    on_numbers, on_categories
        What was done to an attribute, in words.
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
    post_if_chosen
        The post-processing that ``"auto"`` takes where the data decide on clusters.
    """

    name: MethodName
    promise: Promise
    on_numbers: str
    on_categories: str
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
    post_if_chosen: Post

    @property
    def pulls_in(self) -> bool:
        """Whether the paper's pre-processing pulls in a cluster's extremes."""
        return self.centroid is ClusterSummary.winsorised_mean

    @property
    def noise_covers_reclustering(self) -> bool:
        """Whether the published noise covers re-clustering, but for the rounding of centroids."""
        return self.reclustered_factor == 1


_CLUSTERED = "records were sorted into clusters, and each cluster's "
_DRAWN = f"{_CLUSTERED}category was drawn at random, the more typical the likelier"
_STABLE = f"{_DRAWN}; where one record cannot change which is most typical, that one was taken"

METHODS: dict[MethodName, Method] = {
    row.name: row
    for row in (  # from the least noise to the most, which is how people are offered them
        Method(
            "iDP-CBLS",
            _IDP,
            on_numbers=f"{_CLUSTERED}mean got noise that follows the cluster's own width",
            on_categories=_STABLE,
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
            post_if_chosen="penalised-isotonic",
        ),
        Method(
            "iDP-LS",
            _IDP,
            on_numbers=f"{_CLUSTERED}mean got noise that follows how far this table is from the "
            "ends of the domain",
            on_categories=_STABLE,
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
            post_if_chosen="none",
        ),
        Method(
            "DP-UM",
            _DP,
            on_numbers=f"{_CLUSTERED}mean got noise that follows the width of the domain",
            on_categories=_DRAWN,
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
            post_if_chosen="none",
        ),
        Method(
            "DP",
            _DP,
            on_numbers="every value got noise of its own, which follows the width of the domain",
            on_categories="every value was kept or replaced by another category at random",
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
            post_if_chosen="none",
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
