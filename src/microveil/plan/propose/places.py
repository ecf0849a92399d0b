"""Geographic coordinates: a latitude and a longitude, which together lead to a door."""

from collections.abc import Mapping

import polars as pl

from microveil.plan.propose.columns import ColumnProfile, Proposal
from microveil.plan.propose.headers import tokens

_LATITUDES = frozenset(("lat", "latitude", "latitud", "breitengrad", "breite"))
_LONGITUDES = frozenset(
    ("lon", "lng", "long", "longitude", "longitud", "longitudine", "laengengrad", "laenge")
)
_DECIMALS = 2  # of a degree: a kilometre or less
_WHY = "geographic coordinates, to about a kilometre"
_REMARK = (
    "latitude and longitude are masked and exchanged among people alike, each by itself: a row's "
    "point lies among the places of its crowd, not at an address; map areas, not single rows"
)


def coarsened(
    looks: Mapping[str, ColumnProfile], proposals: Mapping[str, Proposal]
) -> dict[str, Proposal]:
    """Propose fewer decimals for latitudes and longitudes, where a table has both."""
    found = {
        words: [
            name
            for name, look in looks.items()
            if words & set(tokens(name)) and proposals[name].ordered and _are_degrees(look, most)
        ]
        for words, most in ((_LATITUDES, 90.0), (_LONGITUDES, 180.0))
    }
    if not all(found.values()):
        return {}
    return {name: _coarser(proposals[name]) for names in found.values() for name in names}


def _are_degrees(look: ColumnProfile, most: float) -> bool:
    if not look.column.dtype.is_numeric() or not look.fractional:
        return False
    return bool(look.values.cast(pl.Float64).abs().max() <= most)  # type: ignore[operator]


def _coarser(proposal: Proposal) -> Proposal:
    decimals = min(proposal.settings.get("decimals", _DECIMALS), _DECIMALS)
    rest = {name: v for name, v in proposal.settings.items() if name != "resolution"}
    return Proposal({**rest, "decimals": decimals}, _WHY, (), _REMARK)
