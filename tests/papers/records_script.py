"""Scripts of Jacobsen et al.'s examples: what happens when, and what each way of propagating does.

    # a claim, and where the paper makes it
    first k1 x1 100                     a base record at the beginning; of another relation: R k1 y1
    log A: k1, k2                       which base records' entries go to which manager
    SUM, no TAS reaches none            any way of the simulator, or a culprit by its name
    SUM, counter reaches strong

    1. k2 becomes x2 200                or: k2 is deleted; `for B` at the end: through that manager
    ----
    2. A is about to write x1           it goes on until just before
    ----
    SUM, no TAS: A scans x1: 5          what was done, for each of them

`A goes on` until it has nothing to do, and registers it; `A goes on with one entry`, and registers
it; `A scans`, `A writes` once and is held still then; `A dies`, and another one begins behind what
is registered; `C copies A`: so does C, while A goes on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from steadyview.checking.records import RecordHistory, judge_records
from steadyview.checking.records.sentences import said
from steadyview.maintenance.records.requests import (
    ReadBaseRecord,
    ReadLogEnd,
    RegisterPositions,
    ScanGroup,
    Stamp,
    StoredRecord,
)
from steadyview.maintenance.records.view_manager import ViewManager
from steadyview.simulation.records import RECORD_WAYS, RecordWay
from steadyview.simulation.records.base_tables import BaseTables
from steadyview.simulation.records.worlds import RecordWorld
from tests.simulation.records.culprits import CULPRITS

WAYS = {way.name: way for way in RECORD_WAYS.values()}
WAYS |= {culprit.name: culprit.way for culprit in CULPRITS}
CLAIM = re.compile(r"(.+) reaches (\w+)")
BECOMES = re.compile(r"(?:([LRS]) )?(\w+) becomes (.+?)(?: for (\w))?")
DELETED = re.compile(r"(?:([LRS]) )?(\w+) is deleted(?: for (\w))?")
ABOUT = re.compile(r"(\w) is about to write (\w+)")


@dataclass
class Script:
    """A file, read. `first`: rows by base record; `managers` by base record."""

    first: dict = field(default_factory=dict)
    managers: dict = field(default_factory=dict)
    claims: dict[str, str] = field(default_factory=dict)
    steps: list[tuple[str, list[str]]] = field(default_factory=list)


def read(path: Path) -> Script:
    """The script in a file."""
    script = Script()
    for block in path.read_text().strip().split("\n\n"):
        lines = [line for line in block.splitlines() if not line.startswith("#")]
        if lines and re.match(r"\d+\. ", lines[0]):
            script.steps.append((lines[0].partition(". ")[2], lines[2:]))
        else:
            for line in lines:
                _heading(script, line)
    for base in script.managers:
        script.first.setdefault(base, None)
    return script


def _heading(script: Script, line: str) -> None:
    word, _, rest = line.partition(" ")
    if word == "first":
        relation, key, row = row_of(rest)
        script.first[relation, key] = row
    elif word == "log":
        manager, _, keys = rest.partition(": ")
        for key in keys.split(", "):
            relation, _, name = key.rpartition(" ")
            script.managers[relation or "R", name] = manager
    else:
        name, level = CLAIM.fullmatch(line).groups()
        script.claims[name] = level


def row_of(text: str) -> tuple[str, str, tuple]:
    """Relation, key and row."""
    words = text.split()
    relation = words.pop(0) if words[0] in ("L", "R", "S") else "R"
    return relation, words[0], tuple(int(w) if w.isdigit() else w for w in words)


class Play:
    """A script under one way."""

    def __init__(self, script: Script, way: RecordWay) -> None:
        self._way, self._script = way, script
        names = sorted(set(script.managers.values()))
        buckets = {base: names.index(manager) for base, manager in script.managers.items()}
        self._world = RecordWorld(dict(script.first), [], buckets)
        self._base = BaseTables(self._world)
        first = way.first(self._world).items()
        records = {key: StoredRecord(fields, Stamp(way.tas.first)) for key, fields in first}
        self._store = way.store(way.tas, way.shows, records, way.additive)
        self._lanes: dict[str, list] = {name: [] for name in names}
        self._managers: dict[str, ViewManager] = {}
        self._asked: dict[str, list] = {}
        self._lane: dict[str, str] = {}
        for name in names:
            self._begins(name, name)

    def happens(self, event: str) -> list[str]:
        """Let one event happen; what was done then."""
        if found := BECOMES.fullmatch(event):
            relation, key, values, manager = found.groups()
            row = row_of(f"{relation or 'R'} {key} {values}")[2]
            return self._change((relation or "R", key), row, manager)
        if found := DELETED.fullmatch(event):
            return self._change((found[1] or "R", found[2]), None, found[3])
        if found := ABOUT.fullmatch(event):
            return self._goes_on(found[1], until=found[2])
        name, _, verb = event.partition(" ")
        if verb.startswith("copies "):
            return self._begins(name, verb.split()[1])
        if verb == "scans":
            return self._goes_on(name, scan=True)
        if verb == "dies":
            return self._begins(name, self._lane[name])
        if verb == "writes":
            return self._goes_on(name, until="", write=True)
        return self._goes_on(name, entries=1 if verb.endswith("one entry") else 99)

    @property
    def level(self) -> str:
        """What the history reached; complete is strong here."""
        history = RecordHistory(self._way.judged, self._world.timelines(), self._store.shown)
        return judge_records(history).level.replace("complete", "strong")

    def _change(self, base: tuple[str, str], row: Any, through: str | None) -> list[str]:
        self._world.changes.append((base, row))
        lane = through or self._script.managers[base]
        entry = self._base.change()
        self._lanes[lane].append(entry)
        for name, manager in self._managers.items():
            if self._lane[name] == lane:
                manager.received(lane, [entry])
        return []

    def _begins(self, name: str, lane: str) -> list[str]:
        position = self._store.registered.get(lane, 0)
        manager = self._way.manager(self._way.program(), {lane: position})
        manager.received(lane, self._lanes[lane])
        self._managers[name], self._asked[name], self._lane[name] = manager, [], lane
        return []

    def _goes_on(
        self,
        name: str,
        *,
        until: str = "",
        write: bool = False,
        scan: bool = False,
        entries: int = 99,
    ) -> list[str]:
        manager, lines = self._managers[name], []
        done = 0
        while True:
            if not self._asked[name]:
                request = manager.registering()
                if request is not None:
                    self._store.asked(request)
                    done += 1
                if done == entries:
                    return lines
                self._asked[name] += manager.begin()
                if not self._asked[name]:
                    return lines
                continue
            number, request = self._asked[name].pop()
            if until and is_write(request) and request.key == until:
                self._asked[name].append((number, request))
                return lines
            answer, told = self._answer(name, request)
            lines += told
            self._asked[name] += manager.answered(number, answer)
            if (write and is_write(request)) or (scan and isinstance(request, ScanGroup)):
                return lines

    def _answer(self, name: str, request: Any) -> tuple[Any, list[str]]:
        if isinstance(request, ScanGroup):
            scan = self._base.scan(request.key, self._way.before)
            found = said((scan.first,) if scan.count else None)
            return scan, [f"{name} scans {request.key}: {found}"]
        if isinstance(request, ReadLogEnd):
            return self._base.end, []
        if isinstance(request, ReadBaseRecord):
            found = self._base.record((request.relation, request.key))
            row = said(None if found.row is None else found.row[1:])
            return found, [f"{name} reads {request.relation} {request.key}: {row}"]
        if not is_write(request):
            return self._store.asked(request), []
        before = self._store.records.get(request.key)
        answer = self._store.asked(request)
        if answer is False:
            return answer, [f"{name} fails to write {request.key}"]
        after = self._store.records.get(request.key)
        if after == before:
            return answer, [f"{name} changes nothing in {request.key}"]
        fields = after.fields if after is not None else None
        shown = said(None if fields is None else self._way.shows(fields))
        return answer, [f"{name} writes {request.key}: {shown}"]


def is_write(request: Any) -> bool:
    """Whether it may change a record."""
    kind = type(request).__name__
    return not kind.startswith(("Read", "Scan")) and not isinstance(request, RegisterPositions)


def expected(plays: dict[str, Play], event: str) -> list[str]:
    """What each way does when an event happens, as the file writes it."""
    return [f"{name}: {line}" for name, play in plays.items() for line in play.happens(event)]


def written(path: Path) -> str:
    """The file's text with what happens now in place of what is expected."""
    script = read(path)
    plays = {name: Play(script, WAYS[name]) for name in script.claims}
    blocks = []
    for block in path.read_text().strip().split("\n\n"):
        first = block.splitlines()[0]
        if re.match(r"\d+\. ", first):
            lines = expected(plays, first.partition(". ")[2])
            block = "\n".join([first, "----", *lines])
        blocks.append(block)
    return "\n\n".join(blocks) + "\n"
