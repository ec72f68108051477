"""Tables of sources in a query, as of the cn at which it reads views.

A table is read at its database, frozen there, and compensated by the log to the cn: an answer that
shows later commits has them taken back, one that shows earlier ones has the missing ones added. So
whatever cn the views have, the tables have it too, as far back as the log reaches.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from steadyview.changes import RelationName, RelationSchema
from steadyview.engine.failures import spark_told
from steadyview.engine.frames import Frames
from steadyview.errors import OutsideRetention, QueryRefused
from steadyview.query.as_of import RelationsAsOf
from steadyview.query.moment import Moment, WaitFor, admitted_since, open_moment
from steadyview.runtime.parts import Parts
from steadyview.runtime.planning import Planned, all_sources
from steadyview.runtime.recompute import Recomputing
from steadyview.sources.contract import Source
from steadyview.views.asked_rows import AskedRows
from steadyview.views.query_text import columns_named

Following = Callable[[], AbstractContextManager[WaitFor]]
"""Gives a way to wait until what a source has committed is captured."""


@dataclass(frozen=True)
class LiveTables:
    """Relations as of `cn`: the name of each one's temporary view, quoted."""

    cn: int
    names: Mapping[RelationName, str]


class LiveReading:
    """Reads tables for one query; what it makes is there until `closing` is closed."""

    def __init__(
        self, parts: Parts, spark: SparkSession, following: Following, closing: ExitStack
    ) -> None:
        self._parts = parts
        self._frames = Frames(spark)
        self._following = following
        self._folder = closing.enter_context(parts.work_folder("query"))
        closing.callback(self._frames.drop)

    def read(
        self,
        sql: str,
        relations: Sequence[RelationSchema],
        asked: Mapping[RelationName, AskedRows],
        cn: int | None,
    ) -> LiveTables:
        """What the query reads of these relations, as of the cn, the newest by default.

        `asked`: the rows that are enough, where that is not the whole relation.
        """
        parts = self._parts
        sources = [self._source(name) for name in sorted({r.name.source for r in relations})]
        with self._following() as wait_for, open_moment(sources, wait_for, parts.catalog) as moment:
            at = moment.newest if cn is None else cn
            _check_reaches(parts, relations, at, moment)
            as_of = RelationsAsOf(self._frames, self._folder, parts.log, at)
            with spark_told(parts.root):
                names = {
                    r.name: self._view(as_of, sql, r, asked.get(r.name), at, moment)
                    for r in relations
                }
        return LiveTables(at, names)

    def recompute(
        self, names: Collection[str], plans: Mapping[str, Planned], cn: int
    ) -> dict[str, DataFrame]:
        """The rows of these views at the cn, by their texts."""
        parts, read = self._parts, (all_sources(plans[name], plans) for name in names)
        sources = [self._source(name) for name in sorted(frozenset().union(*read))]
        with self._following() as wait_for, open_moment(sources, wait_for, parts.catalog) as moment:
            folder = self._folder / "recomputed"
            folder.mkdir()
            recomputing = Recomputing(parts, self._frames, plans, moment, cn, folder)
            with spark_told(parts.root):
                return {name: recomputing.rows(plans[name]) for name in names}

    def _source(self, name: str) -> Source:
        if name not in self._parts.sources:
            raise QueryRefused(
                f'source "{name}" is no longer in steadyview.toml', hint="put its section back"
            )
        return self._parts.sources[name]

    def _view(
        self,
        as_of: RelationsAsOf,
        sql: str,
        relation: RelationSchema,
        asked: AskedRows | None,
        cn: int,
        moment: Moment,
    ) -> str:
        source = relation.name.source
        admitted = admitted_since(source, moment, cn, self._parts.catalog, self._parts.log)
        columns = columns_named(sql, relation) or [0]
        snapshot = moment.snapshots[source]
        return as_of.view(relation, columns, snapshot, admitted, others=True, only=asked)


def _check_reaches(
    parts: Parts, relations: Sequence[RelationSchema], cn: int, moment: Moment
) -> None:
    """OutsideRetention unless the log leads from what the sources show to the cn."""
    commits = parts.catalog.commits
    if not commits.oldest_cn() <= cn <= moment.newest:
        raise OutsideRetention(
            f"tables of sources cannot be read as of cn {cn}",
            detail=f"the log reaches from cn {commits.oldest_cn()} to cn {moment.newest}",
        )
    read = {r.name for r in relations}
    for loss in parts.catalog.sources.losses():
        source = loss.relation.source
        if loss.relation in read and loss.seq > commits.seq_upto(source, cn):
            raise OutsideRetention(
                f'"{loss.relation}" cannot be read as of cn {cn}',
                detail=loss.reason,
                hint="ask at the newest commit, once the views have been built anew",
            )
