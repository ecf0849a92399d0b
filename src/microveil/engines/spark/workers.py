"""What clusters and masks on Spark's workers: Arrow in, Arrow out, NumPy in between.

Ranked records arrive as one table per range of ranks; clusters that lie across two ranges are put
together in `join_pieces`. Errors leave a worker as a row with a `problem`, since an exception would
be wrapped in Spark's own, with a trace that may show data.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeGuard

import numpy as np
import pyarrow as pa

from microveil.core import mask as core
from microveil.core.accounting import Totals, totals_of
from microveil.core.attribute import AttributeSettings, NumericSettings
from microveil.core.categories import CategorySummary, summarise_ranked
from microveil.core.clusters import (
    NOTHING_AFTER,
    NOTHING_BEFORE,
    ClusterSummary,
    PartialSummary,
    TrimmedSummary,
    singletons,
    summarise,
)
from microveil.core.expected_squares import expected_errors
from microveil.core.grid import observed_decimals
from microveil.core.isotonic import weights_of
from microveil.core.random_words import open_words
from microveil.engines.spark.arrow import (
    Batches,
    batch_of,
    fields,
    longs,
    pack,
    reals,
    together,
    unpack,
)
from microveil.engines.spark.failures import packed
from microveil.engines.spark.tasks import Work
from microveil.errors import DataError
from microveil.types import Integers, Reals


class Edges(NamedTuple):
    """The first and last values of every range of ranks, ascending.

    Those of a range begin where `first` says. `enough` of them tell who has a value that goes on in
    other ranges.
    """

    values: Integers
    first: Integers
    enough: int

    def around(self, part: int, steps: Integers) -> Integers:
        """Return the values of a range between those that stand beside it."""
        begin, end = self.first[part : part + 2]
        before = self.values[max(0, begin - self.enough) : begin]
        return np.concatenate([before, steps, self.values[end : end + self.enough]])


class Cut(NamedTuple):
    """How ranked records are cut: clusters of k, the remainder in the last.

    `offsets` say how many records come before each range of ranks. `trim` is the share of a cluster
    that is left out at each end.
    """

    offsets: Integers
    k: int
    last: int
    trim: float
    edges: Edges


class Ranges(NamedTuple):
    """Ranges of ranks that were cut each by itself, so that no cluster lies across two.

    `first` is the number of the first cluster of each range, and last that of all clusters.
    """

    first: Integers
    trim: float
    edges: Edges


_SUMMARY = (
    "size", "total", "smallest", "second_smallest", "third_smallest", "largest", "second_largest",
    "third_largest", "persons", "nearest",
)  # fmt: skip

_TRIMMED = ("left_out", "inner_total", "below", "lowest", "highest", "above")
_BESIDE = ("before", "after")


CLUSTER_PIECES = pa.schema(
    fields(pa.int64(), "cluster", *_SUMMARY, *_TRIMMED, *_BESIDE)
    + fields(pa.binary(), "members", "steps")
)
"""A cluster with its records' keys, packed.

`steps` is null but in a piece of a cluster, what tells of trimming where nothing is trimmed.
"""

DESCRIBED = pa.schema(
    fields(pa.int64(), "cluster", "records", "left_out")
    + fields(pa.float64(), "smallest", "largest", "centroid", "sensitivity", "scale")
    + fields(pa.int64(), "shared_by")
    + fields(pa.float64(), "unmoved")
    + fields(pa.string(), "category")
    + fields(pa.int64(), "lead")
)
OF_ATTRIBUTE = pa.schema([*fields(pa.string(), "attribute"), *DESCRIBED])
MASKED = pa.schema(
    [
        *DESCRIBED,
        *fields(pa.float64(), "masked", "weight"),
        *fields(pa.int32(), "part"),
        *fields(pa.binary(), "members"),
    ]
)
"""A cluster with what is published of it, and its records' keys.

Where isotonic regression follows, `masked` is what it gave within a range, the `part`, and `weight`
what the value weighs where ranges are put together.
"""

PACKED = pa.schema(
    fields(pa.int64(), "clusters", "records")
    + fields(pa.float64(), "fixed", "up", "down", "lowest", "highest")
    + fields(pa.int32(), "part")
    + fields(pa.binary(), "batch", "about")
    + fields(pa.string(), "problem")
)
"""Masked clusters as they are kept: a batch of them as Arrow in one value, and what they add to.

Spark would take every cluster apart into a row, and more time for that than anything else takes.
What is needed to release records is in `batch`, all else in `about`.
"""

_FOR_RECORDS = ("masked", "weight", "part", "members")

OVERLAPPING = pa.schema(fields(pa.int32(), "part") + fields(pa.float64(), "masked", "weight"))

MASKED_RECORDS = pa.schema(
    fields(pa.int64(), "key")
    + fields(pa.float64(), "masked", "fixed")
    + fields(pa.string(), "problem")
)
SEEN = pa.schema(fields(pa.int32(), "decimals") + fields(pa.float64(), "largest"))
ERRORS = pa.schema([pa.field("errors", pa.list_(pa.float64()))])
TOTALS = pa.schema(fields(pa.int64(), "records") + fields(pa.float64(), "up", "down"))


def decimals_seen(batches: Batches, single: bool) -> Iterator[pa.RecordBatch]:
    """Count the decimals of a column, and find its largest magnitude, batch by batch."""
    for batch in batches:
        values = reals(batch.columns[0].drop_null())
        decimals = observed_decimals(values, single_precision=single)
        largest = float(np.abs(values).max(initial=0.0))
        yield batch_of(SEEN, decimals=[decimals], largest=[largest])


def errors_by_k(
    batches: Batches, settings: NumericSettings, ks: Sequence[int]
) -> Iterator[pa.RecordBatch]:
    """Return the expected squared error of each range of ranks, for every k."""
    for one in _rows(batches):
        errors = expected_errors(unpack(one["steps"])[0], settings, ks)
        yield batch_of(ERRORS, errors=[errors])


def clusters_of_ranges(batches: Batches, ranges: Ranges) -> Iterator[pa.RecordBatch]:
    """Return the clusters of ranges that were cut each by itself, a batch for every range."""
    for one in _rows(batches):
        (steps, _), (keys, _), (sizes, _) = (unpack(one[n]) for n in ("steps", "keys", "sizes"))
        ends, part = np.cumsum(sizes), one["part"][0].as_py()
        yield _clusters(
            ranges.first[part] + np.arange(len(sizes)),
            summarise(steps, sizes, ranges.trim, ranges.edges.around(part, steps)),
            before=np.append(NOTHING_BEFORE, steps[ends[:-1] - 1]),
            after=np.append(steps[ends[:-1]], NOTHING_AFTER),
            members=pack(keys, sizes),
        )


def whole_clusters(batches: Batches, cut: Cut) -> Iterator[pa.RecordBatch]:
    """Cut ranges of ranks into clusters; leave out the first and the last, which may go on."""
    for part in _ranges(batches, cut):
        if len(part.size) > 2:
            inner = slice(part.start[1], part.end[-2])
            yield _clusters(
                part.cluster[part.start[1:-1]],
                summarise(
                    part.steps[inner],
                    part.size[1:-1],
                    cut.trim,
                    cut.edges.around(part.number, part.steps),
                ),
                before=part.steps[part.start[1:-1] - 1],
                after=part.steps[part.end[1:-1]],
                members=pack(part.keys[inner], part.size[1:-1]),
            )


def pieces_of_clusters(batches: Batches, cut: Cut) -> Iterator[pa.RecordBatch]:
    """Return what `whole_clusters` left out, with its values.

    The first and the last cluster of a range may go on in another one, and do not know what stands
    beside them there, so each end of a range also leaves a word for the cluster beyond it.
    """
    for part in _ranges(batches, cut, "end_"):
        steps, start, end = part.steps, part.start, part.end
        first, last, several = part.cluster[0], part.cluster[-1], len(start) > 1
        rows = [(first - 1, NOTHING_BEFORE, steps[0], 0, 0)]
        rows += [(first, NOTHING_BEFORE, steps[end[0]] if several else NOTHING_AFTER, 0, end[0])]
        if several:
            rows += [(last, steps[start[-1] - 1], NOTHING_AFTER, start[-1], end[-1])]
        rows += [(last + 1, steps[-1], NOTHING_AFTER, end[-1], end[-1])]
        number, before, after, begins, ends = np.array(rows, dtype=np.int64).T
        here = np.concatenate([np.arange(*bounds) for bounds in zip(begins, ends, strict=True)])
        yield _clusters(
            number,
            singletons(np.zeros_like(number)),
            before,
            after,
            pack(part.keys[here], ends - begins),
            pack(steps[here], ends - begins),
        )


def join_pieces(batches: Batches, cut: Cut) -> Iterator[pa.RecordBatch]:
    """Put clusters together whose pieces, and words about their neighbours, all arrive here."""
    table = together(batches)
    if table is None:
        return
    owner, before, after = (longs(table[name]) for name in ("cluster", *_BESIDE))
    (steps, sizes), (keys, _) = (unpack(table[name]) for name in ("steps", "members"))
    cluster = np.repeat(owner, sizes)
    if not len(cluster):
        return
    order = np.lexsort((steps, cluster))
    found, size = np.unique(cluster, return_counts=True)
    at, known = np.searchsorted(found, owner), np.isin(owner, found)
    ahead, behind = np.full(len(found), NOTHING_BEFORE), np.full(len(found), NOTHING_AFTER)
    np.maximum.at(ahead, at[known], before[known])
    np.minimum.at(behind, at[known], after[known])
    among = cut.edges.values if cut.edges.enough else None
    summary = summarise(steps[order], size, cut.trim, among)
    yield _clusters(found, summary, ahead, behind, pack(keys[order], size))


def sum_totals(clusters: pa.RecordBatch, settings: NumericSettings) -> pa.RecordBatch:
    """Add up what the noise of each cluster depends on in all others."""
    summary = numbers_of(clusters, settings.trim)
    totals = totals_of(settings.method, summary, settings.domain_steps)
    return batch_of(TOTALS, records=[totals.records], up=[totals.up], down=[totals.down])


def mask_batch(
    clusters: pa.RecordBatch,
    settings: AttributeSettings,
    summarised: Callable[[pa.RecordBatch], ClusterSummary | CategorySummary],
    totals: Totals | None,
    seed: int | None,
    ranges: Ranges | None = None,
) -> pa.RecordBatch:
    """Mask some clusters with this machine's randomness, or a seed's.

    They are those of one of the `ranges`, if given, and otherwise any.
    """
    clusters = clusters.sort_by("cluster") if seed is not None else clusters
    number = longs(clusters["cluster"])
    words = open_words(seed, f"attribute {settings.name}, clusters from {number[0]}")
    try:
        ends = None if ranges is None else _ends(number, int(ranges.first[-1]))
        masked = core.mask_clusters(summarised(clusters), settings, words, totals, ends)
    except DataError as error:
        return batch_of(PACKED, problem=[packed(error)])
    range_of = {} if ranges is None else _range_of(number, ranges)
    weights = _weights(masked.description["scale"], settings) if is_regressed(settings) else {}
    found = batch_of(
        MASKED,
        **masked.description,
        **weights,
        **range_of,
        cluster=number,
        masked=masked.values.astype(np.float64),
        members=clusters["members"],
    )
    losses = masked.losses
    return _packed(found, losses.fixed.max(), losses.up.sum(), losses.down.sum())


def _packed(
    clusters: pa.RecordBatch,
    fixed: float | None = None,
    up: float | None = None,
    down: float | None = None,
) -> pa.RecordBatch:
    """Keep a batch of masked clusters as two values, without columns that say nothing."""
    values = reals(clusters["masked"])
    told = [n for n in MASKED.names if clusters[n].null_count < len(clusters)]
    about = [name for name in told if name not in _FOR_RECORDS]
    return batch_of(
        PACKED,
        clusters=[len(clusters)],
        records=[longs(clusters["records"]).sum()],
        fixed=[fixed],
        up=[up],
        down=[down],
        lowest=[values.min()],
        highest=[values.max()],
        part=clusters["part"][:1],
        batch=[_as_bytes(clusters.select([name for name in told if name in _FOR_RECORDS]))],
        about=[_as_bytes(clusters.select(about))],
    )


def _as_bytes(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return bytes(sink.getvalue())


def unpacked_clusters(batches: Batches) -> Iterator[pa.RecordBatch]:
    """Return masked clusters as they were before they were packed, or what is given of them."""
    for one in _rows(batches):
        columns: dict[str, pa.Array] = {}
        for name in {"batch", "about"}.intersection(one.schema.names):
            with pa.ipc.open_stream(one[name][0].as_buffer()) as stream:
                kept = stream.read_next_batch()
            columns |= zip(kept.schema.names, kept.columns, strict=True)
        yield batch_of(MASKED, **columns)


def described_clusters(batches: Batches, attribute: str) -> Iterator[pa.RecordBatch]:
    """Return the private description of masked clusters."""
    for clusters in unpacked_clusters(batches):
        told = clusters.select(DESCRIBED.names)
        columns = dict(zip(told.schema.names, told.columns, strict=True))
        yield batch_of(OF_ATTRIBUTE, **columns, attribute=[attribute] * len(told))


def deal_by_number(batches: Batches, parts: int, clusters: int) -> Iterator[pa.RecordBatch]:
    """Deal masked clusters into ranges of their numbers."""
    for batch in unpacked_clusters(batches):
        part = longs(batch["cluster"]) * parts // clusters
        for one in np.unique(part):
            dealt = batch.filter(pa.array(part == one))
            columns = dict(zip(dealt.schema.names, dealt.columns, strict=True))
            yield _packed(batch_of(MASKED, **{**columns, "part": np.full(len(dealt), one)}))


def overlapping(batches: Batches, below: Reals, above: Reals) -> Iterator[pa.RecordBatch]:
    """Return the masked values of ranges that do not lie between those of others, with weights."""
    for clusters in unpacked_clusters(batches):
        part, masked = clusters["part"][0].as_py(), reals(clusters["masked"])
        astray = (masked < below[part]) | (masked > above[part])
        values, owner = np.unique(masked[astray], return_inverse=True)
        weights = np.bincount(owner, reals(clusters["weight"])[astray], minlength=len(values))
        yield batch_of(OVERLAPPING, part=np.full(len(values), part), masked=values, weight=weights)


def _range_of(number: Integers, ranges: Ranges) -> dict[str, Integers]:
    part = np.searchsorted(ranges.first, number[0], side="right") - 1
    return {"part": np.full(len(number), part)}


def _ends(number: Integers, clusters: int) -> core.Ends:
    return bool(number[0] == 0), bool(number[-1] == clusters - 1)


def is_regressed(settings: AttributeSettings) -> TypeGuard[NumericSettings]:
    """Whether masked values are put back in order."""
    return isinstance(settings, NumericSettings) and settings.post != "none"


def _weights(scales: Reals, settings: NumericSettings) -> dict[str, Reals]:
    bounds = settings.published_lower, settings.published_upper
    return {"weight": weights_of(scales, *bounds)}


def regress_range(
    batches: Batches, settings: NumericSettings, clusters: int
) -> Iterator[pa.RecordBatch]:
    """Put the masked values of a range of clusters in order, which all arrive here."""
    table = together(unpacked_clusters(batches))
    if table is None:
        return
    table = table.sort_by("cluster")
    number = longs(table["cluster"])
    ends = _ends(number, clusters)
    values = core.regress(reals(table["masked"]), reals(table["scale"]), settings, ends)
    columns = dict(zip(table.schema.names, table.columns, strict=True))
    yield _packed(batch_of(MASKED, **{**columns, "masked": values}))


class Levels(NamedTuple):
    """Between which values each range lies when all ranges are put in order together."""

    lowest: Reals
    highest: Reals


def published(clusters: pa.RecordBatch, settings: NumericSettings, levels: Levels) -> Reals:
    """Return what is published of clusters, given where ranges of them lie."""
    part = longs(clusters["part"])
    values = np.clip(reals(clusters["masked"]), levels.lowest[part], levels.highest[part])
    return core.publish(values, settings)


def numbers_of(clusters: pa.RecordBatch, trim: float) -> ClusterSummary:
    """Summarise clusters of numbers, trimmed or with the values ranked next to each of them."""
    kind, names = (TrimmedSummary, _TRIMMED) if trim else (PartialSummary, _BESIDE)
    return kind(*(longs(clusters[name]) for name in (*_SUMMARY, *names)))


def categories_of(clusters: pa.RecordBatch, counts: Integers, k: int) -> CategorySummary:
    """Summarise clusters of categories, given how many records there are of each category."""
    return summarise_ranked(counts, longs(clusters["size"]), longs(clusters["cluster"]) * k)


def mask_records(
    records: pa.RecordBatch, settings: AttributeSettings, seed: int | None
) -> pa.RecordBatch:
    """Mask some records, each by itself, with this machine's randomness, or a seed's."""
    records = records.sort_by("key") if seed is not None else records
    keys = longs(records["key"])
    words = open_words(seed, f"attribute {settings.name}, records from {keys[0]}")
    try:
        masked = core.mask_singly(longs(records["steps"]), settings, words)
    except DataError as error:
        return batch_of(MASKED_RECORDS, problem=[packed(error)])
    return batch_of(
        MASKED_RECORDS,
        key=keys,
        masked=masked.values.astype(np.float64),
        fixed=np.full(len(keys), masked.losses.fixed.max()),
    )


def each_batch(
    batches: Batches, work: Work, after: Callable[[Batches], Batches] = iter
) -> Iterator[pa.RecordBatch]:
    """Do the work on every batch that is not empty, `after` something else was done to all."""
    return (work(batch) for batch in after(batches) if batch.num_rows)


class _Range(NamedTuple):
    """Ranked records with their clusters, and where in them each cluster starts and ends."""

    number: int
    steps: Integers
    keys: Integers
    cluster: Integers
    start: Integers
    end: Integers
    size: Integers


def _ranges(batches: Batches, cut: Cut, kind: str = "") -> Iterator[_Range]:
    """Return ranges with their clusters numbered; `end_` columns lack what lies in between."""
    for one in _rows(batches):
        (steps, _), (keys, _) = (unpack(one[f"{kind}{name}"]) for name in ("steps", "keys"))
        place = np.arange(len(steps))
        place[len(steps) // 2 :] += one["records"][0].as_py() - len(steps)
        number = one["part"][0].as_py()
        rank = cut.offsets[number] + place
        cluster = np.minimum(rank // cut.k, cut.last)
        start = np.flatnonzero(np.diff(cluster, prepend=-1))
        end = np.append(start[1:], len(steps))
        yield _Range(number, steps, keys, cluster, start, end, end - start)


def _rows(batches: Batches) -> Iterator[pa.RecordBatch]:
    return (batch.slice(row, 1) for batch in batches for row in range(batch.num_rows))


def _clusters(
    number: Integers,
    summary: ClusterSummary,
    before: Integers,
    after: Integers,
    members: pa.BinaryArray,
    steps: pa.BinaryArray | None = None,
) -> pa.RecordBatch:
    pieces = {} if steps is None else {"steps": steps}
    beside = {"before": before, "after": after}
    return batch_of(
        CLUSTER_PIECES, cluster=number, members=members, **vars(summary), **beside, **pieces
    )
