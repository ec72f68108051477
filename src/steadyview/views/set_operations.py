"""UNION, INTERSECT, EXCEPT and DISTINCT.

UNION ALL is part of a block. The others count rows: one count per row for UNION and DISTINCT, one
per side for INTERSECT and EXCEPT, and show a row as often as the counts say.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from steadyview.plans.aggregates import Aggregate, Grouped
from steadyview.plans.draft import Draft
from steadyview.views.binding import unwrapped
from steadyview.views.blocks import Block
from steadyview.views.dialect import written
from steadyview.views.relational import Added, Projected, finished
from steadyview.views.rows import BlockRows, Named, Sight
from steadyview.views.trees import all_names, column, place, unbracketed

if TYPE_CHECKING:
    from steadyview.views.queries import Reader

_TIMES = {
    ("except", True): "CASE WHEN l > 0 AND r = 0 THEN 1 ELSE 0 END",
    ("intersect", True): "CASE WHEN l > 0 AND r > 0 THEN 1 ELSE 0 END",
    ("except", False): "GREATEST(l - r, 0)",
    ("intersect", False): "LEAST(l, r)",
}
"""How often a row is shown that one side has l times and the other r times; True: DISTINCT."""


def adds(query: exp.Expression) -> bool:
    """Whether the query is a UNION ALL."""
    return isinstance(query, exp.Union) and not query.args.get("distinct")


def added(reader: Reader, query: exp.Expression, sight: Sight, block: Block) -> BlockRows:
    """The bag sum of the queries of a UNION, as part of the block; ALL or not."""
    every = not adds(query)
    parts = [p for side in (query.this, query.expression) for p in _summands(side, every=every)]
    read = [reader.query(part, sight.apart(), block) for part in parts]
    width = len(read[0].columns)
    for part, rows in zip(parts, read, strict=True):
        _check_width(reader, part, len(rows.columns), width)
    sides = tuple(_projected(rows, block) for rows in read)
    columns = tuple(block.fresh("p") for _ in range(width))
    named = [replace(c, value=column(n)) for c, n in zip(read[0].columns, columns, strict=True)]
    return BlockRows(Added(sides, columns), columns=tuple(named))


def _summands(query: exp.Expression, *, every: bool) -> list[exp.Expression]:
    """The queries of nested UNION ALLs; with `every` of all UNIONs: their duplicates go anyway."""
    bare = unwrapped(query)
    if isinstance(bare, exp.Union) and (every or adds(bare)) and not bare.args.get("with_"):
        sides = (bare.this, bare.expression)
        return [part for side in sides for part in _summands(side, every=every)]
    return [query]


def set_operation(
    reader: Reader, query: exp.SetOperation, sight: Sight
) -> tuple[Draft, tuple[Named, ...]]:
    """UNION, INTERSECT and EXCEPT as a draft."""
    block = Block()
    if isinstance(query, exp.Union):
        return keyed(reader, added(reader, query, sight, block), block, query)
    read = [reader.query(side, sight, block) for side in (query.this, query.expression)]
    width = len(read[0].columns)
    _check_width(reader, query.expression, len(read[1].columns), width)
    sides = [_tallied(read[0], block, "1", "0"), _tallied(read[1], block, "0", "1")]
    columns = tuple(block.fresh("p") for _ in range(width + 2))
    tallies = (Aggregate("l", "tally", columns[-2]), Aggregate("r", "tally", columns[-1]))
    keys = tuple((f"g{i}", c) for i, c in enumerate(columns[:width]))
    outputs = tuple((f"c{i}", f"g{i}") for i in range(width))
    times = _TIMES[query.key, bool(query.args.get("distinct"))]
    operator = finished(Added(tuple(sides), columns), frozenset(columns))
    draft = reader.made(operator, block, Grouped(keys, tallies, outputs, times), query)
    return draft, read[0].columns


def distinct(reader: Reader, query: exp.Select, sight: Sight) -> tuple[Draft, tuple[Named, ...]]:
    """SELECT DISTINCT as a draft."""
    block = Block()
    every = query.copy()
    every.set("distinct", None)
    every.set("with_", None)
    return keyed(reader, reader.query(every, sight, block), block, query)


def keyed(
    reader: Reader, rows: BlockRows, block: Block, query: exp.Expression
) -> tuple[Draft, tuple[Named, ...]]:
    """Every row once."""
    keys = tuple((f"g{i}", written(unbracketed(c.value))) for i, c in enumerate(rows.columns))
    outputs = tuple((f"c{i}", f"g{i}") for i in range(len(keys)))
    operator = finished(rows.relation, all_names(c.value for c in rows.columns))
    return reader.made(operator, block, Grouped(keys, (), outputs), query), rows.columns


def _projected(rows: BlockRows, block: Block) -> Projected:
    return Projected(rows.relation, tuple((block.fresh("p"), c.value) for c in rows.columns))


def _tallied(rows: BlockRows, block: Block, left: str, right: str) -> Projected:
    """The side's columns, and what each of its rows adds to the two counts."""
    side = _projected(rows, block)
    tallies = tuple((block.fresh("p"), exp.Literal.number(n)) for n in (left, right))
    return Projected(side.below, (*side.outputs, *tallies))


def _check_width(reader: Reader, query: exp.Expression, width: int, wanted: int) -> None:
    if width != wanted:
        fact = f"combines a SELECT of {wanted} columns with one of {width}"
        raise reader.source.refusal("SET_OPERATION", place(query), fact)
