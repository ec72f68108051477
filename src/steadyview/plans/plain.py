"""What a node means at one moment, in plain SQL: the rows and the state that it must have there.

The yardstick of `verify --nodes`. It knows nothing of versions, changes or states: every operator
is the SQL operator that it stands for, over whole inputs.
"""

from __future__ import annotations

from collections.abc import Sequence

from steadyview.plans.constant import Constant
from steadyview.plans.extreme import Extreme
from steadyview.plans.filter import Filter
from steadyview.plans.fold import Fold
from steadyview.plans.inner_join import Equality, InnerJoin
from steadyview.plans.node import Node
from steadyview.plans.operator import Operator
from steadyview.plans.project import Project
from steadyview.plans.scan import Scan, column
from steadyview.plans.split_join import SplitJoin
from steadyview.plans.union_all import UnionAll

_JOINS = {"left": "LEFT", "full": "FULL", "semi": "LEFT SEMI", "anti": "LEFT ANTI"}


def rows(node: Node, inputs: Sequence[str]) -> str:
    """The node's visible rows, one per copy. `inputs[n]`: a FROM item with what scan n reads."""
    block = _block(node.block, inputs)
    if node.fold is None:
        return block
    return _shown(node.fold, _state(node.fold, block))


def state(node: Node, inputs: Sequence[str]) -> str:
    """The state that the node must have: keys and sums."""
    assert node.fold is not None
    return _state(node.fold, _block(node.block, inputs))


def _state(fold: Fold, block: str) -> str:
    keys = [f"{k.sql} AS {k.name}" for k in fold.keys]
    sums = [
        f"CAST(COALESCE(SUM(CAST({s.sql} AS {s.type})), 0) AS {s.type}) AS {s.name}"
        for s in fold.all_sums
    ]
    by = f" GROUP BY {', '.join(k.sql for k in fold.keys)}" if fold.keys else ""
    return f"SELECT {', '.join([*keys, *sums])} FROM ({block}){by}"


def _shown(fold: Fold, kept: str) -> str:
    if fold.values:
        values = ", ".join(f"{sql} AS {name}" for name, sql in fold.values)
        kept = f"SELECT *, {values} FROM ({kept})"
    having = f" AND ({fold.having})" if fold.having else ""
    counted = f"SELECT *, {fold.times} AS _times FROM ({kept}) WHERE ({fold.times}) > 0{having}"
    copies = "LATERAL VIEW EXPLODE(ARRAY_REPEAT(0, CAST(_times AS INT))) _copies AS _copy"
    listed = ", ".join(f"{sql} AS {name}" for name, sql in fold.outputs)
    return f"SELECT {listed} FROM ({counted}) {copies}"


def _block(operator: Operator, inputs: Sequence[str]) -> str:
    below = [f"({_block(o, inputs)})" for o in operator.operands]
    if isinstance(operator, Scan):
        listed = ", ".join(f"c{i} AS {column(operator.number, i)}" for i in operator.used)
        return f"SELECT {listed or '1 AS _one'} FROM {inputs[operator.number]}"
    if isinstance(operator, Constant):
        return _constant(operator)
    if isinstance(operator, Filter):
        return f"SELECT * FROM {below[0]} WHERE {operator.condition}"
    if isinstance(operator, Project):
        listed = ", ".join(f"{sql} AS {name}" for name, sql in operator.outputs)
        return f"SELECT {listed} FROM {below[0]}"
    if isinstance(operator, UnionAll):
        parts = zip(operator.parts, below, strict=True)
        return " UNION ALL ".join(_part(operator, part, rows) for part, rows in parts)
    if isinstance(operator, Extreme):
        return _extreme(operator, below[0])
    assert isinstance(operator, InnerJoin | SplitJoin)
    return _joined(operator, *below)


def _constant(constant: Constant) -> str:
    return " UNION ALL ".join(
        "SELECT " + ", ".join(f"{e} AS {c}" for c, e in zip(constant.columns, row, strict=True))
        for row in constant.rows
    )


def _part(union: UnionAll, part: Operator, rows: str) -> str:
    names = zip(part.columns, union.columns, strict=True)
    return f"SELECT {', '.join(f'{old} AS {new}' for old, new in names)} FROM {rows}"


def _extreme(extreme: Extreme, rows: str) -> str:
    keys = ", ".join(extreme.keys)
    value = f"{extreme.function.upper()}({extreme.column}) AS {extreme.name}"
    return f"SELECT {keys}, {value} FROM {rows} GROUP BY {keys}"


def _joined(join: InnerJoin | SplitJoin, left: str, right: str) -> str:
    on = " AND ".join([*map(_equal, join.equalities), *filter(None, [_bracketed(join.condition)])])
    on = on or "TRUE"
    listed = ", ".join(join.columns)
    if isinstance(join, InnerJoin):
        return f"SELECT {listed} FROM {left} JOIN {right} ON {on}"
    if join.kind == "mark":
        columns = ", ".join(join.left.columns)
        met = f"EXISTS (SELECT 1 FROM {right} WHERE {on})"
        return f"SELECT {columns}, {met} AS {join.mark} FROM {left}"
    return f"SELECT {listed} FROM {left} {_JOINS[join.kind]} JOIN {right} ON {on}"


def _bracketed(condition: str | None) -> str | None:
    return f"({condition})" if condition else None


def _equal(equality: Equality) -> str:
    return f"{equality.left} {'<=>' if equality.null_safe else '='} {equality.right}"
