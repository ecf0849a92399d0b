"""Claims on information loss by the methods before iDP-CBLS: DP, DP-UM and iDP-LS."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from microveil.lab.paper.claims.claim import Case, Claim, Evidence
from microveil.lab.paper.claims.statistics import alpha_ratio, cases_of, rank_correlation, share
from microveil.lab.paper.curves import Curves
from microveil.lab.paper.experiments import PAPER_EPSILONS
from microveil.types import Reals

_METHODS = "Information loss: methods compared"
_RESULTS = "Information loss: results"
_EARLIER = ("DP", "DP-UM", "iDP-LS")
_CBLS = "iDP-CBLS"


def _highest(curves: Curves) -> list[Case]:
    def statistic(dataset: str, epsilon: float) -> tuple[str, float]:
        others = [curves.sse(dataset, m, epsilon) for m in ("DP-UM", "iDP-LS", _CBLS)]
        ratio = np.stack(others) / curves.sse(dataset, "DP", epsilon)
        return f"{ratio.max():.2f}", share(ratio <= 1.05)

    return cases_of(curves, statistic)


def _diverse(curves: Curves) -> list[Case]:
    def statistic(dataset: str, epsilon: float) -> tuple[str, float]:
        all_ = np.log10([curves.sse(dataset, m, epsilon) for m in (*_EARLIER, _CBLS)])
        return f"{np.ptp(all_):.1f}", float(np.ptp(all_) >= 1)

    return cases_of(curves, statistic)


def _microaggregated_below_dp(curves: Curves) -> list[Case]:
    def statistic(dataset: str, epsilon: float) -> tuple[str, float]:
        ratio = (curves.sse(dataset, "DP-UM", epsilon) / curves.sse(dataset, "DP", epsilon))[:, -1]
        return f"{ratio.mean():.2f}", share(ratio <= 0.95)

    return cases_of(curves, statistic)


def _barely_decreases(curves: Curves) -> list[Case]:
    cases = []
    for dataset in curves.datasets:
        low, high = (curves.sse(dataset, "DP", epsilon)[:, 0] for epsilon in (0.01, 1.0))
        cases.append(Case(dataset, f"{(high / low).mean():.2f}", share(high >= 0.8 * low)))
    return cases


def _nearly_random(curves: Curves) -> list[Case]:
    def statistic(dataset: str, epsilon: float) -> tuple[str, float]:
        correlation = curves.correlation(dataset, "DP", epsilon)[:, 0]
        return f"{correlation.mean():.3f}", share(np.abs(correlation) <= 0.1)

    return cases_of(curves, statistic)


def _similar(curves: Curves) -> list[Case]:
    def statistic(dataset: str, epsilon: float) -> tuple[str, float]:
        ratio = _local_to_global(curves, dataset, epsilon)
        return f"{np.median(ratio):.2f}", share((ratio >= 1 / 2) & (ratio <= 2))

    return cases_of(curves, statistic)


def _local_to_global(curves: Curves, dataset: str, epsilon: float) -> Reals:
    ratio: Reals = curves.sse(dataset, "iDP-LS", epsilon) / curves.sse(dataset, "DP-UM", epsilon)
    return ratio


def _decreasing_in_k(curves: Curves) -> list[Case]:
    def statistic(dataset: str, epsilon: float) -> tuple[str, float]:
        pair = np.concatenate([curves.sse(dataset, m, epsilon) for m in ("DP-UM", "iDP-LS")])
        ks = curves.ks(dataset)
        correlations = np.array([rank_correlation(ks, curve) for curve in pair])
        return f"{correlations.mean():.2f}", share(correlations <= -0.8)

    return cases_of(curves, statistic)


def _local_below_global(curves: Curves) -> list[Case]:
    def statistic(dataset: str, epsilon: float) -> tuple[str, float]:
        below = share(_local_to_global(curves, dataset, epsilon) < 1)
        return f"{below:.0%}", below

    return cases_of(curves, statistic)


def _gap_grows_with_epsilon(curves: Curves) -> list[Case]:
    cases = []
    for dataset in curves.datasets:
        gaps = [-np.log10(_local_to_global(curves, dataset, e)).mean() for e in PAPER_EPSILONS]
        grows = [None, *(float(after > before) for before, after in pairwise(gaps))]
        cases += [
            Case(dataset, f"{gap:.2f}", met, epsilon)
            for gap, met, epsilon in zip(gaps, grows, PAPER_EPSILONS, strict=True)
        ]
    return cases


def _gap_same_for_alphas(curves: Curves) -> list[Case]:
    def statistic(dataset: str, epsilon: float) -> tuple[str, float]:
        narrow, wide = -np.log10(_local_to_global(curves, dataset, epsilon)).mean(axis=1)
        return f"{narrow:.2f} and {wide:.2f}", float(abs(narrow - wide) <= 0.1)

    return cases_of(curves, statistic)


def _wider_is_worse(methods: Sequence[str], factor: float) -> Callable[[Curves], list[Case]]:
    def judge(curves: Curves) -> list[Case]:
        def statistic(dataset: str, epsilon: float) -> tuple[str, float]:
            ratio = np.stack([alpha_ratio(curves, dataset, m, epsilon) for m in methods])
            return f"{np.median(ratio):.2f}", share(ratio > factor)

        return cases_of(curves, statistic)

    return judge


def _reason_saturation(evidence: Evidence) -> str:
    curves = evidence.curves
    said = []
    for dataset in curves.datasets:
        ratio = curves.sse(dataset, "DP-UM", 0.01) / curves.sse(dataset, "DP", 0.01)
        said.append(f"{dataset} {ratio.min():.2f} to {ratio.max():.2f}")
    return (
        "at small ε the noise of either method is many times wider than the domain even for the "
        "largest k, and clamping turns nearly every value into an end of the domain; mean SSE of "
        f"DP-UM at ε = 0.01 as a multiple of DP's, over all k: {'; '.join(said)}"
    )


def _reason_local_is_nearly_global(evidence: Evidence) -> str:
    said = []
    for dataset in evidence.curves.datasets:
        local = evidence.diagnosis.local_to_global(dataset, evidence.curves.ks(dataset)[-1])
        attribute, part = evidence.diagnosis.widest(dataset)
        said.append(f"{dataset} {local:.0%}, with {attribute} making up {part:.0%} of the error")
    return (
        "most error is in the attributes whose domain is the widest in standard deviations, and "
        "where their values lie near one end, the other end is almost as far as the domain is "
        "wide; if no domain cut the noise off, the mean SSE of iDP-LS would be, as a share of "
        f"DP-UM's at the largest k and α = 1.5, {'; '.join(said)}; besides, "
        f"{_reason_saturation(evidence)}"
    )


EARLIER_CLAIMS = (
    Claim(_METHODS, "We used it [DP] as an upper bound for the information loss",
          "no method exceeds DP's mean SSE by more than 5% at any k",
          "largest mean SSE of another method as a multiple of DP's",
          _highest, about_sse=True),
    Claim(_METHODS, "[DP-UM] uses the prior microaggregation step to reduce the sensitivity",
          "at the largest k the mean SSE of DP-UM is at least 5% below DP's",
          "mean SSE of DP-UM at the largest k as a multiple of DP's",
          _microaggregated_below_dp, about_sse=True, reason=_reason_saturation),
    Claim(_METHODS, "SSE values are quite diverse among the different methods",
          "at least one order of magnitude between the largest and the smallest",
          "orders of magnitude between the largest and the smallest mean SSE",
          _diverse, about_sse=True),
    Claim(_RESULTS, "Plain Laplace noise addition (DP) … results in the highest SSE",
          "no method exceeds DP's mean SSE by more than 5% at any k",
          "largest mean SSE of another method as a multiple of DP's",
          _highest, about_sse=True),
    Claim(_RESULTS, "[DP's] SSE barely decreases when moving from ε = 0.01 to ε = 1.0",
          "the mean SSE at ε = 1 is at least 80% of that at ε = 0.01",
          "mean SSE at ε = 1 as a multiple of that at ε = 0.01",
          _barely_decreases, about_sse=True),
    Claim(_RESULTS, "we may consider the masked data [of DP] nearly random in all cases",
          "the correlation of masked with original values is within ±0.1",
          "correlation, averaged over attributes and α",
          _nearly_random),
    Claim(_RESULTS, "Both DP-UM and iDP-LS yield similar results",
          "their mean SSEs are within a factor of 2 of each other, at every k",
          "mean SSE of iDP-LS as a multiple of DP-UM's, median over k and α",
          _similar, about_sse=True),
    Claim(_RESULTS, "with SSE decreasing as the microaggregation level (k) increases",
          "the rank correlation of k and mean SSE is −0.8 or lower",
          "rank correlation of k and mean SSE, averaged over DP-UM, iDP-LS and α",
          _decreasing_in_k, about_sse=True, reason=_reason_saturation),
    Claim(_RESULTS, "This shows the benefits of the prior microaggregation step",
          "at the largest k the mean SSE of DP-UM is at least 5% below DP's",
          "mean SSE of DP-UM at the largest k as a multiple of DP's",
          _microaggregated_below_dp, about_sse=True, reason=_reason_saturation),
    Claim(_RESULTS, "iDP-LS achieves lower SSE thanks to its ability to use the local sensitivity",
          "the mean SSE of iDP-LS is below DP-UM's at every k and α",
          "share of k and α where iDP-LS is below DP-UM",
          _local_below_global, about_sse=True, reason=_reason_local_is_nearly_global),
    Claim(_RESULTS, "The differences between the two methods are larger for higher values of ε",
          "the gap grows from each ε to the next",
          "gap between DP-UM and iDP-LS in log10 mean SSE, averaged over k and α",
          _gap_grows_with_epsilon, about_sse=True),
    Claim(_RESULTS, "but stay proportional when varying the boundaries of the … domains (α)",
          "the gaps for both α are within 0.1 of each other",
          "gap between DP-UM and iDP-LS in log10 mean SSE for α = 1.5 and 3, averaged over k",
          _gap_same_for_alphas, about_sse=True),
    Claim(_RESULTS, "even though iDP-LS uses the local sensitivity, it still depends on the domain",
          "its mean SSE is larger for α = 3 than for α = 1.5, at every k",
          "mean SSE of iDP-LS for α = 3 as a multiple of that for α = 1.5, median over k",
          _wider_is_worse(("iDP-LS",), 1.0), about_sse=True),
    Claim(_RESULTS, "For the three previous methods, SSE … decrease as the … domains get smaller",
          "the mean SSE is larger for α = 3 than for α = 1.5, at every k",
          "mean SSE for α = 3 as a multiple of that for α = 1.5, median over methods and k",
          _wider_is_worse(_EARLIER, 1.0), about_sse=True),
    Claim(_RESULTS, "large (or even unbounded) domains severely deteriorate the utility",
          "doubling the domain at least doubles the mean SSE, at every k",
          "mean SSE for α = 3 as a multiple of that for α = 1.5, median over methods and k",
          _wider_is_worse(_EARLIER, 2.0), about_sse=True),
)  # fmt: skip
