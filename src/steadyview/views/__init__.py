"""SQL text to view definition: what a view is, whether it can be maintained, and if not, why.

Belongs here: reading a view's file, names and places, flattening, reason codes, the join tree.
Does not belong here: anything that touches rows, a source, or Spark.
Laws: a fragment is the user's own text with names replaced, never a translation of it; what cannot
be maintained is refused with a stable code and the place in the file (law 8).
"""
