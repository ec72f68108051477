"""A run as a space-time diagram: a lane for the warehouse and one for every source, time downward.

    *         something happens there            |---->    a query is sent
    *<---|    a message arrives

A message leaves a source with the event that made it and arrives later; each line tells in words
what happened. Nothing is wider than 100 columns.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from steadyview.algebra import Bag, Row
from steadyview.maintenance.bag_view_algebra import Bound, JoinedRows
from steadyview.maintenance.events import Ask, Read
from steadyview.simulation.blueprints import COLUMNS
from steadyview.simulation.running import Event, Restart
from steadyview.simulation.seeds import Simulated
from steadyview.simulation.sources import Asked, Freeze, Lookup, Query, Reply, Report
from steadyview.simulation.worlds import World

_WIDTH = 100
_WAREHOUSE, _LANE, _GAP = 11, 7, 2


def diagram(run: Simulated) -> list[str]:
    """The view, the rows to begin with, and every event; the run has to be a verbose one."""
    world = run.world
    lanes = _Lanes(tuple(dict.fromkeys(world.blueprint.source_names)))
    words = _Words(world)
    lines = [*wrapped(world.blueprint.view), "", *_initial(world), ""]
    begin = f"the view shows state 0: {shown(run.trace.states[0])}"
    lines += [lanes.heading(), *lanes.line(-1, -1, begin)]
    for event in run.trace.events:
        lines += lanes.line(*lanes.marks(event), words.of(event))
    return [line.rstrip() for line in lines]


def wrapped(text: str) -> list[str]:
    """On as many lines as it needs."""
    return textwrap.wrap(text, _WIDTH, subsequent_indent="    ")


def _initial(world: World) -> list[str]:
    columns = ", ".join(COLUMNS)
    lines = []
    for name, source, rows in zip(
        world.blueprint.names, world.blueprint.source_names, world.rows, strict=True
    ):
        lines += wrapped(f"{name}({columns}) at {source}: {shown(rows)}")
    return lines


class _Lanes:
    """The left part of every line. Lane 0 is the warehouse's."""

    def __init__(self, sources: Sequence[str]) -> None:
        self._sources = sources
        self._places = [_WAREHOUSE // 2 + _LANE * i for i in range(len(sources) + 1)]
        self._words_at = self._places[-1] + _LANE // 2 + _GAP

    def heading(self) -> str:
        line = [" "] * self._words_at
        for place, name in zip(self._places, ("warehouse", *self._sources), strict=True):
            start = place - len(name) // 2
            line[start : start + len(name)] = name
        return "".join(line)

    def marks(self, event: Event) -> tuple[int, int]:
        """(from lane, to lane): the same where nothing is sent."""
        lane = self._sources.index(event.source) + 1 if event.source else 0
        if event.what == "asks":
            return 0, lane
        return lane, 0 if event.what == "delivers" else lane

    def line(self, start: int, end: int, words: str) -> list[str]:
        """The lanes with a mark or an arrow, and the words beside them, on as many lines."""
        room = _WIDTH - self._words_at
        first, *more = textwrap.wrap(words, room, subsequent_indent="  ") or [""]
        quiet = self._drawn(-1, -1)
        return [self._drawn(start, end) + first, *(quiet + text for text in more)]

    def _drawn(self, start: int, end: int) -> str:
        line = [" "] * self._words_at
        for place in self._places:
            line[place] = "|"
        if start == end >= 0:
            line[self._places[start]] = "*"
        elif start < end:
            for place in range(self._places[start] + 1, self._places[end]):
                line[place] = "-"
            line[self._places[end] - 1] = ">"
        elif start > end >= 0:
            for place in range(self._places[end] + 1, self._places[start]):
                line[place] = "-"
            line[self._places[end] + 1] = "<"
            line[self._places[end]] = "*"
        return "".join(line)


class _Words:
    """What happened, in words. States are numbered as in the history; the initial one is 0."""

    def __init__(self, world: World) -> None:
        self._names = world.blueprint.names
        self._uses = world.blueprint.uses
        self._twice = len(set(self._uses)) < len(self._uses)
        self._states = 0
        self._of: dict[str, Callable[[Event], str]] = {
            "executes": self._executes,
            "evaluates": self._evaluates,
            "delivers": self._delivers,
            "asks": self._asks,
            "installs": self._installs,
            "crashes": self._crashes,
            "ticks": lambda _: "a period is over",
        }

    def of(self, event: Event) -> str:
        return self._of[event.what](event)

    def _executes(self, event: Event) -> str:
        report: Report = event.data
        changes = [
            f"{'+' if c.sign > 0 else '-'}{self._names[c.relation]}{_row(c.row)}"
            for c in report.changes
        ]
        whole = "" if report.parts == 1 else "its part of "
        return f"{event.source} executes {whole}{report.transaction}: {' '.join(changes)}"

    def _evaluates(self, event: Event) -> str:
        query, reply = event.data
        if isinstance(query, Freeze):
            hidden = ", ".join(sorted(reply.answer[0]))
            without = f"; {hidden} not to be seen yet" if hidden else ""
            return f"{event.source} keeps this state, q{reply.label}{without}"
        answers = " and ".join(self._rows(answer) for answer in reply.answer)
        return f"{event.source} evaluates q{reply.label}: {answers}"

    def _delivers(self, event: Event) -> str:
        message: Report | Reply = event.data
        if isinstance(message, Reply):
            return f"the answer of q{message.label} arrives"
        part = "" if message.parts == 1 else f", the part of {event.source},"
        return f"{message.transaction}{part} arrives"

    def _installs(self, event: Event) -> str:
        self._states += 1
        return f"installs state {self._states}: {shown(event.data)}"

    def _asks(self, event: Event) -> str:
        asked: Asked = event.data
        return f"asks {event.source}, q{asked.label}: {self._query(asked.query)}"

    def _query(self, query: Query) -> str:
        if isinstance(query, Ask):
            return " and ".join(self._joined(part.known, part.steps) for part in query.parts)
        if isinstance(query, Read):
            return " and ".join(self._position(position) for position in query.positions)
        if isinstance(query, Freeze):
            return "keep a state"
        assert isinstance(query, Lookup)
        if query.column is None:
            return f"{self._names[query.relation]} as kept"
        keys = ", ".join(map(str, sorted(query.keys)))
        return f"{self._names[query.relation]} as kept, {COLUMNS[query.column]} in ({keys})"

    def _joined(self, known: Any, steps: Iterable[tuple[int, Any]]) -> str:
        parts = [self._rows(known)]
        parts += [self._position(p) if rows is None else shown(rows) for p, rows in steps]
        return " |x| ".join(parts)

    def _rows(self, rows: Any) -> str:
        """Joined rows with the name of each bound relation; rows of one relation as they are."""
        return _braced(rows.rows, self._bound) if isinstance(rows, JoinedRows) else shown(rows)

    def _bound(self, bound: Bound) -> str:
        return "".join(
            f"{self._position(position)}{_row(row)}"
            for position, row in enumerate(bound)
            if row is not None
        )

    def _position(self, position: int) -> str:
        return f"p{position}" if self._twice else self._names[self._uses[position]]

    def _crashes(self, event: Event) -> str:
        restart: Restart = event.data
        undone = f" from state {restart.state}" if restart.state < self._states else ""
        self._states = restart.state
        names = ", ".join(update.transaction for update in restart.again)
        return f"crashes and starts again{undone}; delivered again: {names or 'nothing'}"


def shown(rows: Bag[Row]) -> str:
    """Rows with their signed counts.

    >>> shown(Bag([((1, None), 1), ((2, 3), -2)]))
    '{(1,NULL), -2(2,3)}'
    """
    return _braced(rows, _row)


def _braced(rows: Bag[Any], text: Callable[[Any], str]) -> str:
    return "{" + ", ".join(_count(count) + text(row) for row, count in rows) + "}"


def _count(count: int) -> str:
    return {1: "", -1: "-"}.get(count, str(count))


def _row(row: Row) -> str:
    return "(" + ",".join("NULL" if value is None else str(value) for value in row) + ")"
