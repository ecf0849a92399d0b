"""Settings of a Spark session that are changed while we work, and put back as they were."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from pyspark.sql import SparkSession

_WHOLE_BATCHES = "spark.sql.execution.arrow.maxBytesPerBatch", str(2**31 - 1)
"""With a limit, Spark measures a batch after every row that it hands to Python."""

_lock = Lock()
_working: dict[SparkSession, tuple[int, str | None]] = {}


@contextmanager
def whole_batches(spark: SparkSession) -> Iterator[None]:
    """Hand batches of so many rows to Python, whatever their bytes; several threads may ask."""
    name, value = _WHOLE_BATCHES
    with _lock:
        threads, before = _working.get(spark) or (0, spark.conf.get(name, None))
        spark.conf.set(name, value)
        _working[spark] = threads + 1, before
    try:
        yield
    finally:
        with _lock:
            threads, before = _working.pop(spark)
            if threads > 1:
                _working[spark] = threads - 1, before
            elif before is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, before)
