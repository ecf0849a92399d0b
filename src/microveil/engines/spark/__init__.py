"""The engine for Spark: tables on a cluster, by the same mathematics.

`table` looks, `line` leads, `clusters` and `join` run on the workers, `release` writes.
Only what is inside this room imports PySpark.
"""
