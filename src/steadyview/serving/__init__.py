"""Serving stores: a view's records by key, for applications that read one in a millisecond.

A *store* is a SQLite file, a schema of PostgreSQL, or Redis. It holds one table of records per
view, the view's own columns in it, and a registry: who writes them, how far they have come. A
record changes by one atomic operation of the store, guarded by its *signature*, the last entry that
it reflects; no transaction over several records is relied on, and any operation may be repeated,
come late, or in another order. Jacobsen, Lee, Yerneni: View Maintenance in Web Data Platforms,
sections III and IV; docs/serving.md.

Here are the stores and what is written into them. Which view, when and from what is decided by
`runtime`; nothing here knows the catalog, a source or a plan, and only `writing` speaks to Spark.
"""
