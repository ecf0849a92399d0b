"""The names that a plan may choose from; the command line offers the same ones."""

from typing import Literal

MethodName = Literal["DP", "DP-UM", "iDP-LS", "iDP-CBLS"]
GuaranteeName = Literal["fixed-clusters", "re-clustered"]
Partition = Literal["fixed", "noise-optimal", "least-squares"]
Post = Literal["none", "isotonic", "penalised-isotonic"]
Missing = Literal["error", "keep", "drop"]
Pooling = Literal["exchange", "average"]
ReleaseKind = Literal["masked", "synthetic"]
DateOrder = Literal["day-first", "month-first"]

DEFAULT_METHOD: MethodName = "iDP-CBLS"
