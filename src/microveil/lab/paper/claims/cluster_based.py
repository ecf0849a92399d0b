"""Claims on information loss by iDP-CBLS, in the results and in the conclusions."""

from collections.abc import Callable, Sequence

import numpy as np

from microveil.lab.paper.claims.claim import Case, Claim, Evidence
from microveil.lab.paper.claims.statistics import alpha_ratio, cases_of, share
from microveil.lab.paper.curves import Curves
from microveil.lab.paper.experiments import ALPHAS, NOISELESS, PAPER_EPSILONS

_RESULTS = "Information loss: results"
_CONCLUSIONS = "Conclusions"
_EARLIER = ("DP", "DP-UM", "iDP-LS")
_CBLS = "iDP-CBLS"


def _orders_below(methods: Sequence[str]) -> Callable[[Curves], list[Case]]:
    def judge(curves: Curves) -> list[Case]:
        def statistic(dataset: str, epsilon: float) -> tuple[str, float]:
            others = np.stack([curves.sse(dataset, m, epsilon) for m in methods])
            orders = np.log10(others / curves.sse(dataset, _CBLS, epsilon))
            return f"{np.median(orders):.1f}", share(orders >= 2)

        return cases_of(curves, statistic)

    return judge


def _like_larger_epsilon(curves: Curves) -> list[Case]:
    cases = []
    for dataset in curves.datasets:
        best = curves.sse(dataset, _CBLS, 0.01).min(axis=1)
        others = [curves.sse(dataset, m, 1.0)[:, -1] for m in ("DP-UM", "iDP-LS")]
        orders = np.log10(best / np.stack(others))
        met = np.where(np.abs(orders) <= 0.5, 1.0, np.where(orders < 0, 0.5, 0.0))
        cases.append(Case(dataset, f"{orders.min():+.1f} to {orders.max():+.1f}", share(met)))
    return cases


def _rivals(times: float, methods: Sequence[str], factor: float) -> Callable[[Curves], list[Case]]:
    """Compare best with best, the others at so many times its ε; up to `factor` of theirs."""

    def judge(curves: Curves) -> list[Case]:
        cases = []
        for dataset in curves.datasets:
            for low in PAPER_EPSILONS:
                high = [e for e in PAPER_EPSILONS if abs(e / low / times - 1) < 0.01]
                if high:
                    best = curves.sse(dataset, _CBLS, low).min(axis=1)
                    others = [curves.sse(dataset, m, high[0]).min(axis=1) for m in methods]
                    ratio = best / np.stack(others)
                    cases.append(
                        Case(dataset, f"{np.median(ratio):.2g}", share(ratio <= factor), low)
                    )
        return cases

    return judge


def _unmoved_by_alpha(curves: Curves) -> list[Case]:
    def statistic(dataset: str, epsilon: float) -> tuple[str, float]:
        ratio = alpha_ratio(curves, dataset, _CBLS, epsilon)
        return f"{np.median(ratio):.2f}", share(np.abs(np.log10(ratio)) <= 0.1)

    return cases_of(curves, statistic)


def _best_k(curves: Curves) -> list[Case]:
    def statistic(dataset: str, epsilon: float) -> tuple[str, float]:
        ks = np.array(curves.ks(dataset))
        inside = (ks >= 5) & (ks <= 15)
        found, met = [], []
        for curve in curves.sse(dataset, _CBLS, epsilon):
            best = int(np.argmin(curve))
            near = curve[inside].min() <= 1.26 * curve[best]
            found.append(str(ks[best]))
            met.append(1.0 if inside[best] else 0.5 if near else 0.0)
        return " and ".join(found), float(np.mean(met))

    return cases_of(curves, statistic)


def _small_increase(curves: Curves) -> list[Case]:
    def statistic(dataset: str, epsilon: float) -> tuple[str, float]:
        sse = curves.sse(dataset, _CBLS, epsilon)
        increase = sse[:, -1] / sse.min(axis=1)
        return f"{increase.mean():.1f}", share((increase > 1.05) & (increase <= 10))

    return cases_of(curves, statistic)


def _microaggregation_share(curves: Curves) -> list[Case]:
    def statistic(dataset: str, epsilon: float) -> tuple[str, float]:
        alone = curves.sse(dataset, NOISELESS)[:, -1]
        part = alone / curves.sse(dataset, _CBLS, epsilon)[:, -1]
        return f"{part.mean():.0%}", share(part >= 0.5)

    return cases_of(curves, statistic)


def _reason_larger_epsilon(evidence: Evidence) -> str:
    curves, said = evidence.curves, []
    for dataset in curves.datasets:
        for alpha, best, curve in zip(
            ALPHAS,
            curves.sse(dataset, _CBLS, 0.01).min(axis=1),
            curves.sse(dataset, "iDP-LS", 1.0),
            strict=True,
        ):
            reached = [k for k, sse in zip(curves.ks(dataset), curve, strict=True) if sse <= best]
            at = f"at k = {reached[0]}" if reached else f"at no k up to {curves.ks(dataset)[-1]}"
            said.append(f"{dataset}, α = {alpha:g}: {at}")
    return f"iDP-LS at ε = 1 reaches the best of iDP-CBLS at ε = 0.01 ({'; '.join(said)})"


def _reason_clamping(evidence: Evidence) -> str:
    wide = []
    for dataset in evidence.curves.datasets:
        narrow, wider = np.log10(evidence.curves.sse(dataset, "DP", 0.01)[:, 0])
        wide.append(f"{dataset} {narrow:.2f} and {wider:.2f}")
    return (
        "the sensitivity does not depend on the domain, but outputs are clamped to it, and where "
        "the noise is wider than the domain, clamping limits how far a value can go: plain DP at "
        f"ε = 0.01 shows that limit, log10 mean SSE {'; '.join(wide)} for α = 1.5 and 3"
    )


def _reason_chance(evidence: Evidence) -> str:
    curves, errors, near = evidence.curves, [], []
    for dataset in curves.datasets:
        ks, of_dataset = curves.ks(dataset), []
        for epsilon in PAPER_EPSILONS:
            sse, error = (f(dataset, _CBLS, epsilon)[0] for f in (curves.sse, curves.sse_error))
            best = int(np.argmin(sse))
            spread = np.hypot(sse * error, sse[best] * error[best])
            within = np.flatnonzero(sse - sse[best] <= 2 * spread)
            of_dataset.append(f"{ks[within[0]]} to {ks[within[-1]]}")
        near.append(f"{dataset} {' | '.join(of_dataset)}")
        error_of = [np.median(curves.sse_error(dataset, _CBLS, e)) for e in PAPER_EPSILONS]
        errors.append(f"{dataset} " + " | ".join(f"{part:.0%}" for part in error_of))
    return (
        "the curves are flat and their points uncertain: at ε = 0.01 | 0.1 | 1 the standard error "
        f"of a mean over the runs is {'; '.join(errors)} (median over k and α), and for α = 1.5 "
        f"values of k from {'; '.join(near)} are within two standard errors of the best"
    )


def _reason_noise_remains(evidence: Evidence) -> str:
    curves = evidence.curves
    said = []
    for dataset in curves.datasets:
        noise = [
            1 - (curves.sse(dataset, NOISELESS) / curves.sse(dataset, _CBLS, e))[:, -1].mean()
            for e in PAPER_EPSILONS
        ]
        said.append(f"{dataset} " + " | ".join(f"{part:.0%}" for part in noise))
    return (
        "the error at the largest k is still mostly noise except at ε = 1; its share at ε = 0.01 | "
        f"0.1 | 1: {'; '.join(said)}"
    )


def _reason_microaggregated(evidence: Evidence) -> str:
    said = []
    for dataset in evidence.curves.datasets:
        best = evidence.curves.sse(dataset, _CBLS, 0.01).min(axis=1)
        ratios = [
            (best / evidence.curves.sse(dataset, m, 1.0).min(axis=1)).max() for m in ("DP", "DP-UM")
        ]
        said.append(f"{dataset} {ratios[0]:.2g} and {ratios[1]:.2g}")
    return (
        "only plain DP is left far behind; DP-UM at ε = 1 gains much from large k (largest "
        f"multiple over α of DP's and of DP-UM's mean SSE: {'; '.join(said)})"
    )


CLUSTER_BASED_CLAIMS = (
    Claim(_RESULTS, "iDP-CBLS … improve[s] the accuracy … by several orders of magnitude",
          "its mean SSE is at least two orders of magnitude below the others', at every k",
          "orders of magnitude below DP, DP-UM and iDP-LS, median over these, k and α",
          _orders_below(_EARLIER), about_sse=True, reason=_reason_clamping),
    Claim(_RESULTS, "its SSE for ε = 0.01 is similar to … DP-UM and iDP-LS for ε = 1.0 and large k",
          "at its best k it is within a factor of 3 of either at the largest k",
          "log10 of its mean SSE over theirs: from the best to the worst of both methods and α",
          _like_larger_epsilon, about_sse=True, reason=_reason_larger_epsilon),
    Claim(_RESULTS, "iDP-CBLS can accommodate stronger privacy requirements (smaller ε)",
          "at its best k it is below DP, DP-UM and iDP-LS at theirs with 10 times its ε",
          "its mean SSE as a multiple of theirs, median over these and α; ε is its own",
          _rivals(10, _EARLIER, 1), about_sse=True),
    Claim(_RESULTS, "it is not affected by (large) domains",
          "its mean SSEs for both α are within 26% of each other, at every k",
          "mean SSE of iDP-CBLS for α = 3 as a multiple of that for α = 1.5, median over k",
          _unmoved_by_alpha, about_sse=True, reason=_reason_clamping),
    Claim(_RESULTS, "iDP-CBLS requires very small … levels (k among 5-15) to obtain optimal …",
          "the k of the smallest mean SSE is from 5 to 15 (half met: one of these is within 26%)",
          "k of the smallest mean SSE for α = 1.5 and 3",
          _best_k, about_sse=True, reason=_reason_chance),
    Claim(_RESULTS, "Larger microaggregation levels produce a small SSE increase",
          "the mean SSE at the largest k is above the smallest, but not by more than 10 times",
          "mean SSE at the largest k as a multiple of the smallest, averaged over α",
          _small_increase, about_sse=True, reason=_reason_chance),
    Claim(_RESULTS, "because the distortion caused by microaggregation is greater (for large k)",
          "at the largest k at least half of the mean SSE also occurs without noise",
          "share of the mean SSE at the largest k that microaggregation alone causes",
          _microaggregation_share, about_sse=True, reason=_reason_noise_remains),
)  # fmt: skip

CLUSTER_BASED_CONCLUSIONS = (
    Claim(_CONCLUSIONS, "improve the utility … by several orders of magnitude [over] plain DP",
          "its mean SSE is at least two orders of magnitude below DP's, at every k",
          "orders of magnitude below DP, median over k and α",
          _orders_below(("DP",)), about_sse=True, reason=_reason_clamping),
    Claim(_CONCLUSIONS, "rivals the one preserved by DP data sets with 10[…] times larger ε",
          "at its best k it is at most 3 times DP and DP-UM at theirs with 10 times its ε",
          "its mean SSE as a multiple of theirs, median over these and α; ε is its own",
          _rivals(10, ("DP", "DP-UM"), 3), about_sse=True),
    Claim(_CONCLUSIONS, "rivals the one preserved by DP data sets with […]100 times larger ε",
          "at its best k it is at most 3 times DP and DP-UM at theirs with 100 times its ε",
          "its mean SSE as a multiple of theirs, median over these and α; ε is its own",
          _rivals(100, ("DP", "DP-UM"), 3), about_sse=True, reason=_reason_microaggregated),
)  # fmt: skip
