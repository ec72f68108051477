"""View deltas, bases, and the states between them.

Belongs here: where a view's rows live, how a batch's change is appended, how a base is rolled
forward, how the rows at a cn are put together.
Does not belong here: which batch to compute and when to publish (`runtime`), several views in one
query and verification (`query`).
Laws: every write is named by the cn it reaches (law 7); the state at a cn is the nearest base plus
or minus the view delta between (law 5); no copy of a row is lost or merged away (law 6).
"""
