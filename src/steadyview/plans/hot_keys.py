"""How many pairs a join would make, and how many of them for nothing, before it runs.

For a join of versions let W be the number of pairs that its equalities let meet, and W0 that of the
pairs of which neither row changes. Both follow from how often each key occurs: with the joins as
edges between the scans where their keys stand, from the leaves to the root,

    n(scan, key)  =  sum{ product{ n(neighbour, its key) : other edges of the scan } : rows }

Filters, further conditions and times are not looked at: without them numbers are exact, else upper
bounds (but of the pieces into which an outer or semi join cuts a row, one is counted).

Pairs outside W0 start or end inside the window: they are the change itself, or lead to it. So a
join is *hot* if W0 is large and more than twice the rest; `flags.py` then leaves W0 out. It takes a
key with many unchanged rows on both sides, and a change at it on each.

A join whose key is computed or constant, or that stands above such a join, is not counted and never
hot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import inf

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from steadyview.plans.extreme import Extreme
from steadyview.plans.inner_join import InnerJoin
from steadyview.plans.lineage import Place, origin
from steadyview.plans.links import entry
from steadyview.plans.moves import BEGINNING, FOREVER, FROM, TO
from steadyview.plans.operator import Operator, walk
from steadyview.plans.split_join import SplitJoin
from steadyview.plans.versions import numbered

MANY = 1_000_000
"""Pairs for nothing that are worth a flag: up to 0.3 s of a core."""
MANY_SORTED = 200_000
"""The same where gaps are looked for: every pair is sorted, which takes 0.2 s."""
ALL, STILL = "_all", "_still"

Join = InnerJoin | SplitJoin
Counts = Callable[[int, tuple[int, ...]], pa.Table]
"""Of a scan, per combination of values in some of its columns: `_all` versions, `_still` of which
never change. The columns are `c{number}`."""


@dataclass(frozen=True)
class Pairs:
    """W and W0."""

    every: float
    still: float

    def hot(self, many: float) -> bool:
        """Whether many are for nothing, and most."""
        return self.still > many and self.still > 2 * (self.every - self.still)


def key_counts(versions: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Per combination of values in the columns: how many versions, and how many never change."""
    still = pc.and_(pc.equal(versions[FROM], BEGINNING), pc.equal(versions[TO], FOREVER))
    counted = versions.select(list(columns))
    counted = counted.append_column(ALL, pa.array(np.ones(versions.num_rows)))
    return summed(counted.append_column(STILL, still.cast(pa.float64())), columns)


def summed(counts: pa.Table, columns: Sequence[str]) -> pa.Table:
    """The same with one row per combination of values in the columns."""
    if not columns:
        return pa.table({n: [float(np.sum(counts[n].to_numpy()))] for n in (ALL, STILL)})
    found = counts.group_by(list(columns), use_threads=False).aggregate(
        [(ALL, "sum"), (STILL, "sum")]
    )
    return found.rename_columns({f"{ALL}_sum": ALL, f"{STILL}_sum": STILL})


def flaggable(block: Operator) -> list[Join]:
    """The joins of a block that can leave out pairs: `flags.py` says why others cannot."""
    operators = [*walk(block)]
    if any(isinstance(o, Extreme) for o in operators):
        return []
    joins = [o for o in operators if isinstance(o, (InnerJoin, SplitJoin))]
    return [j for j in joins if isinstance(j, InnerJoin) or _by_equalities_alone(j)]


def _by_equalities_alone(join: SplitJoin) -> bool:
    return join.kind != "full" and join.condition is None


def hot_joins(block: Operator, counts: Counts) -> frozenset[Operator]:
    """The joins of a block that are hot, and can do something about it."""
    counting = Counting(counts)
    found = set()
    for join in flaggable(block):
        many = MANY if isinstance(join, InnerJoin) else MANY_SORTED
        pairs = counting.pairs(join) if counting.at_most(join) > many else None
        if pairs is not None and pairs.hot(many):
            found.add(join)
    return frozenset(found)


@dataclass(frozen=True)
class _End:
    """Columns of a scan, by number, in which the key of a join stands."""

    scan: int
    columns: tuple[int, ...]

    @property
    def names(self) -> list[str]:
        return [f"c{i}" for i in self.columns]


_Ends = tuple[_End, ...]


@dataclass(frozen=True)
class _Edge:
    """What a join is counted by: an end for every place where the key of a side stands."""

    left: _Ends
    right: _Ends
    null_safe: tuple[bool, ...] = ()

    def leaving(self, scan: int) -> tuple[_End, _Ends] | None:
        """The end at a scan, and those on the other side; None if there is none."""
        for near, far in ((self.left, self.right), (self.right, self.left)):
            for end in near:
                if end.scan == scan:
                    return end, far
        return None


class Counting:
    """Counts the pairs of joins by the key counts of their scans."""

    def __init__(self, counts: Counts) -> None:
        self._counts = cache(counts)
        self._known: dict[Join, tuple[_Edge, Pairs] | None] = {}

    def at_most(self, join: Join) -> float:
        """No fewer pairs than W, seen at once: rows, times the most that a key has further on."""
        edges = {j: next(_edges(j), None) for j in (join, *_below(join))}
        known = {j: e for j, e in edges.items() if e and len(e.left) == len(e.right) == 1}
        if len(known) < len(edges):
            return inf
        starts = (known[join].left[0].scan, known[join].right[0].scan)
        return min(self._rows(scan) * self._most(scan, known) for scan in starts)

    def _rows(self, scan: int) -> float:
        return float(self._counts(scan, ())[ALL][0].as_py())

    def _most(self, scan: int, edges: Mapping[Join, _Edge]) -> float:
        """How often a row of a scan comes out at most, joined along the edges."""
        found = 1.0
        for join, edge in edges.items():
            if way := edge.leaving(scan):
                far = way[1][0]
                beyond = {j: e for j, e in edges.items() if j != join}
                many = self._peak(far, any(edge.null_safe)) * self._most(far.scan, beyond)
                found *= max(many, 1.0) if isinstance(join, SplitJoin) else many
        return found

    def _peak(self, end: _End, null_safe: bool) -> float:
        """How many versions the most frequent key of an end has."""
        counts = self._counts(end.scan, tuple(dict.fromkeys(end.columns)))
        known = counts if null_safe else counts.drop_null()
        return float(np.max(known[ALL].to_numpy(), initial=0))

    def pairs(self, join: Join) -> Pairs | None:
        """W and W0 of a join; None where they are not known."""
        found = self._counted(join)
        return None if found is None else found[1]

    def _counted(self, join: Join) -> tuple[_Edge, Pairs] | None:
        """The edge that leaves fewest pairs, and how many these are."""
        if join not in self._known:
            below = self._edges_below(join)
            found = [(e, self._met(e, below)) for e in _edges(join)] if below is not None else []
            known = [(edge, pairs) for edge, pairs in found if pairs is not None]
            self._known[join] = min(known, key=lambda each: each[1].every, default=None)
        return self._known[join]

    def _edges_below(self, join: Join) -> dict[Join, _Edge] | None:
        """Those of the joins that multiply rows; None if one of them is not known."""
        found = {j: self._counted(j) for j in _below(join)}
        edges = {j: each[0] for j, each in found.items() if each is not None}
        return edges if len(edges) == len(found) else None

    def _met(self, edge: _Edge, below: Mapping[Join, _Edge]) -> Pairs | None:
        left, right = self._at(edge.left, below), self._at(edge.right, below)
        if left is None or right is None:
            return None
        times = _partners(left, right, edge.null_safe)
        if times is None:
            return None
        return Pairs(*(float(left[n].to_numpy() @ times[n]) for n in (ALL, STILL)))

    def _at(self, ends: _Ends, edges: Mapping[Join, _Edge]) -> pa.Table | None:
        """How often each key occurs at the ends, rows being joined along the edges.

        The key's columns come first, then the counts.
        """
        parts = [self._rooted(end, edges) for end in ends]
        known = [part for part in parts if part is not None]
        alike = len(known) == len(parts) and all(_types(p) == _types(known[0]) for p in known)
        if not known or not alike:
            return None
        return pa.concat_tables([p.rename_columns(known[0].column_names) for p in known])

    def _rooted(self, end: _End, edges: Mapping[Join, _Edge]) -> pa.Table | None:
        """The same at one end: the rows of its scan, times what each edge of it brings."""
        ways = [(j, way) for j, edge in edges.items() if (way := edge.leaving(end.scan))]
        own = dict.fromkeys(c for e in (end, *(near for _, (near, _) in ways)) for c in e.columns)
        rows = self._counts(end.scan, tuple(own))
        for join, (near, far) in ways:
            others = self._at(far, {j: edge for j, edge in edges.items() if j != join})
            keys = rows.select([*near.names, ALL, STILL])
            met = None if others is None else _partners(keys, others, edges[join].null_safe)
            if met is None:
                return None
            rows = _multiplied(rows, met, padded=isinstance(join, SplitJoin))
        return summed(rows, list(dict.fromkeys(end.names))).select([*end.names, ALL, STILL])


def _below(join: Join) -> list[Join]:
    """The joins below of which a row comes out once for every partner."""
    below = [o for side in join.operands for o in walk(side) if isinstance(o, Join)]
    return [j for j in below if isinstance(j, InnerJoin) or j.kind in ("left", "full")]


def _edges(join: Join) -> Iterator[_Edge]:
    """By all equalities at once where they link two scans; else by each that links places."""
    if not join.equalities:
        anywhere = [tuple(_End(s, ()) for s in sorted(entry(o))) for o in join.operands]
        yield _Edge(anywhere[0], anywhere[1])
        return
    safe = tuple(e.null_safe for e in join.equalities)
    left = [origin(join.left, e.left) or () for e in join.equalities]
    right = [origin(join.right, e.right) or () for e in join.equalities]
    both = _one_end(left), _one_end(right)
    if both[0] and both[1]:
        yield _Edge((both[0],), (both[1],), safe)
        return
    for near, far, null_safe in zip(left, right, safe, strict=True):
        ends = [tuple(_End(p.scan, (p.column,)) for p in places) for places in (near, far)]
        yield _Edge(ends[0], ends[1], (null_safe,))


def _one_end(columns: Sequence[tuple[Place, ...]]) -> _End | None:
    """Where all columns stand, if that is one scan."""
    places = [places[0] for places in columns if len(places) == 1]
    if len(places) < len(columns) or len({p.scan for p in places}) > 1:
        return None
    return _End(places[0].scan, tuple(p.column for p in places))


def _types(table: pa.Table) -> list[pa.DataType]:
    return [column.type for column in table.columns]


def _multiplied(rows: pa.Table, times: Mapping[str, np.ndarray], *, padded: bool) -> pa.Table:
    """The rows as often as they have partners; `padded`: at least once."""
    alone = times[ALL] == 0
    for name in (ALL, STILL):
        many = np.where(alone, 1.0, times[name]) if padded else times[name]
        place = rows.column_names.index(name)
        rows = rows.set_column(place, name, pa.array(rows[name].to_numpy() * many))
    return rows


def _partners(
    rows: pa.Table, others: pa.Table, null_safe: Sequence[bool]
) -> dict[str, np.ndarray] | None:
    """Per row, how many of the others have its key; None where keys cannot be compared here."""
    columns = {}
    known = np.ones(rows.num_rows, dtype=bool)
    for i, safe in enumerate(null_safe):
        both = _one_type(rows.column(i), others.column(i))
        if both is None:
            return None
        chunks = [chunk for side in both for chunk in side.chunks]
        columns[str(i)] = pa.chunked_array(chunks, both[0].type)
        if not safe:
            known &= both[0].is_valid().to_numpy()
    number = numbered(pa.table(columns)) if columns else np.zeros(len(rows) + len(others), int)
    own, theirs = number[: len(rows)], number[len(rows) :]
    many = int(number.max(initial=0)) + 1
    return {n: np.bincount(theirs, others[n].to_numpy(), many)[own] * known for n in (ALL, STILL)}


def _one_type(
    left: pa.ChunkedArray, right: pa.ChunkedArray
) -> tuple[pa.ChunkedArray, pa.ChunkedArray] | None:
    """Both in one type; whole numbers are widened."""
    if left.type == right.type:
        return left, right
    if pa.types.is_integer(left.type) and pa.types.is_integer(right.type):
        return left.cast(pa.int64()), right.cast(pa.int64())
    return None
