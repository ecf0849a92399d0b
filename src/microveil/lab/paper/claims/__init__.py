"""Every claim the paper's text makes about its results, judged by our own.

A claim has a quotation, a criterion in words and a judge: a function of the curves that returns one
case per situation the claim speaks of, with a figure and how far the criterion is met there.
Verdicts follow from the cases by one rule, `judge_claim`, and are never typed in.
"""

from microveil.lab.paper.claims.claim import (
    Case,
    Claim,
    ClaimVerdict,
    Evidence,
    judge_claim,
    measured,
)
from microveil.lab.paper.claims.classification import (
    CLASSIFICATION_CLAIMS,
    CLASSIFICATION_CONCLUSIONS,
)
from microveil.lab.paper.claims.cluster_based import CLUSTER_BASED_CLAIMS, CLUSTER_BASED_CONCLUSIONS
from microveil.lab.paper.claims.earlier import EARLIER_CLAIMS

__all__ = ["CLAIMS", "Case", "Claim", "ClaimVerdict", "Evidence", "judge_claim", "measured"]

CLAIMS: tuple[Claim, ...] = (
    *EARLIER_CLAIMS,
    *CLUSTER_BASED_CLAIMS,
    *CLASSIFICATION_CLAIMS,
    *CLUSTER_BASED_CONCLUSIONS,
    *CLASSIFICATION_CONCLUSIONS,
)
"""In the order of the paper."""
