"""Points of the map: the highest risk and the error of every method and ε."""

import polars as pl

from microveil.attacks.attack_rows import INFORMED

_METHOD = ("method", "family", "epsilon", "promise", "anonymity", "conditional")
_USE = ("error", "f_forest", "auc_forest", "f_boosting", "auc_boosting")


def by_attack(results: pl.DataFrame) -> pl.DataFrame:
    """Combine all seeds: the mean of what was found, and the highest upper limit."""
    return results.group_by(*_METHOD, "attack", maintain_order=True).agg(
        pl.col("rate", "control", "risk", "attack_auc").mean(),
        pl.col("low").min(),
        pl.col("high").max(),
        pl.col(_USE).mean(),
    )


def points_of_map(results: pl.DataFrame) -> pl.DataFrame:
    """Return one row per method and ε of one table.

    `risk`, `high` and `attack` belong to the attack with the highest upper limit, among attackers
    who know people's values; `informed` and `informed_high` to the attacker who knows every record
    but one. `number` counts the methods.
    """
    attacks = by_attack(results)
    informed = attacks.filter(attack=INFORMED).select(
        "method", "epsilon", informed="risk", informed_high="high"
    )
    worst = (
        attacks.filter(pl.col("attack") != INFORMED)
        .sort("high", "risk", descending=True, maintain_order=True)
        .group_by(_METHOD, maintain_order=True)
        .first()
        .select(*_METHOD, *_USE, "attack", "rate", "control", "risk", "low", "high")
    )
    order = results.select("method", "epsilon").unique(maintain_order=True).with_row_index("place")
    joined = order.join(worst, on=["method", "epsilon"], nulls_equal=True).join(
        informed, on=["method", "epsilon"], nulls_equal=True, how="left"
    )
    return (
        joined.sort("place")
        .with_columns(number=pl.col("place").min().over("method").rank("dense").cast(pl.Int64))
        .drop("place")
    )
