"""Write docs/explanation/findings.md and its tables from the results in docs/findings/.

Every figure in them is computed here; `tests/test_findings.py` writes both again and compares.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from bench.map import FINDINGS
from microveil.attacks.attack_rows import INFORMED
from microveil.lab.benchmark.map_points import by_attack, points_of_map
from microveil.lab.benchmark.peers import ANONYMITIES
from microveil.lab.paper.datasets import DATA_SETS

PAGE = FINDINGS.parent / "explanation" / "findings.md"
TABLES = FINDINGS.parent / "reference" / "attack-figures.md"
LINKAGES = ("nearest linkage", "one-to-one linkage", "structure linkage")
CLUSTERED = ("published", "not pooled")

HEAD = """# Findings

After this page you know what attacks find in releases of every method, and how useful these releases remain: {attacks} attacks on {methods} methods at
ε = {epsilons}, on the paper's two data sets. `python -m bench.findings` writes this page from `docs/findings/results.parquet` and
`docs/findings/theorems.json`, which `script/bench map` and `script/bench theorems` produce; a test checks that it is up to date.
`microveil benchmark people.csv --plan plan.toml` draws the same map for your own table.

## How to read it

Every attack has a **control**: the success of the same guess when the release says nothing about the person. The **risk** is the gain over the control,
(rate − control)/(1 − control). Figures show the **upper 95% limit** of the risk for the attack where that limit is highest, so no method looks better than
these attacks allow; an attack not yet thought of may do better. A promise holds for all releases and all attacks; a point is a measurement of one release.

| attack | what the attacker knows and does, and the control |
|---|---|
| nearest linkage | knows everyone's original values and takes the nearest row; control: a random row |
| one-to-one linkage | the same, but assigns each person a different row |
| structure linkage | the same, but matches people by who shares masked values with whom |
| interval disclosure | is given a person's row and takes the masked values next to each of its values as an interval; a value is disclosed if the interval contains it and is narrower than 0.1 standard deviations; control: another person's row |
| attribute inference | knows all attributes of a person but one, and guesses that one from the nearest row, to within 0.05 standard deviations; control: people outside the release |
| singling out | finds conditions on one to six attributes that exactly one row meets, and succeeds if exactly one person meets them; control: an equal number of people outside the release |
| linkability | knows two halves of a person's attributes from two sources, and succeeds if both lead to the same row; control: people outside the release |
| membership inference | runs the plan on tables with and without the person, and compares; rate: members recognised at a false-alarm rate of 1% |
| neighbour reconstruction | knows every record but one, whose row is whose, and the plan; tells which of two values the last person has; control: a coin toss. It has its own panel |

Attacks with a control group release one half of the people. [Measures](../reference/measures.md#attacks) names the paper behind each. Kept columns are left
out: an attacker who knows them does better. [Attack figures](../reference/attack-figures.md) has every point and every attack as tables.
"""

TABLES_HEAD = """# Attack figures

After this page you can look up every point of the maps in [Findings](../explanation/findings.md), which says how to read them: the upper 95% limit of each risk, the
error, and what models learn. `python -m bench.findings` writes it.
"""

PEERS = """## Other methods

Rank swapping, MDAV without noise and correlated noise are our own small versions (`bench/peers.py`) of sdcMicro's `rankSwap`,
`microaggregation(method = "mdav")` and `addNoise(method = "correlated")`. They are checked against values worked out by hand, not against sdcMicro. None of them
has an ε.

MST (OpenDP's, `python -m bench.synthesisers`) makes a synthetic table with ε-differential privacy. None of its rows belongs to a person, so it has neither an
error per record nor rows to link, and is not on the map. Three attacks apply (the table shows upper 95% limits of their risk); models are trained on a release of one half of the people and tested on
the other half. Missing releases failed: OpenDP 0.16 found its own budget exceeded in the last digit.

"""


def main() -> None:
    """Write the pages."""
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path}")


def pages() -> dict[Path, str]:
    """Return both pages by their paths."""
    results = pl.read_parquet(FINDINGS / "results.parquet")
    theorems = json.loads((FINDINGS / "theorems.json").read_text(encoding="utf-8"))
    names = results["data"].unique(maintain_order=True).to_list()
    budgets = sorted(results["epsilon"].drop_nulls().unique())
    head = HEAD.format(
        attacks=results["attack"].n_unique(),
        methods=_methods(results),
        epsilons=", ".join(f"{budget:g}" for budget in budgets),
    )
    parts = [head, *(_of_data(name, results.filter(data=name)) for name in names)]
    synthetic = pl.read_parquet(FINDINGS / "synthesisers.parquet")
    made = synthetic["data"].unique(maintain_order=True).to_list()
    said = [_beside_synthetic(name, synthetic, results) for name in made]
    peers = "\n".join([PEERS, *_synthetic_table(synthetic), "", *said, ""])
    findings = [*parts, peers, _theorems(theorems, results), _made(results)]
    tables = [TABLES_HEAD, *(_tables_of(name, results.filter(data=name)) for name in names)]
    return {PAGE: "\n".join(findings), TABLES: "\n".join(tables)}


def _methods(results: pl.DataFrame) -> int:
    return results.filter(pl.col("family") != "references")["method"].n_unique()


def _of_data(name: str, results: pl.DataFrame) -> str:
    points, attacks = points_of_map(results), by_attack(results)
    file = f"../findings/map-{name.lower().replace(' ', '-')}.svg"
    records, seeds = results["records"][0], results["seed"].n_unique()
    lines = [
        f"## {name}",
        "",
        f"{_records(name, records)}; {_number(seeds, 'run')} of every method. Left: attackers who know "
        "people's values. Right: the attacker who knows every record but one. Points are upper "
        "95% limits; a line goes down to the measured risk. Numbers mark the largest ε of each method.",
        "",
        f"![{name}: risk against error of every method]({file})",
        "",
        *(f"- {sentence}" for sentence in _sentences(points, attacks)),
        "",
    ]
    return "\n".join(lines)


def _tables_of(name: str, results: pl.DataFrame) -> str:
    lines = [
        f"## {name}",
        "",
        *_table(points_of_map(results)),
        "",
        f"### {name}: every attack",
        "",
        *_attack_table(by_attack(results)),
        "",
    ]
    return "\n".join(lines)


def _records(name: str, taken: int) -> str:
    known = DATA_SETS[name].records
    return (
        f"All {known:,} records"
        if taken == known
        else f"{taken:,} of {known:,} records, drawn at random"
    )


def _sentences(points: pl.DataFrame, attacks: pl.DataFrame) -> Iterator[str]:
    yield _structure_sentence(attacks)
    for k in ANONYMITIES:
        pooled = attacks.filter(
            pl.col("method").is_in([f"exchange {k}", f"average {k}"]),
            pl.col("attack").is_in(LINKAGES),
        )
        yield (
            f"Pooled by {k}, the three linkage attacks find {_range(pooled['rate'])} of rows; the "
            f"theorem allows {1 / k:.0%} on average."
        )
    alone, exchanged, averaged = (
        _at(attacks, name, 1.0) for name in ("recommended, not pooled", "exchange 10", "average 10")
    )
    for attack in ("attribute inference", "interval disclosure", "linkability"):
        yield (
            f"{attack.capitalize()} at ε = 1 is correct for {_rates(alone, attack)} with the "
            f"recommended plan without pooling, {_rates(exchanged, attack)} exchanged by 10, and "
            f"{_rates(averaged, attack)} averaged by 10."
        )
    yield (
        "Membership inference at ε = 1 recognises, at a false-alarm rate of 1% (area under the curve), "
        f"{_membership(alone)} of members without pooling, {_membership(exchanged)} exchanged by 10, and "
        f"{_membership(averaged)} averaged by 10."
    )
    yield _informed(attacks)
    yield _error_sentence(points)
    yield _learning_sentence(points)
    yield _best_sentence(points)


def _structure_sentence(attacks: pl.DataFrame) -> str:
    """Say where structure links nearly everyone, and what the points have where it does not."""
    found = attacks.filter(
        pl.col("family").is_in(CLUSTERED) & (pl.col("method") != "DP"), attack="structure linkage"
    )
    many, others = found.filter(pl.col("rate") >= 0.9), found.filter(pl.col("rate") < 0.9)
    said = (
        f"Structure linkage finds {_range(many['rate'])} of rows at {many.height} of the "
        f"{found.height} points of methods that form clusters and do not pool."
    )
    if others.is_empty():
        return said
    return (
        f"{said} The other {others.height} have a mean SSE of {min(others['error']):.3g} or more; that this "
        "attack finds few there does not prove that no other could."
    )


def _informed(attacks: pl.DataFrame) -> str:
    found = attacks.filter(attack=INFORMED).filter(pl.col("family") != "references")
    others = found.filter(pl.col("method") != "DP")
    sure = others.filter(pl.col("rate") >= 0.95)
    plain = found.filter(method="DP")
    return (
        "An attacker who knows every record but one is right in at least 95% of releases at "
        f"{sure.height} of {others.height} points of all methods except DP, pooled or not; for DP in "
        f"{_range(plain['rate'])}, where a coin toss has 50%. Of the promises on the map, only DP's "
        "covers this attacker."
    )


def _error_sentence(points: pl.DataFrame) -> str:
    at_one = {row["method"]: row["error"] for row in _ours(points, 1.0)}
    without = {
        row["method"]: row["error"] for row in points.filter(family="peers without ε").to_dicts()
    }
    return (
        f"Mean SSE at ε = 1: published iDP-CBLS {at_one['iDP-CBLS, k = 10']:.3g}, recommended without "
        f"pooling {at_one['recommended, not pooled']:.3g}, exchanged by 10 {at_one['exchange 10']:.3g}, "
        f"averaged by 10 {at_one['average 10']:.3g}, DP {at_one['DP']:.3g}; MDAV 10, which has no ε, "
        f"{without['MDAV 10']:.3g}."
    )


def _learning_sentence(points: pl.DataFrame) -> str:
    named = {(row["method"], row["epsilon"]): row for row in points.to_dicts()}
    chosen = [("the original", ("original", None))] + [
        (word, (method, 1.0))
        for word, method in (
            ("recommended without pooling", "recommended, not pooled"),
            ("exchanged by 10", "exchange 10"), ("averaged by 10", "average 10"), ("DP", "DP"),
        )
    ]  # fmt: skip
    figures = [
        f"{word} {named[key]['auc_forest']:.3f} and {named[key]['auc_boosting']:.3f}"
        for word, key in chosen
    ]
    return (
        "Learning the paper's class from the release at ε = 1, tested on original records: area under "
        f"the curve of a random forest and of gradient boosting, trained on {', '.join(figures)}."
    )


def _best_sentence(points: pl.DataFrame) -> str:
    usable = points.filter(pl.col("high") <= 0.1, pl.col("family") != "references")
    ranked = usable.sort("error").head(3).to_dicts()
    if not ranked:
        return "No method keeps the upper limit of every attack's risk at or below 10%."
    words = [f"{_named(row)} ({row['error']:.3g}, {row['high']:.1%})" for row in ranked]
    return (
        f"{_number(usable.height, 'point')} of {points.filter(pl.col('family') != 'references').height} "
        "keep the upper limit at or below 10% for all attackers who know values. Those with the least "
        f"error (mean SSE, upper limit) are {'; '.join(words)}."
    )


def _named(row: dict[str, Any]) -> str:
    return row["method"] if row["epsilon"] is None else f"{row['method']} at ε = {row['epsilon']:g}"


def _table(points: pl.DataFrame) -> Iterator[str]:
    yield "| | method | ε | mean SSE | highest risk | attack | informed risk | F, forest | AUC, forest | F, boosting | AUC, boosting |"
    yield "|--:|---|--:|--:|--:|---|--:|--:|--:|--:|--:|"
    ordered = points.sort("number", "epsilon", nulls_last=True)
    for row in ordered.iter_rows(named=True):
        learned = " | ".join(f"{row[name]:.3f}" for name in
                             ("f_forest", "auc_forest", "f_boosting", "auc_boosting"))  # fmt: skip
        yield (
            f"| {row['number']} | {row['method']} | {_epsilon(row)} | {row['error']:.3g} | "
            f"{row['high']:.1%} | {row['attack']} | {row['informed_high']:.0%} | {learned} |"
        )


def _attack_table(attacks: pl.DataFrame) -> Iterator[str]:
    names = attacks["attack"].unique(maintain_order=True).to_list()
    yield f"| method | ε | {' | '.join(names)} |"
    yield f"|---|--:|{'--:|' * len(names)}"
    order = {
        name: place for place, name in enumerate(attacks["method"].unique(maintain_order=True))
    }
    ordered = attacks.sort(pl.col("method").replace_strict(order), "epsilon", maintain_order=True)
    for key, found in ordered.group_by("method", "epsilon", maintain_order=True):
        highs = {row["attack"]: row["high"] for row in found.to_dicts()}
        cells = " | ".join(f"{highs[name]:.1%}" if name in highs else "–" for name in names)
        yield f"| {key[0]} | {_epsilon({'epsilon': key[1]})} | {cells} |"


def _synthetic_table(found: pl.DataFrame) -> Iterator[str]:
    names = found["attack"].unique(maintain_order=True).to_list()
    yield f"| data | ε | {' | '.join(names)} | AUC, forest | AUC, boosting |"
    yield f"|---|--:|{'--:|' * len(names)}--:|--:|"
    for key, rows in found.group_by("data", "epsilon", maintain_order=True):
        cells = " | ".join(f"{row['high']:.1%}" for row in rows.to_dicts())
        learned = rows.row(0, named=True)
        yield (
            f"| {key[0]} | {key[1]:g} | {cells} | {learned['auc_forest']:.3f} | "
            f"{learned['auc_boosting']:.3f} |"
        )


def _beside_synthetic(name: str, synthetic: pl.DataFrame, results: pl.DataFrame) -> str:
    made = synthetic.filter(data=name, epsilon=0.125).row(0, named=True)
    pooled = points_of_map(results.filter(data=name)).filter(method="exchange 10", epsilon=0.1)
    return (
        f"On {name} a forest trained on MST at ε = 0.125 has an area under the curve of {made['auc_forest']:.3f}, and one "
        f"trained on a release exchanged by 10 at ε = 0.1 has {pooled['auc_forest'][0]:.3f}; MST promises differential "
        "privacy of the table, the release does not."
    )


def _theorems(found: dict[str, Any], results: pl.DataFrame) -> str:
    audits = found["audits"]
    published, calibrated, plain = (
        audits[name] for name in ("published", "calibrated", "differential privacy")
    )
    pooled = by_attack(results.filter(data=found["data"])).filter(
        pl.col("family").is_in(["exchanged", "averaged"]), pl.col("attack").is_in(LINKAGES)
    )
    return f"""## Two theorems, shown

`script/bench theorems` audits {found["data"]} at ε = 1 ({found["runs"]:,} runs of the mechanism and {found["releases"]} releases of each of two tables, seed
{found["seed"]}). Its lower bounds are Clopper-Pearson limits; all bounds of an audit hold together with 97.5% confidence.

**1. ε does not survive re-clustering unless the noise is calibrated for it.** Published {published["method"]} with k = {published["k"]} loses at least
**{published["reclustered_found"]:.1f}** when one record changes and the table is re-clustered: {published["reclustered_found"] / published["epsilon"]:.1f} times its ε. By the closed form it loses
{published["reclustered_exact"]:.0f}; more runs would prove more. With fixed clusters the same attack proves {published["fixed_found"]:.2f}, below ε. Calibrated for re-clustering (k = {calibrated["k"]}),
the loss is {calibrated["reclustered_exact"]:.2f} by the closed form and at least {calibrated["reclustered_found"]:.2f} by the attack, both with fixed noise scales.

*What recomputed scales add.* As run, with noise scales recomputed from each table, the attack tells {calibrated["told_apart"]:.0%} of releases of the calibrated plan apart, where a
loss of ε = 1 allows {calibrated["allowed"]:.0%}; the loss is at least {calibrated["as_run_found"]:.1f}. For the published plan these figures are {published["told_apart"]:.0%} and {published["as_run_found"]:.1f}; for {plain["method"]}
(k = {plain["k"]}), whose scales follow from the plan, {plain["told_apart"]:.0%} and {plain["as_run_found"]:.1f}: its ε holds without that condition.

**2. Noise does not hide who shares values with whom; pooling does.** In `script/bench map`, structure linkage on published {published["method"]} (k = {published["k"]})
finds {_by_data(_structure(results))}, at any ε from {_ends(results["epsilon"], "g")}; on the original, in which
some records are equal, it finds {_by_data(_original(results))}. With pooling, the most successful linkage on {found["data"]} finds {_pooled(pooled)}; the theorem's
1/k is {", ".join(f"{1 / k:.0%}" for k in ANONYMITIES)}. [Guarantees](guarantees.md#pooling-whose-row-it-is) has the proof.
"""


def _structure(results: pl.DataFrame) -> pl.DataFrame:
    return results.filter(method="iDP-CBLS, k = 10", attack="structure linkage")


def _original(results: pl.DataFrame) -> pl.DataFrame:
    return results.filter(method="original", attack="structure linkage")


def _by_data(found: pl.DataFrame) -> str:
    parts = found.group_by("data", maintain_order=True)
    return " and ".join(f"{_range(rows['rate'])} of rows on {name}" for (name,), rows in parts)


def _pooled(attacks: pl.DataFrame) -> str:
    best = [
        max(attacks.filter(pl.col("method").is_in([f"exchange {k}", f"average {k}"]))["rate"])
        for k in ANONYMITIES
    ]
    return ", ".join(
        f"{share:.1%} with anonymity {k}" for k, share in zip(ANONYMITIES, best, strict=True)
    )


def _made(results: pl.DataFrame) -> str:
    versions = results.select("microveil", "python", "numpy").row(0)
    return (
        "## How these figures were made\n\n"
        f"microveil {versions[0]}, Python {versions[1]}, NumPy {versions[2]}; seeds "
        f"{', '.join(map(str, sorted(results['seed'].unique())))}; {results.height:,} attacks. "
        "`script/bench map` takes about 20 minutes of processor time and resumes where it was "
        "interrupted.\n"
    )


def _at(attacks: pl.DataFrame, method: str, epsilon: float) -> dict[str, dict[str, Any]]:
    rows = attacks.filter(method=method, epsilon=epsilon).to_dicts()
    return {row["attack"]: row for row in rows}


def _ours(points: pl.DataFrame, epsilon: float) -> list[dict[str, Any]]:
    return points.filter(epsilon=epsilon).to_dicts()


def _rates(found: dict[str, dict[str, Any]], attack: str) -> str:
    row = found[attack]
    return f"{row['rate']:.1%} (control {row['control']:.1%})"


def _membership(found: dict[str, dict[str, Any]]) -> str:
    row = found["membership inference"]
    return f"{row['rate']:.1%} ({row['attack_auc']:.2f})"


def _epsilon(row: dict[str, Any]) -> str:
    return "–" if row["epsilon"] is None else f"{row['epsilon']:g}"


def _range(shares: pl.Series) -> str:
    return _ends(shares, ".1%")


def _ends(numbers: pl.Series, form: str) -> str:
    low, high = (
        format(float(end), form) for end in (min(numbers.drop_nulls()), max(numbers.drop_nulls()))
    )
    return low if low == high else f"{low} to {high}"


def _number(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


if __name__ == "__main__":
    main()
