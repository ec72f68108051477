"""For whom logs and changes are kept longer than the retention asks for, and how much of them.

    held for h  =  files with nothing after the retention's cutoff, and something after where h is

Each holder is judged as if it were the only one. Nobody is cut off here: it is only told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta

from steadyview.catalog import Hold, ViewRow
from steadyview.changes.types import SEQ
from steadyview.runtime.kept import inputs_of, is_hidden
from steadyview.runtime.parts import Parts
from steadyview.warehouse.view_store import CN, Shape, ViewStore

AUDITED = timedelta(days=7)
"""The log since the last audit of a relation stays at most so long for the next one."""
SUBSCRIPTION, VIEW, BUILD, AUDIT = "subscription", "view", "build", "audit"


def audited(parts: Parts) -> dict[str, int]:
    """By source, where its last audit is of: the log leads from there to the next one.

    An audit that has not come for a week, whatever the reason, is not waited for.
    """
    on = (n for n, settings in parts.project.sources.items() if settings["audit"] != "off")
    since = parts.clock.now_us() - int(AUDITED.total_seconds() * 1_000_000)
    found = {n: parts.catalog.audits.last(n).values() for n in on}
    cns = {n: [a.cn for a in audits if a.hashes and a.at >= since] for n, audits in found.items()}
    return {source: min(known) for source, known in cns.items() if known}


def holds(parts: Parts, cutoff: int) -> list[Hold]:
    """Who needs what the retention, which reaches back to the cutoff, would let go."""
    rows = {r.id: r for r in (*parts.catalog.views.all(), *parts.catalog.views.replacements())}
    found = {(hold.kind, hold.name): hold for hold in _holds(parts, rows, cutoff) if hold.bytes}
    return list(found.values())


def _holds(parts: Parts, rows: Mapping[int, ViewRow], cutoff: int) -> Iterator[Hold]:
    held = _Held(parts, cutoff)
    for one in parts.catalog.subscriptions.all():
        if one.view in rows:
            size = held.bytes(one.position, [rows[one.view]])
            yield Hold(SUBSCRIPTION, one.name, one.position, size)
    for row in rows.values():
        if row.cn is not None and row.state in ("active", "building") and not is_hidden(row):
            below = [*_below(row, rows)]
            cn = min([row.cn, *(r.cn for r in below if r.cn is not None and is_hidden(r))])
            kind = BUILD if row.replacement else VIEW
            yield Hold(kind, row.name, cn, held.bytes(cn, below))
    for build in parts.catalog.builds.all():
        names = sorted(rows[i].name for i in build.views if i in rows and not is_hidden(rows[i]))
        for name in names:
            yield Hold(BUILD, name, build.cn, held.bytes(build.cn, rows.values()))
    for source, cn in audited(parts).items():
        yield Hold(AUDIT, source, cn, held.bytes(cn, ()))


def _below(row: ViewRow, rows: Mapping[int, ViewRow]) -> Iterator[ViewRow]:
    """The nodes that it reads, itself or by way of hidden ones."""
    for i in inputs_of(row).values():
        if i in rows:
            yield rows[i]
            if is_hidden(rows[i]):
                yield from _below(rows[i], rows)


class _Held:
    """What is kept after a cn, of all that lies before the cutoff."""

    def __init__(self, parts: Parts, cutoff: int) -> None:
        self._parts = parts
        self._cutoff = cutoff

    def bytes(self, after: int, nodes: Iterable[ViewRow]) -> int:
        """Of the update log, and of the changes of these nodes."""
        if after >= self._cutoff:
            return 0
        return self._logged(after) + sum(self._changed(row, after) for row in nodes)

    def _logged(self, after: int) -> int:
        commits, log = self._parts.catalog.commits, self._parts.log
        after, size = max(after, commits.oldest_cn()), 0
        for source in self._parts.catalog.sources.states():
            first = commits.seq_upto(source.name, after)
            last = commits.seq_upto(source.name, max(self._cutoff, after))
            for relation in self._parts.catalog.sources.schemas(source.name):
                files = log.table(relation.name).files()
                size += sum(f.size for f in files if first < f.ranges[SEQ][1] <= last)
        return size

    def _changed(self, row: ViewRow, after: int) -> int:
        delta = ViewStore(self._parts.root, row, Shape()).delta
        if not delta.exists():
            return 0
        return sum(f.size for f in delta.files() if after < f.ranges[CN][1] <= self._cutoff)
