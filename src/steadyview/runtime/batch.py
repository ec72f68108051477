"""One batch: the change of every node over (a, b], piece by piece, under one moment.

    per piece and layer of the graph:   ask  ->  versions  ->  one statement a join  ->  tables

A layer are the nodes that read only relations and nodes of earlier layers. Their asks move in lock
step, so that a round's questions to one source are one question. A piece (a, u] is a narrower
window over the same frozen sources, whose logged rows after u compensate as ever; what was answered
in one piece is not asked again in the next.

Whatever goes wrong in a node's own part concerns that node, and those that read it: its expressions
fail on some row, and it stops just before the transaction that brought the row; or the fault is
ours, and it stays where it is. The others go on. Nothing here publishes: the results say what is
ready to be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa

from steadyview.changes import RelationName
from steadyview.crash_points import crash_point
from steadyview.engine.block_inputs import BlockInputs
from steadyview.engine.failures import is_data_error, reason
from steadyview.engine.frames import Frames
from steadyview.engine.window_input import ArrowKeys, Rows, WindowInput
from steadyview.errors import StorageDamaged, ViewStopped
from steadyview.papers.conventional import Shadow
from steadyview.plans.asking import Ask, Asking
from steadyview.plans.ends import Ends
from steadyview.plans.links import links
from steadyview.plans.plan import FromRelation
from steadyview.plans.shared_join import SharedJoin
from steadyview.query.moment import Moment
from steadyview.runtime.gaps import Window, Windows
from steadyview.runtime.grouping import GroupMember, together
from steadyview.runtime.inputs import RelationInputs, at_ends, node_input, rows_per_cn
from steadyview.runtime.known_columns import KnownColumns
from steadyview.runtime.pieces import PieceSize, Steps
from steadyview.runtime.shares import Share, layers
from steadyview.runtime.trouble import Trouble, trouble
from steadyview.runtime.work import Asked, Done, Others, Work
from steadyview.warehouse.apply import Applier
from steadyview.warehouse.node_statement import Computed, NodeStatement
from steadyview.warehouse.shared_statement import SharedStatement

_T = TypeVar("_T")
_WORKERS = 2
"""Statements at a time."""


class Batch:
    """The computation of one batch in its own work folder: `prepare` first, then its pieces."""

    def __init__(
        self,
        frames: Frames,
        folder: Path,
        moment: Moment,
        relations: RelationInputs,
        others: Others,
        shadow: Shadow | None = None,
    ) -> None:
        self._shadow = shadow
        self._frames = frames
        self.folder = folder
        self._moment = moment
        self._standing = others.standing
        self._gaps = others.gaps
        self._relations = relations
        self._inputs: dict[RelationName, WindowInput] = {}
        self._nodes: dict[tuple[int, tuple[int, int], Ends | None], WindowInput] = {}
        """What other nodes read of a node, by its id and window; all rows, or ends."""
        self._shares: list[Share] = []
        self._steps: Steps | None = None
        self._sent = 0

    @property
    def upto(self) -> int:
        """The batch's end."""
        return self._moment.upto

    @property
    def asked(self) -> Asked:
        """What was asked of the sources so far."""
        return Asked(self._sent, sum(i.answered_rows() for i in self._inputs.values()))

    def prepare(self, works: Sequence[Work]) -> None:
        """Read the logs; raises only what concerns the whole batch."""
        self._shares = [Share(w) for w in works]
        used: dict[RelationName, set[int]] = {}
        for share in self._shares:
            for name, columns in share.node.used().items():
                used.setdefault(name, set()).update(columns or {0})
        after = min((w.after for w in works if w.after is not None), default=self.upto)
        relations = {r.name: r for w in works for r in w.plan.relations if r.name in used}

        def made(name: RelationName) -> WindowInput | StorageDamaged:
            try:
                return self._relations.made(relations[name], sorted(used[name]), after)
            except StorageDamaged as error:
                return error

        with ThreadPoolExecutor(max(len(used), 1), "log") as pool:
            found = dict(zip(used, pool.map(made, used), strict=True))
        self._inputs = {n: i for n, i in found.items() if isinstance(i, WindowInput)}
        for share in self._shares:
            for name in share.node.used():
                damage = found[name]
                if isinstance(damage, StorageDamaged):
                    share.trouble = Trouble(error=str(damage))

    # --- pieces ------------------------------------------------------------------------------

    def next_piece(self, after: int, size: PieceSize) -> tuple[int, int]:
        """How many log rows the next piece after cn `after` has, and its last cn.

        Nothing is looked at where the whole batch is one piece. One that a crash has cut short is
        ended first, where it would have ended: all that it has left has its cn.
        """
        rows = sum(i.log.count for i in self._inputs.values())
        begun = [b for s in self._shares if (b := s.work.unfinished) is not None and b > after]
        if self._steps is None and not begun and size.fits(rows):
            return rows, self.upto
        if self._steps is None:
            self._steps = Steps(*rows_per_cn(self._inputs))
        left = self._steps.after(after)
        upto = min([size.end(left, self.upto), *begun])
        return int(left.rows.sum() - left.after(upto).rows.sum()), upto

    def first_states(self) -> Iterator[Done]:
        """The state at the moment's cn of every node that has none yet, as each gets ready."""
        reached: dict[int, Done] = {}
        for found in layers(self._shares):
            # one that is not published after all is built again, and what reads it with it
            layer = [s for s in found if self._has_parents(s)]
            for share in layer:
                share.upto = self.upto
                self._for(share, partial(self._whole, share, reached))
            with ThreadPoolExecutor(_WORKERS) as pool:
                for share, done in zip(layer, pool.map(self._first, layer), strict=True):
                    reached[share.id] = done
                    yield done

    def piece(self, upto: int) -> list[Done]:
        """Compute and store every node's change up to cn `upto`, of those not there yet.

        Pieces ascend; a node that failed in one is in no later one.
        """
        reached: dict[int, Done] = {}
        self._nodes.clear()
        ordered = list(layers([s for s in self._shares if s.waits_at(upto)]))
        behind = [share for layer in ordered for share in layer]
        windows = self._windows(behind, upto)
        for found in ordered:
            layer = [s for s in found if s.id not in reached]
            for share in layer:
                stand = {i: self._stands(i, reached) for i in share.parents}
                share.upto = share.work.after or 0
                share.upto = self._for(share, partial(windows.end, share.id, stand)) or share.upto
            self._ask_all(layer)
            crash_point("answers-stored")
            later = [s for s in behind if s not in layer and s.id not in reached]
            with ThreadPoolExecutor(_WORKERS) as pool:
                for done in pool.map(self._finished, together(layer, later)):
                    reached.update({d.work.kept.id: d for d in done})
            for share in (s for s in (*layer, *later) if s.id in reached):
                share.over = reached[share.id].failed
                share.work = replace(share.work, after=reached[share.id].upto)
        return list(reached.values())

    @property
    def over(self) -> bool:
        """Whether no node goes on."""
        return all(share.over for share in self._shares)

    def _has_parents(self, share: Share) -> bool:
        return all(self._standing(parent)[1] >= 0 for parent in share.parents)

    def _stands(self, node: int, reached: Mapping[int, Done]) -> int:
        """How far a node is: what a crash has left unpublished of one in this batch counts."""
        if node in reached and not reached[node].work.held:
            return reached[node].upto
        works = (s.work for s in self._shares if s.id == node and not s.work.held)
        stored = (work.after for work in works if work.after is not None)
        return max([self._standing(node)[1], *stored])

    def _windows(self, behind: Sequence[Share], upto: int) -> Windows:
        """The windows of a piece, of nodes that each stand behind those they read."""
        touched = self._touched_relations(behind, upto)
        windows = [
            Window(
                share.id,
                share.parents,
                share.work.after or 0,
                share.work.every_state,
                any((name, share.work.after) in touched for name in share.node.used()),
                share.work.unfinished,
                share.work.held,
            )
            for share in behind
        ]
        found = Windows(self._gaps, windows, upto, partial(self._stands, reached={}))
        for share in behind:
            share.one_step = found.one_step(share.id)
        return found

    def _touched_relations(
        self, shares: Sequence[Share], upto: int
    ) -> set[tuple[RelationName, int | None]]:
        """The relations that changed after a cn at which one of these nodes stands; with the cn."""
        read = {(name, share.work.after) for share in shares for name in share.node.used()}
        known = ((name, after) for name, after in read if name in self._inputs)
        return {(n, after) for n, after in known if self._inputs[n].touched(after or 0, upto)}

    def _for(self, share: Share, step: Callable[[], _T]) -> _T | None:
        """A step of one node; where it fails, or failed before, the node has its trouble."""
        if share.trouble is not None:
            return None
        try:
            return step()
        except Exception as error:  # noqa: BLE001 - sorted by `trouble`
            share.trouble = trouble(error, self._frames.spark, share.work.store.folder)
            return None

    # --- asking ------------------------------------------------------------------------------

    def _bind(self, share: Share) -> None:
        """Find the inputs of the node's scans for its window; who reads the same shares it."""
        for scan in share.node.scans:
            origin = share.node.inputs[scan.number]
            parent = share.reads(scan.number)
            if parent is None:
                assert isinstance(origin, FromRelation)
                read = self._inputs[origin.relation]
            else:
                key = (parent, share.window, share.node.ends.get(scan.number))
                if key not in self._nodes:
                    self._nodes[key] = self._of_node(*key)
                read = self._nodes[key]
            share.inputs[scan.number] = read.in_one_step() if share.one_step else read

    def _of_node(self, parent: int, window: tuple[int, int], ends: Ends | None) -> WindowInput:
        columns = {
            column
            for share in self._shares
            for scan in share.node.scans
            if share.reads(scan.number) == parent
            for column in scan.used
        }
        store, _ = self._standing(parent)
        read = node_input(self._frames, self.folder, store, sorted(columns or {0}), window)
        return read if ends is None else at_ends(read, ends, window)

    def _whole(self, share: Share, reached: Mapping[int, Done]) -> None:
        """For a first state, every input is read whole."""
        for name, parent in share.work.kept.inputs.items():
            if parent in reached and reached[parent].failed:
                raise _waits(share.name, name)
        self._bind(share)
        for read in {id(i): i for i in share.inputs.values()}.values():
            self._sent += read.ask(None, None)

    def _ask_all(self, layer: Sequence[Share]) -> None:
        """Every node's rounds, in lock step."""
        asking: list[tuple[Share, Asking[list[Rows], pa.Array]]] = []
        for share in layer:
            machine = self._for(share, partial(self._begun, share))
            if machine is not None:
                asking.append((share, machine))
        while asks := [
            (share, machine, ask)
            for share, machine in asking
            for ask in self._for(share, machine.asks) or ()
        ]:
            self._answer([(share, ask) for share, _, ask in asks])
            for share, machine, ask in asks:
                share.asked.append(ask)
                self._for(share, partial(self._tell, share, machine, ask))
        for share, machine in asking:
            share.reached = machine.reached()
            self._for(share, share.narrow)

    def _begun(self, share: Share) -> Asking[list[Rows], pa.Array] | None:
        after = share.work.after
        assert after is not None
        if after >= share.upto:
            return None
        self._bind(share)
        share.asked.clear()
        logged = {
            number: [rows]
            for number, read in share.inputs.items()
            if (rows := read.logged(after, share.upto)) is not None
        }
        columns = KnownColumns(share.node, share.work.plan.relations)
        return Asking(links(share.node.node.block, columns), ArrowKeys(), logged)

    def _answer(self, asks: Sequence[tuple[Share, Ask[pa.Array]]]) -> None:
        """Send a round's questions, those about one column of one input as one."""
        topics: dict[tuple[int, int | None], tuple[WindowInput, list[pa.Array]]] = {}
        for share, ask in asks:
            read = share.inputs[ask.scan]
            keys = topics.setdefault((read.asks, ask.column), (read, []))[1]
            if ask.keys is not None:
                keys.append(ask.keys)

        def send(topic: tuple[int, int | None]) -> int:
            read, keys = topics[topic]
            return read.ask(topic[1], ArrowKeys().union(keys) if topic[1] is not None else None)

        with ThreadPoolExecutor(max(len(topics), 1), "lookup") as pool:
            self._sent += sum(pool.map(send, topics))

    def _tell(
        self, share: Share, machine: Asking[list[Rows], pa.Array], ask: Ask[pa.Array]
    ) -> None:
        machine.answered(ask, share.inputs[ask.scan].seen(ask.column, ask.keys))

    # --- computing ---------------------------------------------------------------------------

    def _statement(self, share: Share) -> NodeStatement:
        return self._statement_of(GroupMember(share, share.node))

    def _statement_of(self, member: GroupMember) -> NodeStatement:
        read = self._read(member.over or member.share)
        return NodeStatement(read, member.node, member.share.work.store)

    def _read(self, share: Share) -> BlockInputs:
        return BlockInputs(self._frames, self.folder, share.inputs, share.reached)

    def _first(self, share: Share) -> Done:
        return self._for(share, lambda: self._based(share)) or self._failed(share)

    def _based(self, share: Share) -> Done:
        work, statement = share.work, self._statement(share)
        sql = statement.first_rows(share.upto)
        base = Applier(self._frames.spark, work.store).replace(sql, share.upto)
        return Done(work, share.upto, work.store.delta.version(), base)

    def _finished(self, members: Sequence[GroupMember]) -> list[Done]:
        found = self._shared(members) if len(members) > 1 else None
        if found is None:
            return [self._alone(m.share) for m in members if m.over is None]
        done: dict[int, Done] = {}
        for member, (statement, change) in zip(members, found, strict=True):
            share, over = member.share, member.over
            if over is not None:
                if over.id not in done or done[over.id].failed:
                    continue
                share.upto = over.upto
            step = partial(self._stored, share, share.upto, change, statement)
            done[share.id] = self._for(share, step) or self._failed(share)
        return list(done.values())

    def _shared(
        self, members: Sequence[GroupMember]
    ) -> list[tuple[NodeStatement, Computed]] | None:
        """The changes of nodes over one join; None where each has to be computed by itself."""
        own = [self._statement_of(m) for m in members]
        first = members[0].share
        shared = SharedJoin(tuple(m.node for m in members))
        statement = SharedStatement(shared, self._read(first), own)
        try:
            found = statement.changes(*first.window)
        except Exception:  # noqa: BLE001 - whose trouble it is shows where each is alone
            return None
        return None if found is None else list(zip(own, found, strict=True))

    def _alone(self, share: Share) -> Done:
        return self._for(share, lambda: self._finish(share)) or self._failed(share)

    def _failed(self, share: Share) -> Done:
        work, found = share.work, share.trouble
        assert found is not None
        upto = self.upto if work.after is None else work.after
        version = work.store.delta.version()
        return Done(
            work, upto, version, error=found.error, fault=found.fault, mendable=found.mendable
        )

    def _finish(self, share: Share) -> Done:
        work = share.work
        assert work.after is not None
        if not share.moves():
            reached = max(work.after, share.upto)
            return Done(work, reached, work.store.delta.version())
        try:
            return self._appended(share, share.upto)
        except Exception as error:
            if not is_data_error(error):
                raise
            if share.one_step:
                version = work.store.delta.version()
                return Done(work, work.after, version, error=reason(error), mendable=True)
            return self._stopped(share, error)

    def _appended(self, share: Share, upto: int) -> Done:
        assert share.work.after is not None
        statement = self._statement(share)
        return self._stored(share, upto, statement.change(share.work.after, upto), statement)

    def _stored(
        self, share: Share, upto: int, change: Computed, statement: NodeStatement
    ) -> Done:
        work = share.work
        assert work.after is not None
        if change.below is not None:
            raise ViewStopped(
                f'view "{share.name}" would hold a row fewer than zero times',
                detail=f"{change.below}: a change at a source passed the capture by, or a file of "
                "the warehouse is damaged",
                hint=f"run: steadyview view rebuild {share.name}",
            )
        added = work.store.append(change.change, upto)
        if self._shadow is not None and not work.kept.row.replacement:
            plain = partial(statement.uncompensated, work.after, upto)
            self._shadow.record(share.name, work.after, upto, plain)
        return Done(work, upto, added.version, changes=added.rows)

    # --- a node that fails -------------------------------------------------------------------

    def _stopped(self, share: Share, error: Exception) -> Done:
        """Find the first cn whose change cannot be computed; keep what comes before it."""
        work = share.work
        assert work.after is not None
        cns = np.unique(np.concatenate([i.cns() for i in share.inputs.values()]))
        cns = cns[(cns > work.after) & (cns <= share.upto)]
        place = first_failing(lambda n: self._fails(share, int(cns[n])), 0, len(cns) - 1)
        if place is None:
            return self._appended(share, share.upto)
        before = int(cns[place]) - 1
        if before <= work.after or not share.touched(before):
            done = Done(work, max(before, work.after), work.store.delta.version())
        else:
            done = self._appended(share, before)
        return replace(done, error=reason(error), mendable=True)

    def _fails(self, share: Share, upto: int) -> bool:
        assert share.work.after is not None
        try:
            self._statement(share).change(share.work.after, upto)
        except Exception as error:
            if not is_data_error(error):
                raise
            return True
        return False


def first_failing(fails: Callable[[int], bool], low: int, high: int) -> int | None:
    """The smallest n in low..high for which `fails` holds (once failing, failing for all larger).

    >>> first_failing(lambda n: n >= 7, 1, 100), first_failing(lambda n: False, 1, 100)
    (7, None)
    """
    if not fails(high):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if fails(middle) else (middle + 1, high)
    return low


def _waits(name: str, parent: str) -> ViewStopped:
    return ViewStopped(f'view "{name}" has no first state', detail=f'"{parent}" has none')
