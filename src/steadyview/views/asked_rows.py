"""Which rows of a table a query needs at most: what a source can be asked for in place of all.

Only what a source can be trusted with: `column = constant` and `column IN (constants)` of a column
that sources find rows by, whole numbers and texts. The source may give more rows, never less; the
same condition is asked of its answer and of the log, so that one compensates the other exactly.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from steadyview.changes import RelationName, RelationSchema
from steadyview.errors import ViewRefused
from steadyview.plans.draft import Draft, RelationInput
from steadyview.plans.filter import Filter
from steadyview.plans.operator import walk
from steadyview.plans.scan import Scan
from steadyview.views.fusing import expression
from steadyview.views.parse import ViewText
from steadyview.views.queries import Reader
from steadyview.views.reading import read_query, without_tail
from steadyview.views.rows import Readable, Sight
from steadyview.views.trees import conjuncts, plain, unbracketed

_WHOLE = ("SMALLINT", "INT", "BIGINT")
_TEXT = re.compile(r"'[^'\\]*'")
_COLUMN = re.compile(r"t\d+_c(\d+)")
_LARGEST = {"SMALLINT": 1 << 15, "INT": 1 << 31, "BIGINT": 1 << 63}


@dataclass(frozen=True)
class AskedRows:
    """The rows whose value in a column, by number, is one of these."""

    column: int
    values: tuple[int | str, ...]


def asked_rows(
    sql: str,
    relations: Sequence[RelationSchema],
    views: Mapping[str, Sequence[tuple[str, str]]],
) -> dict[RelationName, AskedRows]:
    """By table, the rows that are enough for the query; a table that is needed whole is absent.

    `views`: the columns of the views that it reads too, with their types. Empty for what cannot be
    read as views are; whether Spark reads the text so is for others to ask.
    """
    source = ViewText("query", sql.strip().rstrip(";")).source()
    reader = Reader(source, Readable(relations, {}, views), share=False, asked=True)
    try:
        draft, _ = reader.draft(without_tail(read_query(source)), Sight())
    except ViewRefused:
        return {}
    drafts = (*reader.drafts.made, draft)
    read = Counter(i.relation for d in drafts for i in d.inputs if isinstance(i, RelationInput))
    known = {r.name: r for r in relations}
    return {
        table: found
        for d in drafts
        for table, condition in _conditions(d)
        if read[table] == 1 and (found := _asked(condition, known[table])) is not None
    }


def _conditions(draft: Draft) -> Iterator[tuple[RelationName, exp.Expression]]:
    """What every row of a table has to meet that is to be of any use."""
    for operator in walk(draft.block):
        if isinstance(operator, Filter) and isinstance(operator.operand, Scan):
            read = draft.inputs[operator.operand.number]
            if isinstance(read, RelationInput):
                for part in conjuncts(expression(operator.condition)):
                    yield read.relation, part


def _asked(condition: exp.Expression, relation: RelationSchema) -> AskedRows | None:
    if isinstance(condition, exp.EQ):
        sides = condition.this, condition.expression
        name = plain(sides[0]) or plain(sides[1])
        constants = [sides[1] if plain(sides[0]) else sides[0]]
    elif isinstance(condition, exp.In) and condition.args.get("query") is None:
        name, constants = plain(condition.this), list(condition.expressions)
    else:
        return None
    found = _COLUMN.fullmatch(name or "")
    if found is None:
        return None
    column = relation.columns[int(found[1])]
    values = [_value(unbracketed(c), column.type) for c in constants]
    known = tuple(dict.fromkeys(v for v in values if v is not None))
    if not column.keyable or not known or None in values:
        return None
    return AskedRows(int(found[1]), known)


def _value(constant: exp.Expression, type_: str) -> int | str | None:
    """The constant as a value of the type; None where it is none that is surely compared so."""
    if not isinstance(constant, exp.Literal):
        return None
    text = str(constant.this)
    if type_ in _WHOLE and text.isascii() and text.isdigit():
        return int(text) if int(text) < _LARGEST[type_] else None
    return text[1:-1] if type_ == "STRING" and _TEXT.fullmatch(text) else None
