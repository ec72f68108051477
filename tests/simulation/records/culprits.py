"""Each technique left out, or done a little wrong; the checker must convict every one.

A culprit is an honest way with one fault in its program, its kind of test-and-set, its store or its
manager. `loses`: the level that it does not reach within so many seeds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce

from steadyview.maintenance.records.additive_views import ADDITIVE_VIEWS, added
from steadyview.maintenance.records.algorithms_1_to_3 import Algorithms1To3
from steadyview.maintenance.records.foreign_key_join import ForeignKeyJoin
from steadyview.maintenance.records.minimum import Minimum
from steadyview.maintenance.records.requests import (
    ReadBaseRecord,
    ReadRecord,
    RegisterPositions,
    ScanGroup,
    Stamp,
    StoredRecord,
)
from steadyview.maintenance.records.signatures import (
    latest,
    without_partitioning,
)
from steadyview.maintenance.records.tas import CounterTas, ListTas, NoTas, SignatureTas
from steadyview.maintenance.records.view_manager import ViewManager
from steadyview.maintenance.records.writing import written
from steadyview.simulation.records import FAULTS, RECORD_WAYS, RecordWay, RunFaults
from steadyview.simulation.records.faults import (
    LAG,
    REGISTRY_ELSEWHERE,
    REGISTRY_FIRST,
    REGISTRY_LAST,
    REPARTITIONED,
    RESTORED,
    STALE_MANAGERS,
)
from steadyview.simulation.records.store import SimulatedStore
from steadyview.simulation.records.ways import ANY, BASE_KEY

SUM, COUNT = RECORD_WAYS["SUM", "ours"], RECORD_WAYS["COUNT", "ours"]
UNSEEN = RECORD_WAYS["SUM", "apply if unseen"]
MIN, JOIN = RECORD_WAYS["MIN, ours", "ours"], RECORD_WAYS["join, ours", "ours"]
NONE, CRASH, WINDOW, LATE, COPIES, MIXED = FAULTS.values()
CONVERGENT, WEAK, STRONG = "convergent", "weak", "strong"


@dataclass(frozen=True)
class Culprit:
    name: str
    way: RecordWay
    fault: RunFaults
    loses: str
    within: int


BY_SCRIPT = 0
"""Too rare for dice: a script in tests/papers/records convicts it."""
CULPRITS: list[Culprit] = []


def accuse(
    name: str, way: RecordWay, fault: RunFaults, loses: str, within: int = 800, **changes
) -> None:
    """Put it on the list."""
    CULPRITS.append(Culprit(name, replace(way, **changes), fault, loses, within))


def by(way: RecordWay, program: Callable) -> RecordWay:
    return replace(way, program=program)


# The techniques


def sum_by(tas) -> RecordWay:
    way = by(SUM, lambda: Algorithms1To3(SUM.additive, tas))
    return replace(way, tas=tas, reclaims=False)


accuse("no test-and-set", sum_by(NoTas()), NONE, CONVERGENT)
accuse("no signature", sum_by(CounterTas(tombstones=True)), CRASH, CONVERGENT)
accuse("no flow rule", SUM, NONE, CONVERGENT, lanes=ANY)
accuse("no flow rule, complete lists", sum_by(ListTas()), NONE, CONVERGENT, lanes=ANY)
accuse("order per base key only", SUM, NONE, CONVERGENT, lanes=BASE_KEY)
accuse("no tombstones", sum_by(SignatureTas(tombstones=False)), CRASH, CONVERGENT, 2000)
accuse("counter reused", sum_by(CounterTas()), NONE, CONVERGENT, 8000)


class TwoOperations(Algorithms1To3):
    """An update within a group as a deletion and an insertion."""

    def propagate(self, entry):
        if entry.old is not None and entry.new is not None:
            yield from self.propagate_together((replace(entry, new=None),))
            yield from self.propagate_together((replace(entry, old=None),))
        else:
            yield from self.propagate_together((entry,))


accuse("x = x' in two", by(SUM, lambda: TwoOperations(SUM.additive, SUM.tas)), NONE, CONVERGENT)


class BothReadFirst(Algorithms1To3):
    """Example 1: all records are read before any is written."""

    def propagate(self, entry):
        additions = self._view.additions(entry)
        records = {}
        for key in additions:
            records[key] = yield ReadRecord(key)
        for key, amounts in additions.items():
            done = yield from self._write(key, records[key], amounts, [entry])
            while not done:
                done = yield from self._add(key, [(entry, amounts)])


def both_first(tas) -> RecordWay:
    return replace(sum_by(tas), program=lambda: BothReadFirst(SUM.additive, tas))


accuse("both read first", both_first(NoTas()), NONE, CONVERGENT)
accuse("both read first, counter", both_first(CounterTas(tombstones=True)), CRASH, CONVERGENT)


# Hidden row counts


def without_rows(name: str, amounts, rows, shown) -> RecordWay:
    view = replace(ADDITIVE_VIEWS[name], amounts=amounts, rows=rows, shown=shown)
    way = RECORD_WAYS[name, "ours"]

    def first(world):
        found = {}
        for (relation, _), row in world.first.items():
            if row is not None:
                found[row[1]] = added(found.get(row[1]), view.amounts(relation, row))
        return {key: a for key, a in found.items() if view.rows(a) > 0}

    program = lambda: Algorithms1To3(view, way.tas)  # noqa: E731
    return replace(way, program=program, first=first, shows=shown, additive=view)


def value(_, row):
    return (row[2] or 0,)


def not_null(_, row):
    return (int(row[2] is not None),)


def itself(amounts):
    return amounts


accuse("SUM never goes", without_rows("SUM", value, lambda a: 1, itself), NONE, CONVERGENT)
accuse("SUM goes at 0", without_rows("SUM", value, lambda a: a[0], itself), NONE, CONVERGENT)
accuse("COUNT of values", without_rows("COUNT", not_null, lambda a: a[0], itself), NONE, CONVERGENT)


class CountPrinted(Algorithms1To3):
    """Algorithm 3 as printed: y -> NULL within the group is ignored."""

    def propagate(self, entry):
        if entry.old is not None and entry.new is not None and entry.old[1] == entry.new[1]:
            return
        yield from super().propagate(entry)


count_printed = by(COUNT, lambda: CountPrinted(COUNT.additive, COUNT.tas))
accuse("COUNT printed", count_printed, NONE, CONVERGENT)


# Tombstones and the floor


class SomeStream(SimulatedStore):
    """Reclaims a tombstone when one of its streams is registered."""

    def reclaim(self, registered):
        for key in [key for key, record in self.records.items() if record.fields is None]:
            version = self.records[key].stamp.version
            if not version or any(registered.get(s, 0) >= n for s, n in version.items()):
                del self.records[key]


class NoFloor(SimulatedStore):
    """Drops tombstones by the right rule, and remembers nothing of them."""

    def _raise_floor(self, version):
        pass


class UntestedFloor(SimulatedStore):
    """A floor that is read, and not tested again when a record is inserted."""

    def _is_as_expected(self, request):
        return request.key not in self.records or super()._is_as_expected(request)


accuse("reclaimed by some stream", SUM, WINDOW, CONVERGENT, 4000, store=SomeStream)
accuse("no floor", SUM, COPIES, CONVERGENT, store=NoFloor)
accuse("floor not tested", SUM, MIXED, CONVERGENT, 8000, store=UntestedFloor)


# Group commit and pipelining


class Judging(Algorithms1To3):
    """Drops a group, or takes it, by one of its entries."""

    tells = -1

    def _add(self, key, additions):
        record = yield ReadRecord(key)
        version = record.stamp.version
        if self._tas.has_processed(version, additions[self.tells][0]):
            return True
        amounts = reduce(added, (a for _, a in additions))
        return (yield from self._write(key, record, amounts, [e for e, _ in additions]))


class JudgingFirst(Judging):
    tells = 0


class NetZeroIgnored(Algorithms1To3):
    """Writes nothing where nothing changes."""

    def _write(self, key, record, amounts, entries):
        if not any(amounts):
            return True
        return (yield from super()._write(key, record, amounts, entries))


class AnyPipeline(ViewManager):
    """Begins whatever comes next, also on a record that somebody works at."""

    def _may_begin(self, lane, state, most):
        return list(state.waiting)[:most]


class RegisteringGaps(ViewManager):
    """Registers the greatest entry that is done."""

    def _done(self, state, number):
        super()._done(state, number)
        state.position = max(state.position, number)


def together(program) -> RecordWay:
    return replace(by(SUM, lambda: program(SUM.additive, SUM.tas)), together=3)


accuse("group by its last", together(Judging), WINDOW, CONVERGENT, 2000)
accuse("group by its first", together(JudgingFirst), WINDOW, CONVERGENT, 2000)
accuse("net zero ignored", together(NetZeroIgnored), COPIES, CONVERGENT, 8000)
accuse("any pipeline", UNSEEN, NONE, CONVERGENT, at_once=3, manager=AnyPipeline)
accuse("registered with gaps", SUM, CRASH, CONVERGENT, at_once=3, manager=RegisteringGaps)


# The registry, backups


class RegisteringBefore(ViewManager):
    """Registers entries when they begin."""

    def _begun(self, entries):
        for lane, entry in entries:
            self._lanes[lane].position = entry.number
            self._unregistered += 1
        return [(0, RegisterPositions(dict(self.positions))), *super()._begun(entries)]


class ReclaimingMeanwhile(SimulatedStore):
    """Reclaims while a copy is made that is not of one moment."""

    def reclaim(self, registered):
        self.is_being_copied = False
        super().reclaim(registered)


registry_first = replace(RESTORED, restored=REGISTRY_FIRST)
accuse("reclaimed meanwhile", SUM, registry_first, CONVERGENT, 4000, store=ReclaimingMeanwhile)
accuse("registered before", SUM, CRASH, CONVERGENT, manager=RegisteringBefore)
accuse("registry elsewhere", SUM, replace(RESTORED, restored=REGISTRY_ELSEWHERE), CONVERGENT)
accuse("registry copied last", SUM, replace(RESTORED, restored=REGISTRY_LAST), CONVERGENT)


# Partitionings


class OldForgotten(SignatureTas):
    """Drops the components of the old partitioning, though the stop was not clean."""

    def has_processed(self, version, entry):
        if len(entry.streams) > 1:
            version = without_partitioning(version, 1)
        return super().has_processed(version, entry)


def by_index(version):
    return {stream.bucket: number for stream, number in version.items()}


class ByIndex(SignatureTas):
    """Streams go by their number, whatever the partitioning."""

    def has_processed(self, version, entry):
        return by_index(version).get(entry.stream.bucket, 0) >= entry.number


class StaleGoesOn(SignatureTas):
    """Knows the old names, and does not mind the new ones."""

    def has_processed(self, version, entry):
        return any(version.get(stream, 0) >= entry.number for stream in entry.streams)


def keeping(tas) -> RecordWay:
    return replace(sum_by(tas), reclaims=True)


accuse("old partitioning forgotten", keeping(OldForgotten()), REPARTITIONED, CONVERGENT)
accuse("streams by index", keeping(ByIndex()), REPARTITIONED, CONVERGENT)
accuse("stale managers go on", keeping(StaleGoesOn()), STALE_MANAGERS, CONVERGENT)


# MIN


class NoMark(Minimum):
    def __init__(self):
        super().__init__()
        self._marks = False

    def _scanned(self, entry, key, record):
        scan = yield from self._fresh(key)
        stamp = Stamp(latest(self._tas.generated(record.stamp.version, entry), scan.reflected))
        return (yield from written(self._tas, key, record, self._found(scan), stamp))


class NoTombstone(Minimum):
    def __init__(self):
        super().__init__()
        self._tas = SignatureTas(tombstones=False)


class UncheckedScan(Minimum):
    """Takes a scan for fresh, however far behind it is."""

    def _fresh(self, key):
        return (yield ScanGroup(key))


class NotBehindTheRecord(Minimum):
    """Asks only that the scan is not behind the record's signature."""

    def _scanned(self, entry, key, record):
        self._least = self._tas.generated(record.stamp.version, entry)
        return super()._scanned(entry, key, record)

    def _fresh(self, key):
        scan = yield ScanGroup(key)
        while any(scan.reflected.get(s, 0) < n for s, n in self._least.items()):
            scan = yield ScanGroup(key)
        return scan


class ForgettingWhatIsReflected(Minimum):
    """Reference counts with the mark, and a scan that does not say P."""

    def _fresh(self, key):
        scan = yield from super()._fresh(key)
        return replace(scan, reflected={})


accuse("MIN, no mark", by(MIN, NoMark), NONE, CONVERGENT, 20_000)
accuse("MIN, no tombstones", replace(by(MIN, NoTombstone), reclaims=False), MIXED, STRONG, 4000)
accuse("MIN, any scan", by(MIN, UncheckedScan), LAG, CONVERGENT)
accuse("MIN, P >= signature", by(MIN, NotBehindTheRecord), LAG, CONVERGENT)
accuse("MIN, no P", by(MIN, ForgettingWhatIsReflected), NONE, CONVERGENT)
accuse("MIN printed, no mark", RECORD_WAYS["MIN as printed", "signature"], NONE, CONVERGENT, 9000)
for printed in ("MIN always scan", "MIN reference counts as printed", "join as printed"):
    way = RECORD_WAYS[printed, "signature"]
    accuse(printed, way, NONE, CONVERGENT, 20_000 if "always" in printed else 4000)
accuse("MIN printed", RECORD_WAYS["MIN as printed", "with mark"], NONE, STRONG)


# The join


class NoNumber(ForeignKeyJoin):
    """Verifies, but takes any z for newer."""

    def _update(self, entry, key, new):
        record = yield ReadRecord(key)
        blank = StoredRecord(record.fields, record.stamp._replace(note=0))
        if record.fields is None or record.fields[0] != new[0]:
            return True
        return (yield from written(self._tas, key, record, new, blank.stamp))


class VerifyingOnce(ForeignKeyJoin):
    """Does not verify what somebody else wrote."""

    def propagate(self, entry):
        if entry.relation == "R":
            record = yield ReadRecord(entry.key)
            if self._tas.has_processed(record.stamp.version, entry):
                return
        yield from super().propagate(entry)


class NoTraceOfDeletion(ForeignKeyJoin):
    """Deleting what is not there leaves nothing."""

    def _refer(self, entry):
        record = yield ReadRecord(entry.key)
        if entry.new is None and record.fields is None:
            return True
        return (yield from super()._refer(entry))


class AnyRead(ForeignKeyJoin):
    """Takes a read of S for fresh, however far behind it is."""

    def _looked_up(self, y):
        return (yield ReadBaseRecord("S", y))


unverified = by(JOIN, lambda: ForeignKeyJoin(verifies=False))
accuse("join, not verified", unverified, NONE, CONVERGENT, 4000)
accuse("join, no number", by(JOIN, NoNumber), NONE, STRONG, 4000)
accuse("join, verified once", by(JOIN, VerifyingOnce), CRASH, CONVERGENT, 14_000)
accuse("join, deletion forgotten", by(JOIN, NoTraceOfDeletion), MIXED, CONVERGENT, BY_SCRIPT)
accuse("join, any read", by(JOIN, AnyRead), LAG, CONVERGENT)


# One base record


PUT = RECORD_WAYS["key projection", "no TAS"]
accuse("put, window", PUT, WINDOW, STRONG)
accuse("put, late", PUT, LATE, CONVERGENT)
accuse("put, two copies", PUT, COPIES, STRONG)
accuse("put, no flow rule", PUT, NONE, CONVERGENT, lanes=ANY)
