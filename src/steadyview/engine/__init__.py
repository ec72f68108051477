"""Spark: where rows are joined, compensated, aggregated and read (law 1).

Belongs here: sessions, Spark SQL texts, files handed to and taken from Spark.
Does not belong here: what to ask or publish, and when; the Delta log (`delta`).
Law: a plan reads only files that exist before it is planned, so a task run twice reads the same
rows.
"""
