"""The engine for Spark: tables on a cluster, by the same mathematics.

`table` looks, `engine` leads, `workers` and `join` run on the workers.
"""
