"""A table whose names and categories are markup, expressions and other traps."""

from datetime import date, timedelta

import polars as pl

from microveil import Confidential, Plan

SCRIPT = "</script><script>alert(1)</script>"
IMAGE = '"><img src=x onerror=alert(1)>'
NAMES = (
    SCRIPT,
    IMAGE,
    "{{7*7}}{% raw %}",
    "a.b[c]",
    "datum['x']' + alert(1) + '",
    "<!--<script>",
    "ü" + "very long " * 30,
    "new\nline \u2028 and \u2029",
)
KINDS = (SCRIPT, IMAGE, "'; alert(1); '", "&lt;b&gt;", "__proto__")


def table(records: int = 200) -> pl.DataFrame:
    numbers = {
        name: [(7 * i * (place + 1)) % 101 / 10 for i in range(records)]
        for place, name in enumerate(NAMES)
    }
    categories = {f"<svg onload=alert({n})>": [KINDS[i % (n + 3)] for i in range(records)]
                  for n in (1, 2)}  # fmt: skip
    days = {"<b>day</b>": [date(2020, 1, 1) + timedelta(days=i) for i in range(records)]}
    return pl.DataFrame({**numbers, **categories, **days})


def plan() -> Plan:
    kinds = Confidential(kind="nominal", categories=KINDS, method="DP-UM", k=20)
    roles = {name: kinds if "svg" in name else Confidential() for name in table(20).columns}
    return Plan.published(
        epsilon=1.0, attributes=roles | dict.fromkeys(NAMES, Confidential(decimals=1))
    )
