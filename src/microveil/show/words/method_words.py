"""What each method did to an attribute, in words."""

from microveil.core.choices import MethodName

_CLUSTERED = "records were sorted into clusters, and each cluster's "
_DRAWN = f"{_CLUSTERED}category was drawn at random, typical categories with higher probability"
_STABLE = f"{_DRAWN}; if one record cannot change which category is most typical, that one was used"

DONE_TO_NUMBERS: dict[MethodName, str] = {
    "iDP-CBLS": f"{_CLUSTERED}mean got noise scaled to the width of the cluster",
    "iDP-LS": f"{_CLUSTERED}mean got noise scaled to the distance of this table's values from the "
    "ends of the domain",
    "DP-UM": f"{_CLUSTERED}mean got noise scaled to the width of the domain",
    "DP": "every value got its own noise, scaled to the width of the domain",
}
DONE_TO_CATEGORIES: dict[MethodName, str] = {
    "iDP-CBLS": _STABLE,
    "iDP-LS": _STABLE,
    "DP-UM": _DRAWN,
    "DP": "every value was kept or replaced by another category at random",
}
