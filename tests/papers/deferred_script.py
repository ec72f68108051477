"""Scripts of Beyer et al.'s stories: what happens when, and what each way of applying does then.

    # a claim, and where the paper makes it
    refreshed 2:00                      the refresh time of every view
    clock two -0:05                     how far the clock of node two is before the designated one
    x1: withdrawals a1 -100; deposits a2 +100 at two
    algorithm 1 breaks lost, real time  any name of `simulation/deferred/ways.py`
    algorithm 2 breaks nothing          under the same schedule

    1. 2:59 x1 is about to insert into deposits
    ----
    algorithm 1: ...                    what was done, for each of them

    2. 3:01 refresh deposits to 3:00

A transaction's statement names the view that it changes, the row that it locks, and the amount; it
commits where its last statement was. `x1 is about to insert into V` goes on until just before, `x1
inserts into V` until just after, `x1 is about to write its commit record` and `x1 ends` likewise. A
refresh goes as far as it can, and tries again after each event.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from steadyview.checking.deferred import ApplyStep, DeferredHistory, convictions
from steadyview.maintenance.ipda.requests import EndTransaction, InsertCommitRecord, InsertRecord
from steadyview.simulation.deferred import way_of
from steadyview.simulation.deferred.database import Client, DeferredDatabase
from steadyview.simulation.deferred.running import Process, transaction
from steadyview.simulation.deferred.worlds import Account, AccountStatement, Job

TIME = r"(\d+):(\d\d)"
STATEMENT = re.compile(r"(\w+) (\w+) ([+-]\d+)(?: at (\w+))?")
CLAIM = re.compile(r"(.+) breaks (.+)")
ABOUT = re.compile(r"(\w+) is about to insert into (\w+)")
INSERTS = re.compile(r"(\w+) inserts into (\w+)")
RECORD = re.compile(r"(\w+) is about to write its commit record")
ENDS = re.compile(r"(\w+) ends")
REFRESH = re.compile(r"refresh (\w+) to (.+)")


def minutes(text: str) -> int:
    hours, rest = re.fullmatch(TIME, text.lstrip("-")).groups()
    return (-1 if text.startswith("-") else 1) * (int(hours) * 60 + int(rest))


def shown(time: int) -> str:
    return f"{time // 60}:{time % 60:02}"


@dataclass
class Script:
    """A file, read. `jobs`: statements by transaction; `views` by row that a statement locks."""

    jobs: dict[str, list[tuple[str, AccountStatement]]] = field(default_factory=dict)
    claims: dict[str, set[str]] = field(default_factory=dict)
    refreshed: int = 0
    skew: int = 0
    steps: list[tuple[str, list[str]]] = field(default_factory=list)


def read(path: Path) -> Script:
    """The script in a file."""
    script = Script()
    for block in path.read_text().strip().split("\n\n"):
        lines = [line for line in block.splitlines() if not line.startswith("#")]
        if re.match(r"\d+\. ", lines[0]):
            script.steps.append((lines[0].partition(". ")[2], lines[2:]))
        else:
            for line in lines:
                _heading(script, line)
    return script


def _heading(script: Script, line: str) -> None:
    word, _, rest = line.partition(" ")
    if word == "refreshed":
        script.refreshed = minutes(rest)
    elif word == "clock":
        script.skew = minutes(rest.split()[1])
    elif claim := CLAIM.fullmatch(line):
        script.claims[claim[1]] = set(claim[2].split(", ")) - {"nothing"}
    else:
        script.jobs[word.rstrip(":")] = [_statement(text) for text in rest.split("; ")]


def _statement(text: str) -> tuple[str, AccountStatement]:
    view, row, amount, node = STATEMENT.fullmatch(text).groups()
    return view, AccountStatement(Account(row, int(node == "two")), int(amount))


class ScriptedDatabase(DeferredDatabase):
    """A statement changes the view that the script names."""

    def __init__(self, script: Script, skew: int) -> None:
        self.targets = [pair for statements in script.jobs.values() for pair in statements]
        super().__init__({view: {} for view, _ in self.targets}, (0, skew))
        self.refreshed = dict.fromkeys(self.refreshed, script.refreshed)

    def _changes(self, statement, by):
        view = next(view for view, known in self.targets if known is statement)
        return [(view, (statement.account.id,), (1, statement.amount))]


class Play:
    """A script under one way of applying."""

    def __init__(self, script: Script, name: str) -> None:
        way = way_of(name)
        self._script, self._order = script, way.order
        self._database = ScriptedDatabase(script, script.skew if way.two_clocks else 0)
        self._algorithm = way.make(self._database, Random(0))
        self._running: dict[str, Process] = {}
        self._refreshing: dict[str, Process] = {}

    def happens(self, event: str) -> list[str]:
        """Let one event happen; what was done then."""
        time, _, what = event.partition(" ")
        self._database.now = minutes(time)
        lines = self._happens(what)
        for view in list(self._refreshing):
            lines += self._refreshes(view)
        return lines

    @property
    def broken(self) -> set[str]:
        """What the whole history is convicted of."""
        return {conviction.breaks for conviction in convictions(self.history)}

    @property
    def history(self) -> DeferredHistory:
        database = self._database
        steps: list[ApplyStep] = database.steps
        return DeferredHistory(database.transactions(), steps, self._order)

    def _happens(self, what: str) -> list[str]:
        if found := REFRESH.fullmatch(what):
            view, upto = found[1], minutes(found[2])
            after = self._database.refreshed[view]
            self._refreshing[view] = Process(Client(), self._algorithm.apply(view, after, upto))
            return []
        if found := ABOUT.fullmatch(what):
            return self._until(found[1], lambda r: _inserts(r, found[2]), before=True)
        if found := INSERTS.fullmatch(what):
            return self._until(found[1], lambda r: _inserts(r, found[2]))
        if found := RECORD.fullmatch(what):
            commits = (InsertCommitRecord, EndTransaction)
            return self._until(found[1], lambda r: isinstance(r, commits), before=True)
        found = ENDS.fullmatch(what)
        assert found, what
        return self._until(found[1], lambda r: isinstance(r, EndTransaction))

    def _until(self, name: str, reached, *, before: bool = False) -> list[str]:
        process = self._begun(name)
        lines: list[str] = []
        while not process.is_done:
            request = process.request
            if before and reached(request):
                return lines
            if not process.goes_on(self._database):
                return [*lines, f"{name} waits"]
            lines += _told(name, request)
            if reached(request):
                return lines
        raise AssertionError(f"{name} is over")

    def _begun(self, name: str) -> Process:
        if name not in self._running:
            statements = tuple(statement for _, statement in self._script.jobs[name])
            job = Job(name, statements, statements[-1].account.node)
            client = Client(name, begin=self._database.now)
            steps = transaction(job, client, self._algorithm, self._database)
            self._running[name] = Process(client, steps)
        return self._running[name]

    def _refreshes(self, view: str) -> list[str]:
        process = self._refreshing[view]
        while not process.is_done:
            if not process.goes_on(self._database):
                return [f"the refresh of {view} waits"]
        del self._refreshing[view]
        groups = self._database.views[view] or {}
        rows = ", ".join(f"{group[0]}: {amounts[1]}" for group, amounts in sorted(groups.items()))
        return [f"{view} at {shown(self._database.refreshed[view])} = {{{rows}}}"]


def _inserts(request, view: str) -> bool:
    return isinstance(request, InsertRecord) and request.record.view == view


def _told(name: str, request) -> list[str]:
    if isinstance(request, InsertRecord):
        record = request.record
        when = "without a time" if record.timestamp is None else f"at {shown(record.timestamp)}"
        row = f"{record.group[0]} {record.amounts[1]:+}"
        return [f"{name} inserts {row} into {record.view} {when}"]
    if isinstance(request, InsertCommitRecord):
        return [f"{name} has a commit record at {shown(request.timestamp)}"]
    return [f"{name} ends"] if isinstance(request, EndTransaction) else []


def expected(plays: dict[str, Play], event: str) -> list[str]:
    """What each way does when an event happens, as the file writes it."""
    return [f"{name}: {line}" for name, play in plays.items() for line in play.happens(event)]


def written(path: Path) -> str:
    """The file's text with what happens now in place of what is expected."""
    script = read(path)
    plays = {name: Play(script, name) for name in script.claims}
    blocks = []
    for block in path.read_text().strip().split("\n\n"):
        first = block.splitlines()[0]
        if re.match(r"\d+\. ", first):
            lines = expected(plays, first.partition(". ")[2])
            block = "\n".join([first, "----", *lines])
        blocks.append(block)
    return "\n\n".join(blocks) + "\n"
