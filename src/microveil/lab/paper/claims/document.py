"""claims.md: every claim with its verdict, our figures and, where they differ, why."""

from collections import Counter
from dataclasses import dataclass
from itertools import groupby
from typing import get_args

import polars as pl

from microveil.lab.paper.claims import CLAIMS, Claim, ClaimVerdict, Evidence, judge_claim, measured
from microveil.lab.paper.claims.past import past_the_paper
from microveil.lab.paper.curves import Curves
from microveil.lab.paper.diagnosis import Diagnosis
from microveil.lab.paper.experiments import RUNS

_SHOWN_KS = 6

_INTRODUCTION = """\
# What the paper claims, and what we measured

This page quotes every sentence of the paper about its own results, with our figure and a verdict.
Sentences that describe the set-up or compare with other papers are left out. A criterion makes each
sentence testable, and `results.parquet` shows how far it is met. A claim **holds** if its criterion
is met in at least 90% of the cases it covers (data sets, ε and, where stated, α and k), **does not
hold** if in fewer than half, and **differs** in between: true in part, or in this direction but
smaller.

*Scale.* Mean SSE measures distances in standard deviations of the original attributes. The paper
prints variances instead; claims about SSE are judged with these, too, as "with σ² as printed".

*Classification.* Random forests with scikit-learn's defaults, trained on the first 66% of the
masked records and tested on the remaining original records. The upper bound is training on
original data.

{setting}
"""


@dataclass(frozen=True)
class _Judged:
    claim: Claim
    verdict: ClaimVerdict
    as_printed: ClaimVerdict | None
    figures: str
    reason: str | None


def write_claims(
    results: pl.DataFrame, diagnosis: Diagnosis
) -> tuple[str, dict[ClaimVerdict, int]]:
    """Judge every claim; return the document and how many claims got each verdict."""
    evidence = Evidence(Curves(results, "std"), diagnosis)
    printed = Curves(results, "variance")
    judged = [_judge(claim, evidence, printed) for claim in CLAIMS]
    counts = Counter(one.verdict for one in judged)
    verdicts: dict[ClaimVerdict, int] = {name: counts[name] for name in get_args(ClaimVerdict)}
    parts = [
        _INTRODUCTION.format(setting=_setting(evidence.curves)),
        "| " + " | ".join(verdicts) + " |\n" + "|---" * len(verdicts) + "|\n"
        "| " + " | ".join(map(str, verdicts.values())) + " |\n",
    ]
    numbered = enumerate(judged, start=1)
    for section, entries in groupby(numbered, key=lambda entry: entry[1].claim.section):
        parts.append(f"## {section}\n")
        parts += [_entry(number, one) for number, one in entries]
    parts += [_ties_table(evidence), past_the_paper(evidence.curves)]
    return "\n".join(parts), verdicts


def _judge(claim: Claim, evidence: Evidence, printed: Curves) -> _Judged:
    cases = claim.judge(evidence.curves)
    ours = judge_claim(cases)
    return _Judged(
        claim=claim,
        verdict=ours,
        as_printed=judge_claim(claim.judge(printed)) if claim.about_sse else None,
        figures=measured(cases),
        reason=claim.reason(evidence) if claim.reason and ours != "holds" else None,
    )


def _setting(curves: Curves) -> str:
    ks = "; ".join(f"{name} {', '.join(map(str, curves.ks(name)))}" for name in curves.datasets)
    few = " (the paper has 10; verdicts near a threshold may change)" if curves.runs < RUNS else ""
    return f"Means over {curves.runs} runs{few}. Values of k: {ks}."


def _entry(number: int, judged: _Judged) -> str:
    lines = [
        f'**{number}.** "{judged.claim.quotation}": **{judged.verdict}**\n',
        f"- Measured: {judged.claim.figure}: {judged.figures}.",
        f"- Criterion: {judged.claim.criterion}.",
    ]
    if judged.as_printed:
        lines.append(f"- With σ² as printed: {judged.as_printed}.")
    if judged.reason:
        lines.append(f"- Why: {judged.reason}.")
    return "\n".join(lines) + "\n"


def _ties_table(evidence: Evidence) -> str:
    parts = [
        "## Values released without noise\n",
        "A cluster of equal values has zero cluster-based sensitivity, and iDP-CBLS releases it "
        "without noise at any ε. Share\nof each attribute's values in such clusters:\n",
    ]
    for dataset in evidence.curves.datasets:
        ks = evidence.curves.ks(dataset)
        shown = ks[:: max(1, -(-len(ks) // _SHOWN_KS))]
        parts.append(f"| {dataset} | " + " | ".join(f"k = {k}" for k in shown) + " |")
        parts.append("|---" * (len(shown) + 1) + "|")
        known = evidence.diagnosis.sensitivities.filter(dataset=dataset)
        for attribute in known["attribute"].unique(maintain_order=True):
            shares = [evidence.diagnosis.without_noise(dataset, k, attribute) for k in shown]
            parts.append(f"| {attribute} | " + " | ".join(f"{s:.0%}" for s in shares) + " |")
        parts.append("")
    return "\n".join(parts)
