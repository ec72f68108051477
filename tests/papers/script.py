"""Scripts of the papers' examples: what the warehouse receives, and what it does then.

    # a claim, and where the paper makes it
    view SELECT ... FROM r1, r2
    r1 at x (a* b) = (1,2)          a relation: source, columns (* for those of the key), first rows
    algorithm strobe                any name of `maintenance.algorithms`
    level strong                    what the checker must call the whole history
    lookups 2                       how many queries were sent in all

    1. receive U1 from y: +r2(2,3)
    ----
    ask x: r1 join {(2,3)}          actions, in order; then the algorithm's variables (`showing`)

`receive T (1 of 2) from y: ...` is one part of a global transaction. `receive answer from x` is the
answer to the oldest open query of x. A source executes an update, or evaluates a query, at the
moment its message is received: under FIFO channels any earlier moment gives the same run.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from steadyview.algebra import Bag, Row
from steadyview.changes import Column, RelationName, RelationSchema
from steadyview.checking import History, Relation, Transaction
from steadyview.maintenance.algorithms import kind_of
from steadyview.maintenance.bag_view_algebra import BagViewAlgebra, Compiled, Handle
from steadyview.maintenance.events import Action, Ask, Change, Install, Update
from steadyview.maintenance.positions import Positions
from steadyview.views.analyze import analyze
from steadyview.views.interpret import ColumnOf, column_equality
from steadyview.views.join_tree import JoinTree, join_tree
from steadyview.views.parse import parse_view
from tests.papers.showing import Shown

RELATION = re.compile(r"(\w+) at (\w+) \(([\w* ]+)\) =(.*)")
UPDATE = re.compile(r"receive (\w+)(?: \(\d of (\d)\))? from (\w+): (.*)")
ANSWER = re.compile(r"receive answer from (\w+)")
ROW = re.compile(r"\(([\d,]*)\)")
CHANGE = re.compile(r"([+-])(\w+)\(([\d,]+)\)")


class Step(NamedTuple):
    """One event and the lines that must follow from it."""

    event: str
    expected: list[str]


class Table(NamedTuple):
    """One relation of the example."""

    name: str
    source: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    rows: Bag[Row]


@dataclass
class Script:
    """A file, read."""

    view: str = ""
    algorithm: str = ""
    level: str = ""
    lookups: int = 0
    tables: list[Table] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)


def read(path: Path) -> Script:
    """The script in a file."""
    script = Script()
    for block in path.read_text().split("\n\n"):
        lines = [line for line in block.strip().splitlines() if not line.startswith("#")]
        if "----" in lines:
            at = lines.index("----")
            event = " ".join(lines[:at]).partition(". ")[2]
            script.steps.append(Step(event, lines[at + 1 :]))
        else:
            _heading(script, lines)
    return script


def _heading(script: Script, lines: list[str]) -> None:
    for line in lines:
        word, _, rest = line.partition(" ")
        if found := RELATION.fullmatch(line):
            name, source, columns, rows = found.groups()
            plain = tuple(column.rstrip("*") for column in columns.split())
            key = tuple(column[:-1] for column in columns.split() if column.endswith("*"))
            first = Bag.of(_row(row) for row in ROW.findall(rows))
            script.tables.append(Table(name, source, plain, key, first))
        else:
            assert hasattr(script, word), line
            setattr(script, word, int(rest) if word == "lookups" else rest)


def _row(text: str) -> Row:
    return tuple(int(value) for value in text.split(","))


class Play:
    """A script's world, and the algorithm in it."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self._tables = {table.name: table for table in script.tables}
        self._names = {t.name: RelationName(t.source, (t.name,)) for t in script.tables}
        self._rows = {table.name: table.rows for table in script.tables}
        compiled = self._compiled()
        occurrences = compiled.definition.occurrences
        self._at = [occurrence.relation.name.source for occurrence in occurrences]
        near = Positions.of_view(compiled.definition, compiled.tree).neighbours
        self._positions = Positions(tuple(self._names[name] for name in self._at), near)
        self._algebra = BagViewAlgebra(compiled)
        self._shown = Shown(self._at, _equal_columns(compiled.tree))
        self._view = self._evaluated()
        self.states = [self._view]
        self._algorithm = self._made()
        self._open: dict[str, deque[Ask[Handle]]] = {t.source: deque() for t in script.tables}
        self._transactions: dict[str, list[tuple[str, Row, int]]] = {}
        self._updates = 0
        self.lookups = 0

    def happens(self, event: str) -> list[str]:
        """Let one event happen; what the warehouse does then, and its variables."""
        if found := ANSWER.fullmatch(event):
            ask = self._open[found[1]].popleft()
            answer = [self._answered(part) for part in ask.parts]
            lines = [f"answer = {'; '.join(map(self._shown.bag, answer))}"]
            actions = self._algorithm.answered(ask.query, answer)
        else:
            lines = []
            actions = self._algorithm.received(self._executed(event))
        lines += [line for action in actions for line in self._acted(action)]
        return lines + self._shown.variables(self._algorithm)

    def history(self) -> History:
        """What the checker is told."""
        relations = {t.name: Relation(t.source, t.columns, t.rows) for t in self.script.tables}
        transactions = []
        for name, changes in self._transactions.items():
            made: dict[str, list[tuple[Row, int]]] = {}
            for relation, row, count in changes:
                made.setdefault(relation, []).append((row, count))
            transactions.append(Transaction(name, {r: Bag(rows) for r, rows in made.items()}))
        return History(self.script.view, relations, transactions, self.states)

    def _compiled(self) -> Compiled:
        schemas = [
            RelationSchema(
                RelationName(t.name, ()), tuple(Column(c, "BIGINT", "") for c in t.columns)
            )
            for t in self.script.tables
        ]
        definition = analyze(parse_view("v", self.script.view), schemas)
        tree = join_tree(definition)
        return Compiled(definition, tree, self._keys(definition, tree))

    def _keys(self, definition, tree) -> tuple[tuple[tuple[int, int], ...], ...]:
        """Where the view shows each key column; an equal column will do."""
        outputs = [column_equality(f"{o.sql} = {o.sql}")[0] for o in definition.outputs]
        same = _equal_columns(tree)
        keys = []
        for position, occurrence in enumerate(definition.occurrences):
            table = self._tables[occurrence.relation.name.source]
            columns = [table.columns.index(name) for name in table.key]
            at = [_output(outputs, same, (position, column)) for column in columns]
            keys.append(tuple(zip(columns, at, strict=True)))
        return tuple(keys)

    def _made(self):
        kind = kind_of(self.script.algorithm)
        keyed = all(table.key for table in self.script.tables)
        return kind.make(self._positions, self._algebra, self._view, keyed)

    def _executed(self, event: str) -> Update[Handle]:
        """The source executes it; the message about it."""
        found = UPDATE.fullmatch(event)
        assert found, event
        name, parts, source, text = found.groups()
        changes = []
        for sign, relation, row in ((s, r, _row(v)) for s, r, v in CHANGE.findall(text)):
            assert self._tables[relation].source == source, event
            count = 1 if sign == "+" else -1
            self._rows[relation] += Bag([(row, count)])
            self._transactions.setdefault(name, []).append((relation, row, count))
            changes.append(Change(self._names[relation], Bag.of([row]), inserted=count > 0))
        self._updates += 1
        return Update(self._updates, source, name, tuple(changes), int(parts or 1))

    def _answered(self, part) -> Handle:
        """The source evaluates it now."""
        known = part.known
        for position, rows in part.steps:
            base = self._rows[self._at[position]] if rows is None else rows
            known = self._algebra.join(known, position, base)
        return known

    def _acted(self, action: Action[Handle]) -> list[str]:
        if isinstance(action, Install):
            self._view += action.change
            self.states.append(self._view)
            return [f"install: {self._shown.bag(self._view)}"]
        self.lookups += 1
        self._open[action.source].append(action)
        return [f"ask {action.source}: {'; '.join(map(self._shown.part, action.parts))}"]

    def _evaluated(self) -> Bag[Row]:
        joined = self._algebra.seed(0, self._rows[self._at[0]])
        for position in self._positions.outward(0):
            joined = self._algebra.join(joined, position, self._rows[self._at[position]])
        return self._algebra.project(joined)


def _equal_columns(tree: JoinTree) -> list[tuple[ColumnOf, ColumnOf]]:
    pairs = [column_equality(sql) for sql, _ in tree.conditions]
    return [pair for pair in pairs if pair is not None]


def _output(outputs, same, column) -> int:
    equal = [column, *(b if a == column else a for a, b in same if column in (a, b))]
    return next(outputs.index(c) for c in equal if c in outputs)


def written(path: Path) -> str:
    """The file's text with what happens now in place of what is expected."""
    play, blocks = Play(read(path)), []
    for block in path.read_text().strip().split("\n\n"):
        head, rule, _ = block.partition("\n----")
        event = head.splitlines()[-1].partition(". ")[2]
        blocks.append("\n".join([head + rule, *play.happens(event)]) if rule else block)
    return "\n\n".join(blocks) + "\n"
