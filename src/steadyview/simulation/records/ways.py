"""View classes, the programs that keep them, and the cells of the table of levels.

A way is a program with a kind of test-and-set, and how entries go to managers:

    stream     a lane per log stream: the flow rule
    base key   a lane per base record, while signatures know streams only: the rule as printed
    any        any entry through any manager
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from steadyview.algebra import Row
from steadyview.checking.records import RECORD_VIEWS, RecordView
from steadyview.maintenance.records.additive_views import ADDITIVE_VIEWS, AdditiveView, added
from steadyview.maintenance.records.algorithm_4 import Algorithm4
from steadyview.maintenance.records.algorithms_1_to_3 import Algorithms1To3
from steadyview.maintenance.records.apply_if_unseen import ApplyingIfUnseen
from steadyview.maintenance.records.foreign_key_join import ForeignKeyJoin
from steadyview.maintenance.records.minimum import Minimum
from steadyview.maintenance.records.minimum_printed import (
    Before,
    MinimumPrinted,
    ReferenceCountsPrinted,
    higher,
    lower,
)
from steadyview.maintenance.records.program import UpdateProgram
from steadyview.maintenance.records.requests import Fields
from steadyview.maintenance.records.selection import (
    KeyedView,
    Selection,
    SelectionByTas,
    SelectionPrinted,
)
from steadyview.maintenance.records.tas import CounterTas, NoTas, SignatureTas, Tas
from steadyview.maintenance.records.view_manager import ViewManager
from steadyview.simulation.records.faults import FAULTS
from steadyview.simulation.records.store import SimulatedStore
from steadyview.simulation.records.worlds import RecordWorld

Initial = Callable[[RecordWorld], dict[Any, Fields]]
STREAM, BASE_KEY, ANY = "stream", "base key", "any"


@dataclass(frozen=True)
class RecordWay:
    """`view`: a row of the table; `technique`: what it is kept by; `promises`: the level it claims.

    `first`: the view's records at the beginning, hidden fields too; `shows`: what is visible of
    them. `reclaims`: whether tombstones go when they may.
    """

    view: str
    technique: str
    kind: str
    judged: RecordView
    program: Callable[[], UpdateProgram]
    tas: Tas
    first: Initial
    shows: Callable[[Fields], Fields | None]
    promises: str = "none"
    additive: AdditiveView | None = None
    before: Before = lower
    lanes: str = STREAM
    reclaims: bool = False
    at_once: int = 1
    together: int = 1
    manager: type[ViewManager] = ViewManager
    store: type[SimulatedStore] = SimulatedStore

    @property
    def is_strong(self) -> bool:
        """Whether it claims to lose nothing, under any fault."""
        return self.promises in ("strong", "complete")

    @property
    def name(self) -> str:
        """Row and technique; some rows are ours by themselves."""
        return self.view if self.view.endswith(self.technique) else f"{self.view}, {self.technique}"


OURS: Final = "ours"
UNSEEN: Final = "apply if unseen"
PRINTED_KINDS: Final[Mapping[str, Callable[[], Tas]]] = {
    "no TAS": NoTas,
    "counter": CounterTas,
    "signature": lambda: SignatureTas(tombstones=False),
}


def _sums(view: AdditiveView) -> Initial:
    def first(world: RecordWorld) -> dict[Any, Fields]:
        found: dict[Any, Fields] = {}
        for (relation, _), row in world.first.items():
            if row is not None:
                key = view.key(relation, row)
                found[key] = added(found.get(key), view.amounts(relation, row))
        return found

    return first


def _additive(view: AdditiveView) -> list[RecordWay]:
    kind = "sides" if view.name in ("UNION", "INTERSECT", "EXCEPT") else "groups"
    first = _sums(view)

    def way(technique: str, tas: Tas, program: Callable[[], UpdateProgram]) -> RecordWay:
        judged = RECORD_VIEWS[view.name]
        return RecordWay(
            view.name, technique, kind, judged, program, tas, first, view.shown, additive=view
        )

    def by_tas(technique: str, tas: Tas) -> RecordWay:
        return way(technique, tas, lambda: Algorithms1To3(view, tas))

    printed = [by_tas(name, make()) for name, make in PRINTED_KINDS.items()]
    ours = [
        by_tas(OURS, SignatureTas()),
        way(UNSEEN, SignatureTas(), lambda: ApplyingIfUnseen(view)),
    ]
    return printed + [replace(way, reclaims=True, promises="strong") for way in ours]


def _keyed(name: str, image: Callable[[Row], Fields | None]) -> list[RecordWay]:
    view = KeyedView(name, image)

    def first(world: RecordWorld) -> dict[Any, Fields]:
        rows = {key: row for (_, key), row in world.first.items() if row is not None}
        images = {key: image(row) for key, row in rows.items()}
        return {key: fields for key, fields in images.items() if fields is not None}

    def way(technique: str, tas: Tas, program: Callable[[], UpdateProgram]) -> RecordWay:
        judged = RECORD_VIEWS[name]
        return RecordWay(name, technique, "groups", judged, program, tas, first, lambda f: f)

    def by_tas(technique: str, tas: Tas) -> RecordWay:
        return way(technique, tas, lambda: SelectionByTas(view, tas))

    ours = way(OURS, SignatureTas(), lambda: Selection(view))
    return [
        way("no TAS", NoTas(), lambda: SelectionPrinted(view)),
        *(by_tas(n, make()) for n, make in PRINTED_KINDS.items() if n != "no TAS"),
        replace(ours, reclaims=True, promises="complete"),
    ]


def _firsts(before: Before, *, counts: bool) -> Initial:
    def first(world: RecordWorld) -> dict[Any, Fields]:
        groups: dict[Any, list[Any]] = {}
        for row in world.first.values():
            if row is not None:
                groups.setdefault(row[1], []).append(row[2])
        found: dict[Any, Fields] = {}
        for key, values in groups.items():
            best = next(v for v in values if not any(before(w, v) for w in values))
            found[key] = (best, values.count(best)) if counts else (best,)
        return found

    return first


Scanning = Callable[[Tas, bool], UpdateProgram]


def _scanning(name: str, promises: str, make: Scanning, *, counts: bool = False) -> list[RecordWay]:
    """Printed forms of MIN by each kind of test-and-set, then with tombstones and the mark."""

    def way(technique: str, tas: Tas, *, marks: bool) -> RecordWay:
        return RecordWay(
            name,
            technique,
            "groups",
            RECORD_VIEWS["MIN"],
            lambda: make(tas, marks),
            tas,
            _firsts(lower, counts=counts),
            lambda fields: fields[:1],
        )

    printed = [way(n, kind(), marks=False) for n, kind in PRINTED_KINDS.items()]
    marked = way("with mark", SignatureTas(), marks=True)
    return [*printed, replace(marked, reclaims=True, promises=promises)]


def _extreme(name: str, before: Before) -> RecordWay:
    return RecordWay(
        f"{name}, ours",
        OURS,
        "groups",
        RECORD_VIEWS[name],
        lambda: Minimum(before),
        SignatureTas(),
        _firsts(before, counts=True),
        lambda fields: fields[:1],
        promises="strong",
        before=before,
        reclaims=True,
    )


def _join_first(world: RecordWorld) -> dict[Any, Fields]:
    found: dict[Any, Fields] = {}
    for (relation, key), row in world.first.items():
        referred = world.first.get(("S", row[1])) if row is not None and relation == "R" else None
        if referred is not None:
            found[key] = referred
    return found


def _join(name: str, technique: str, tas: Tas, program: Callable[[], UpdateProgram]) -> RecordWay:
    judged = RECORD_VIEWS["join"]
    return RecordWay(name, technique, "join", judged, program, tas, _join_first, lambda f: f)


def _printed_join(technique: str, tas: Tas) -> RecordWay:
    return _join("join as printed", technique, tas, lambda: Algorithm4(tas))


def _joins() -> list[RecordWay]:
    ours = _join("join, ours", OURS, SignatureTas(), ForeignKeyJoin)
    printed = [_printed_join(name, make()) for name, make in PRINTED_KINDS.items()]
    return [*printed, replace(ours, reclaims=True, promises="strong")]


_LIMIT: Final = 25


def _small(row: Row) -> Fields | None:
    return row[1:] if row[2] is not None and row[2] < _LIMIT else None


_WAYS: Final[tuple[RecordWay, ...]] = (
    *(way for view in ADDITIVE_VIEWS.values() for way in _additive(view)),
    *_keyed("selection", _small),
    *_keyed("key projection", lambda row: row[2:]),
    *_scanning("MIN as printed", "weak", lambda tas, marks: MinimumPrinted(tas, marks=marks)),
    *_scanning(
        "MIN always scan",
        "strong",
        lambda tas, marks: MinimumPrinted(tas, always_scan=True, marks=marks),
    ),
    *_scanning(
        "MIN reference counts as printed",
        "none",
        lambda tas, marks: ReferenceCountsPrinted(tas, marks=marks),
        counts=True,
    ),
    _extreme("MIN", lower),
    _extreme("MAX", higher),
    *_joins(),
)
RECORD_WAYS: Final[Mapping[tuple[str, str], RecordWay]] = {
    (way.view, way.technique): way for way in _WAYS
}
VIEWS: Final = tuple(dict.fromkeys(way.view for way in _WAYS))


def ways_of(view: str) -> list[RecordWay]:
    """All ways of a row of the table."""
    return [way for way in _WAYS if way.view == view]


@dataclass(frozen=True)
class LevelColumn:
    """A column of the table of levels: techniques (the first that a view has), a fault, lanes."""

    name: str
    techniques: tuple[str, ...]
    fault: str
    lanes: str = STREAM

    def way(self, view: str) -> RecordWay | None:
        """What is measured in this column of a row."""
        found = (RECORD_WAYS.get((view, technique)) for technique in self.techniques)
        way = next((way for way in found if way is not None), None)
        return replace(way, lanes=self.lanes) if way is not None else None


_MENDED = (OURS, "with mark")
COLUMNS: Final = (
    LevelColumn("no TAS", ("no TAS",), "none"),
    LevelColumn("counter", ("counter",), "none"),
    LevelColumn("counter, crash", ("counter",), "crash"),
    LevelColumn("signature", ("signature",), "none"),
    LevelColumn("signature, crash", ("signature",), "crash"),
    LevelColumn("signature, window", ("signature",), "window"),
    *(LevelColumn(f"ours, {fault}", _MENDED, fault) for fault in FAULTS),
    *(LevelColumn(f"{UNSEEN}, {fault}", (UNSEEN,), fault) for fault in ("window", "mixed")),
    LevelColumn("ours, any manager", _MENDED, "none", ANY),
    LevelColumn("ours, order per base key", _MENDED, "none", BASE_KEY),
)
