"""The file format of histories: one JSON object, read with a place for everything that is wrong.

    {"view": "SELECT ...",
     "relations": {"r1": {"source": "x", "columns": ["a", "b"], "rows": [[1, 2]]}, ...},
     "transactions": [{"id": "t1", "changes": [{"relation": "r1", "row": [1, 2], "count": -1}]}],
     "states": [[{"row": [1, 3], "count": 1}], ...]}

Relations have the names that the view's SQL calls them by: `r1`, or `sales.orders`. Equal rows are
summed; other keys are left alone. What is read fulfils all that `History` assumes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from steadyview.algebra import Bag, Row
from steadyview.checking.compiled_view import CompiledView, compiled
from steadyview.checking.history import History, Relation, Transaction
from steadyview.checking.json_text import JsonValue, parsed, written
from steadyview.checking.kinds import Kinds


def read(text: str) -> History:
    """The history; ConfigError with the place of what is wrong, ViewRefused for its SQL."""
    document = parsed(text)
    view = document.member("view").of(str)
    kinds = Kinds()
    relations = {
        name: _relation(name, node, kinds) for name, node in document.member("relations").members()
    }
    columns = tuple((name, relation.columns) for name, relation in relations.items())
    program = compiled(view, columns)
    transactions = _transactions(document.member("transactions"), relations, kinds)
    kinds.check_view(program)
    states = _states(document.member("states"), program, kinds)
    return History(view, relations, transactions, states)


def write(history: History) -> str:
    """The file's text, a line for every relation, transaction and state."""
    relations = [
        f"{written(name)}: {written(_relation_data(relation))}"
        for name, relation in history.relations.items()
    ]
    transactions = [
        written({"id": t.id, "changes": _changes_data(t.changes)}) for t in history.transactions
    ]
    states = [written(_counted_data(state)) for state in history.states]
    return (
        f'{{"view": {written(history.view)},\n'
        f' "relations": {{{_lines(relations)}}},\n'
        f' "transactions": [{_lines(transactions)}],\n'
        f' "states": [{_lines(states)}]}}\n'
    )


def _lines(items: Sequence[str]) -> str:
    return ",\n  ".join(items)


def _relation_data(relation: Relation) -> Mapping[str, object]:
    rows = [row for row, count in relation.rows for _ in range(count)]
    return {"source": relation.source, "columns": relation.columns, "rows": rows}


def _changes_data(changes: Mapping[str, Bag[Row]]) -> Sequence[object]:
    return [
        {"relation": name, **counted}
        for name, change in changes.items()
        for counted in _counted_data(change)
    ]


def _counted_data(bag: Bag[Row]) -> Sequence[Mapping[str, object]]:
    return [{"row": row, "count": count} for row, count in bag]


def _relation(name: str, node: JsonValue, kinds: Kinds) -> Relation:
    if not name:
        raise node.wrong("a relation must have a name")
    source = _name(node.member("source"))
    columns = tuple(_name(column) for column in node.member("columns").items())
    if not columns or len(set(columns)) < len(columns):
        raise node.member("columns").wrong("expected columns, each with a name of its own")
    rows = [_row(row, columns, kinds, name) for row in node.member("rows").items()]
    return Relation(source, columns, Bag.of(rows))


def _name(node: JsonValue) -> str:
    name: str = node.of(str)
    if not name:
        raise node.wrong("expected a name, found an empty text")
    return name


def _row(node: JsonValue, columns: Sequence[str], kinds: Kinds, owner: str) -> Row:
    items = node.items()
    if len(items) != len(columns):
        listed = ", ".join(columns)
        raise node.wrong(f"expected {len(columns)} values ({listed}), found {len(items)}")
    return tuple(kinds.value(item, owner, c) for item, c in zip(items, columns, strict=True))


def _count(node: JsonValue) -> int:
    count: int = node.of(int)
    if count == 0:
        raise node.wrong("a count of 0 says nothing")
    return count


def _transactions(
    node: JsonValue, relations: Mapping[str, Relation], kinds: Kinds
) -> list[Transaction]:
    held = {name: dict(relation.rows) for name, relation in relations.items()}
    transactions: list[Transaction] = []
    seen: set[str] = set()
    for item in node.items():
        number = _name(item.member("id"))
        if number in seen:
            raise item.member("id").wrong(f'there is already a transaction "{number}"')
        seen.add(number)
        changes = [_change(change, relations, kinds) for change in item.member("changes").items()]
        _take(item, changes, held)
        names = dict.fromkeys(name for name, _, _ in changes)
        bags = {n: Bag((row, count) for m, row, count in changes if m == n) for n in names}
        transactions.append(Transaction(number, {n: bag for n, bag in bags.items() if len(bag)}))
    return transactions


def _change(
    node: JsonValue, relations: Mapping[str, Relation], kinds: Kinds
) -> tuple[str, Row, int]:
    name = node.member("relation").of(str)
    if name not in relations:
        raise node.member("relation").wrong(f'there is no relation "{name}"')
    row = _row(node.member("row"), relations[name].columns, kinds, name)
    return name, row, _count(node.member("count"))


def _take(
    node: JsonValue, changes: Sequence[tuple[str, Row, int]], held: Mapping[str, dict[Row, int]]
) -> None:
    """Apply a transaction's net effect; no relation may owe a row after it."""
    for name, row, count in changes:
        held[name][row] = held[name].get(row, 0) + count
    for i, (name, row, count) in enumerate(changes):
        if held[name][row] < 0 and count < 0:
            change = node.member("changes").items()[i]
            there = held[name][row] - sum(n for m, r, n in changes if (m, r) == (name, row))
            raise change.wrong(
                f'"{name}" loses {written(row)} {-count} times and holds it {there} times'
            )


def _states(node: JsonValue, program: CompiledView, kinds: Kinds) -> list[Bag[Row]]:
    if not node.items():
        raise node.wrong("expected at least the initial state")
    columns = [column.name for column in program.shown]
    return [
        Bag(
            (_row(row.member("row"), columns, kinds, ""), _count(row.member("count")))
            for row in state.items()
        )
        for state in node.items()
    ]
