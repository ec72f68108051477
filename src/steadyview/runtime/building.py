"""Long first builds: what one life has read, the next one need not read again.

A view that reads a relation of more than one span is built in steps, each of them durable:

    begin       the build's cn, its views and the spans of their long relations, in the catalog
    read        span by span, each under whatever snapshot this life has, compensated to the cn by
                the log rows of the span (`engine/spans.py`); a file, then its row in the catalog
    compute     when every span is there: the first state at the cn, over stored relations that
                reflect exactly {s <= cn}; relations of one span are read now, as ever

Files are named by build, relation and span: reading a span again changes nothing (law 7). A build
is forgotten when no view waits for it, and when changes of a relation that it reads were lost; its
files go with it. Views that read no long relation are built as if there were no builds.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

import pyarrow.dataset as ds

from steadyview.catalog import Build, StoredSpan
from steadyview.changes import RelationName, RelationSchema
from steadyview.crash_points import crash_point
from steadyview.delta import ParquetSink, slug
from steadyview.delta.durability import make_folder, sync_file, sync_folder
from steadyview.delta.failures import told
from steadyview.engine.answers import store_each
from steadyview.engine.spans import FewerThanNone, SpanLog, compensated, span_schema
from steadyview.errors import ColumnLost, SourceDiverged, StorageDamaged
from steadyview.query.moment import Moment, admitted_since
from steadyview.runtime.kept import Kept
from steadyview.runtime.parts import Parts
from steadyview.runtime.planning import Planned
from steadyview.sources.contract import Read, Snapshot, Span

SPAN = 500_000
"""About how many rows a span has; a relation of no more is read in one go."""
_BLOCK = 1 << 20


@dataclass(frozen=True)
class Portion:
    """Views to build together, and the moment to build them at.

    `damage`: the log no longer leads to that moment.
    """

    views: Sequence[Kept]
    moment: Moment
    damage: StorageDamaged | None = None


class Interrupted(Exception):
    """The process is to end, or the build is there no more: go on another time."""


class Building:
    """The builds of one warehouse; the caller holds the lease.

    `portions` belongs to the thread of first states; others call `end`, which sets an event.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._builds = parts.catalog.builds
        self._ending = threading.Event()

    def end(self) -> None:
        """Read no further span: what is stored stays for the next life."""
        self._ending.set()

    def may_begin(self) -> None:
        """Spans may be read again."""
        self._ending.clear()

    def portions(
        self, views: Sequence[Kept], moment: Moment
    ) -> Iterator[Portion]:
        """All the views, each in one portion: the quick ones first, recomputed ones last.

        Of these, the ones that others read go with the quick ones: a reader's build needs their
        state where it begins.

        Ask for the next portion when the first states of the last one were tried.
        """
        self._forget_lost(views)
        begun = self._builds.all()
        new = [k for k in views if not any(k.id in b.views for b in begun)]
        spans = self._spans([k.plan for k in new], moment)
        long = [k for k in new if any(r.name in spans for r in k.plan.relations) and k.plan.node]
        if long:
            self._begin(long, spans, moment.upto)
            begun = self._builds.all()
        read = {i for k in views for i in k.inputs.values()}
        quick = [k for k in new if k not in long and (k.plan.node or not begun or k.id in read)]
        if quick:
            yield Portion(quick, moment)
        for build in begun:
            yield from self._portion(build, views, moment)
        if whole := [k for k in new if k not in long and k not in quick]:
            yield Portion(whole, moment)

    def _portion(
        self,
        build: Build,
        views: Sequence[Kept],
        moment: Moment,
    ) -> Iterator[Portion]:
        mine = [k for k in views if k.id in build.views]
        if not mine:
            return
        try:
            stored = self._read(build, [k.plan for k in mine], moment)
        except Interrupted:
            return
        except ColumnLost:
            # of a column that not all of its views use: the others begin without it
            self._builds.end(build.id)
            raise
        except StorageDamaged as damage:
            self._builds.end(build.id)
            yield Portion(mine, moment, damage)
        else:
            yield Portion(mine, moment.at(build.cn, stored))
        clear_builds(self._parts)

    # --- begin -------------------------------------------------------------------------------

    def _forget_lost(self, views: Sequence[Kept]) -> None:
        """Forget builds whose views lost values since: the log does not lead back to their cn."""
        catalog = self._parts.catalog
        losses, oldest = catalog.sources.losses(), catalog.commits.oldest_cn()
        for build in self._builds.all():
            lost = build.cn < oldest or any(
                kept.plan.loses(loss.relation, loss.column)
                and loss.seq > catalog.commits.seq_upto(loss.relation.source, build.cn)
                for kept in views
                if kept.id in build.views
                for loss in losses
            )
            if lost:
                self._builds.end(build.id)

    def _spans(
        self, plans: Iterable[Planned], moment: Moment
    ) -> dict[RelationName, Sequence[Span]]:
        """The spans of the relations that have more than one."""
        relations = {r.name: r for p in plans if p.node for r in p.relations}
        found = {n: moment.snapshots[n.source].spans(r, SPAN) for n, r in relations.items()}
        return {name: spans for name, spans in found.items() if len(spans) > 1}

    def _begin(
        self,
        views: Sequence[Kept],
        spans: Mapping[RelationName, Sequence[Span]],
        cn: int,
    ) -> None:
        used = _used([k.plan for k in views])
        self._builds.begin(
            cn,
            [k.id for k in views],
            used,
            [
                StoredSpan(name, i, _with(used[name], s.column), s.column, s.low, s.high, SPAN)
                for name in used
                for i, s in enumerate(spans.get(name, ()))
            ],
        )
        crash_point("build-begun")

    # --- read --------------------------------------------------------------------------------

    def _read(
        self, build: Build, plans: Sequence[Planned], moment: Moment
    ) -> dict[RelationName, list[str]]:
        """The build's long relations that these views read; what is not stored is read now."""
        relations = {r.name: r for p in plans for r in p.relations}
        spans = [s for s in build.spans if s.relation in relations]
        # sizes before, contents after: looking into files must not take the time to read on
        for whole in (False, True):
            spans = [self._checked(build, s, whole=whole) for s in spans]
            spans = self._completed(build, spans, relations, moment)
        return {
            name: [str(self._path(build, s)) for s in group if s.rows]
            for name, group in groupby(spans, lambda s: s.relation)
        }

    def _completed(
        self,
        build: Build,
        spans: Sequence[StoredSpan],
        relations: Mapping[RelationName, RelationSchema],
        moment: Moment,
    ) -> list[StoredSpan]:
        """The same spans, all of them stored."""
        done: list[StoredSpan] = []
        for name, group in groupby(spans, lambda s: s.relation):
            found = list(group)
            missing = [s for s in found if s.rows is None]
            done += [s for s in found if s.rows is not None]
            done += self._read_spans(build, relations[name], missing, moment)
        return sorted(done, key=lambda s: (s.relation, s.number))

    def _checked(self, build: Build, span: StoredSpan, *, whole: bool = False) -> StoredSpan:
        """The span as stored; as not stored if its file is not what was written."""
        if span.rows is None:
            return span
        path = self._path(build, span)
        with told(path):
            size = path.stat().st_size if path.is_file() else -1
            if size == span.size and (not whole or _digest(path) == span.digest):
                return span
        again = replace(span, rows=None, size=None, digest=None)
        self._store(build, again)
        return again

    def _read_spans(
        self, build: Build, relation: RelationSchema, spans: Sequence[StoredSpan], moment: Moment
    ) -> list[StoredSpan]:
        """Read and store the spans, as many at a time as there are executors for."""
        done: list[StoredSpan] = []
        if not spans:
            return done
        reader = _SpanReader(self._parts, relation, build.cn, moment)
        with self._parts.work_folder("batch") as folder:
            while len(done) < len(spans):
                if self._ending.is_set():
                    raise Interrupted
                for span, path in reader.answers(spans[len(done) :], folder):
                    done.append(self._keep(build, span, path))
        return done

    def _keep(self, build: Build, span: StoredSpan, written: Path) -> StoredSpan:
        """Make a written file the span's own: durable, then known."""
        path = self._path(build, span)
        with told(path):
            make_folder(path.parent)
            os.replace(written, path)
            sync_file(path)
            sync_folder(path.parent)
            rows = ds.dataset(str(path), format="parquet").count_rows()
            kept = replace(span, rows=rows, size=path.stat().st_size, digest=_digest(path))
        crash_point("span-written")
        self._store(build, kept)
        crash_point("span-stored")
        return kept

    def _store(self, build: Build, span: StoredSpan) -> None:
        if not self._builds.stored(build.id, span):
            raise Interrupted

    def _path(self, build: Build, span: StoredSpan) -> Path:
        name = slug(f"{span.relation.source} {json.dumps(span.relation.path)}")
        return _folder(self._parts) / str(build.id) / f"{name}-{span.number:05d}.parquet"


class _SpanReader:
    """Answers about spans of one relation, each compensated to one cn."""

    def __init__(self, parts: Parts, relation: RelationSchema, cn: int, moment: Moment) -> None:
        self._parts = parts
        self._relation = relation
        self._cn = cn
        self._snapshot: Snapshot = moment.snapshots[relation.name.source]
        self._admitted = admitted_since(relation.name.source, moment, cn, parts.catalog, parts.log)
        first, last = self._admitted.first, self._admitted.last
        self._files = parts.log.files(relation.name, first, last) if first <= last else []

    def answers(
        self, spans: Sequence[StoredSpan], folder: Path
    ) -> list[tuple[StoredSpan, Path]]:
        """Files with the rows of the first of these spans: of one, or of one per executor."""
        columns = spans[0].columns
        spark = self._parts.spark
        reads = [
            Read(self._relation, columns, span=Span(s.key, s.low, s.high))
            for s in spans[: spark.sparkContext.defaultParallelism]
        ]
        tasks = [task for read in reads for task in self._snapshot.tasks(read)]
        if any(task.local for task in tasks):
            tasks = tasks[:1]
        answer = folder / f"answer-{spans[0].number:05d}"
        files = store_each(spark, tasks, self._relation, columns, answer)
        return [
            (span, self._compensated(span, found, folder))
            for span, found in zip(spans, files, strict=False)
        ]

    def _compensated(self, span: StoredSpan, files: Sequence[str], folder: Path) -> Path:
        """One file with the span's rows at the cn; the answer's own where nothing is to be done."""
        schema = span_schema(self._relation, span.columns)
        log = SpanLog(self._files, schema, self._admitted, self._cn)
        net = log.net(span.key, span.low, span.high)
        if len(files) == 1 and not net.num_rows:
            return Path(files[0])
        path = folder / f"span-{span.number:05d}.parquet"
        sink = ParquetSink(folder, path, schema)
        try:
            answer = ds.dataset(list(files), schema=schema).to_batches()
            for rows in compensated(answer, net, span.key):
                sink.write(rows)
        except FewerThanNone as found:
            raise _diverged(self._relation, self._cn, str(found)) from None
        finally:
            sink.close()
        for file in files:
            Path(file).unlink()
        return path


def clear_builds(parts: Parts) -> None:
    """Forget the builds that no view waits for, and remove the files of those that are over.

    A view that has its first state, or was stopped, waits no more; one in which we failed does.
    """
    folders = list(_folder(parts).glob("*"))
    builds = parts.catalog.builds.all()
    rows = [*parts.catalog.views.all(), *parts.catalog.views.replacements()]
    waiting = {row.id for row in rows if row.state == "building" and row.cn is None}
    for build in builds:
        if gone := build.views - waiting:
            parts.catalog.builds.end(build.id, gone)
    known = {str(build.id) for build in parts.catalog.builds.all()}
    for folder in folders:
        if folder.name not in known:
            shutil.rmtree(folder, ignore_errors=True)


def _folder(parts: Parts) -> Path:
    return parts.root / "builds"


def _used(plans: Iterable[Planned]) -> dict[RelationName, tuple[int, ...]]:
    """Per relation, the columns that any of the views uses."""
    used: dict[RelationName, set[int]] = {}
    for plan in plans:
        for name, columns in plan.node.used().items() if plan.node else ():
            used.setdefault(name, set()).update(columns)
    return {name: tuple(sorted(columns or {0})) for name, columns in used.items()}


def _with(columns: Sequence[int], key: int) -> tuple[int, ...]:
    return tuple(sorted({*columns, key}))


def _digest(path: Path) -> int:
    """Tells a file that was damaged by accident."""
    found = 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            found = zlib.crc32(block, found)
    return found


def _diverged(relation: RelationSchema, cn: int, row: str) -> SourceDiverged:
    source = relation.name.source
    return SourceDiverged(
        f'the captured changes of "{relation.name}" are not what happened there',
        detail=f"row {row} of cn {cn} would be there fewer than zero times",
        hint=f"run: steadyview source resnapshot {source}: its views are built anew",
        source=source,
    )
