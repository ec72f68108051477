"""Plans: how a view's rows change when the rows of its inputs change, as text over versions.

A relation over the window (a, b] is a set of *versions* (row, n, from, to): the row has count n at
every cn with from <= cn < to. `from` is BEGINNING for what was there at a, `to` is FOREVER for what
is there at b, so no text holds a or b. Every operator has a form on versions that gives, at each
cn, what plain SQL gives at that cn; the change falls out where versions start and end.

A plan is a graph of *nodes*. A node is a block of operators over its inputs, at most one fold (what
keeps a state: sums per key) and what is shown of it. A node is one statement of a batch.

Belongs here: operators, moves, nodes, which keys must be asked for. Does not: reading SQL
(`views`), running anything (`engine`). Pure, but for Arrow.
"""
