"""Work on Arrow batches that is done by Spark's Python workers."""

import gc
import sys
from collections.abc import Callable, Iterator
from functools import partial

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from microveil.engines.spark.arrow import Batches

BatchTask = Callable[[Batches], Iterator[pa.RecordBatch]]
Work = Callable[[pa.RecordBatch], pa.RecordBatch]

_modules = 0


def map_batches(rows: DataFrame, work: BatchTask, schema: pa.Schema | StructType) -> DataFrame:
    """Do the work on the batches of each partition."""
    return rows.mapInArrow(partial(_do, work=work), _of_spark(schema))


def map_groups(rows: DataFrame, group: Column, work: Work, schema: pa.Schema) -> DataFrame:
    """Do the work on whole groups, which do not depend on where rows are."""

    def on_group(rows: pa.Table) -> pa.Table:
        done = work(rows.combine_chunks().to_batches()[0])
        _settle()
        return pa.Table.from_batches([done])

    return rows.groupBy(group).applyInArrow(on_group, _of_spark(schema))


def _of_spark(schema: pa.Schema | StructType) -> StructType:
    return from_arrow_schema(schema) if isinstance(schema, pa.Schema) else schema


def _do(batches: Batches, work: BatchTask) -> Iterator[pa.RecordBatch]:
    yield from work(batches)
    _settle()


def _settle() -> None:
    """Let the garbage collector forget all that was imported.

    Spark's workers collect garbage after every task. With our modules loaded that took a tenth of a
    second, often longer than the task.
    """
    global _modules
    if len(sys.modules) > _modules:
        gc.collect()
        gc.freeze()
        _modules = len(sys.modules)
