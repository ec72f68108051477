"""SQL text to plans: what a view is, whether it can be maintained, and if not, why.

Belongs here: reading a view's file, names and places, plans before their types are known, reason
codes, the flat definitions and join trees of the papers' algorithms.
Does not belong here: anything that touches rows, a source, or Spark.
Laws: an expression of a plan is the user's own with names replaced, never a translation of it: it
is written in the tokens it was read from, and Spark can be asked whether it was read right
(`readings`); what cannot be maintained is refused with a stable code and the place in the file
(law 8).

A view's way: `parse` (the file), `reading` over `dialect` (sqlglot's tree), `queries` with its
helpers (drafts), `fusing`, `plan`.
"""
