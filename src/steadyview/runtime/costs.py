"""What an answer reads, and what it costs to bring views to the moment of an answer.

The cost of compensating is that of the residual: the commits between what the views show and the
moment of the answer, and the rows that these commits changed in the tables that the views read. It
is told by the catalog and by the statistics of the update log; no row is looked at, unless a file
of the log lies across the ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from steadyview.changes import RelationName
from steadyview.runtime.parts import Parts
from steadyview.runtime.planning import Planned


@dataclass(frozen=True)
class Reads:
    """What a query reads: views, each with the tables that it is made of, and tables themselves."""

    views: Mapping[str, frozenset[RelationName]] = field(default_factory=dict)
    tables: frozenset[RelationName] = frozenset()


@dataclass(frozen=True)
class Cost:
    """So many commits, which changed so many rows of the tables in question."""

    commits: int
    rows: int


NOTHING = Cost(0, 0)


def sources_of(tables: Iterable[RelationName]) -> frozenset[str]:
    """The sources of these tables."""
    return frozenset(table.source for table in tables)


def all_tables(plan: Planned, plans: Mapping[str, Planned]) -> frozenset[RelationName]:
    """The tables that a view is made of, over others too."""
    below = (all_tables(plans[name], plans) for name in plan.parents if name in plans)
    return frozenset(r.name for r in plan.relations).union(*below)


def cost_of(parts: Parts, reads: Reads, brought: Mapping[str, int], cn: int) -> Cost:
    """Of bringing views to the cn, each from the one that is given with it."""
    if not brought:
        return NOTHING
    first: dict[RelationName, int] = {}
    for name, after in brought.items():
        for table in reads.views[name]:
            first[table] = min(after, first.get(table, after))
    rows = sum(_changed(parts, table, after, cn) for table, after in first.items())
    return Cost(cn - min(brought.values()), rows)


def _changed(parts: Parts, table: RelationName, after: int, upto: int) -> int:
    """How many rows of the table changed in the commits after one cn up to the other."""
    commits = parts.catalog.commits
    # forgotten commits are in every view
    first = commits.seq_upto(table.source, max(after, commits.oldest_cn()))
    last = commits.seq_upto(table.source, upto)
    return parts.log.row_count(table, first + 1, np.ones(max(last - first, 0), dtype=bool))
