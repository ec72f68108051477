"""Immediate propagate, deferred apply: which records of a view delta an apply process takes.

Beyer et al. (IBM Almaden), *Immediate Propagate Deferred Apply for Incremental Maintenance of
Materialized Views*. A transaction propagates its changes to view deltas while it runs; later an
apply process rolls a view from its refresh time t1 to a time t2. Here are the processes: what they
ask of the database, step by step. Between two requests anything may happen elsewhere.

`by_write_time` and `algorithm_1` are wrong, and kept for that: a checker must convict them.
Where the product does otherwise (its view deltas carry a cn): `simulation/deferred`.
"""
