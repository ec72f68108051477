"""A source relation as of a past cn, from an answer of now and the update log.

    R(cn)  =  answer  -  { log rows in the answer, after cn }  +  { not in it, up to cn }

Written for verification and for recomputed views: whole relations under their own names, one row
per copy. With the incremental maintenance it shares the log and the knowledge of what an answer
reflects, and nothing else. Spark reads the log's files; the commit table and the reflected set
reach it as one sign per transaction. A row that would be there fewer than zero times is an error:
what was captured is not what happened at the source.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from steadyview.changes import RelationSchema, arrow_type
from steadyview.changes.types import COUNT, SEQ
from steadyview.engine.answers import store
from steadyview.engine.bags import copies
from steadyview.engine.carried import Carried, literal, raising
from steadyview.engine.frames import Frames, column_ddl
from steadyview.engine.tagged_log import Admitted
from steadyview.errors import SourceDiverged, SteadyviewError
from steadyview.sources.contract import Read, Snapshot
from steadyview.update_log import UpdateLog
from steadyview.views.asked_rows import AskedRows


class RelationsAsOf:
    """Relations of frozen sources at one cn, as temporary views."""

    def __init__(self, frames: Frames, folder: Path, log: UpdateLog, cn: int) -> None:
        self.compensated = 0
        self._frames = frames
        self._folder = folder
        self._log = log
        self._cn = cn

    def view(
        self,
        relation: RelationSchema,
        columns: Sequence[int],
        snapshot: Snapshot,
        admitted: Admitted,
        *,
        others: bool = False,
        only: AskedRows | None = None,
    ) -> str:
        """A temporary view with the relation's rows at the cn, columns named as at the source.

        `others`: the other columns are there as well, but an error for who needs their values.
        `only`: these rows alone, by one of the columns. A row is one of them by its content, so
        they are compensated by the log rows that are some of them too.
        """
        number = len(list(self._folder.iterdir()))
        spark = self._frames.spark
        parallelism = spark.sparkContext.defaultParallelism
        tasks = snapshot.tasks(_question(relation, columns, only), parallelism)
        path = self._folder / f"relation-{number:03d}.parquet"
        files, _ = store(spark, tasks, relation, columns, path)
        rows = self._frames.parquet("relation", files, column_ddl(relation, columns))
        if only is not None:
            rows = f"(SELECT * FROM {rows} WHERE {_is_one(only)})"
        if changes := self._changes(relation, columns, admitted, path, only):
            rows = self._compensated(relation, columns, rows, changes)
        listed = [_named(relation, i) for i in columns]
        if others:
            more = (i for i in range(len(relation.columns)) if i not in columns)
            listed += [_unread(relation, i) for i in more]
        return self._frames.query("as_of", f"SELECT {', '.join(listed)} FROM {rows}")

    def _changes(
        self,
        relation: RelationSchema,
        columns: Sequence[int],
        admitted: Admitted,
        path: Path,
        only: AskedRows | None,
    ) -> str | None:
        """A query for the log rows that lead from the answer to the cn, `n` being what each adds.

        None where there are none, so that quiet sources cost nothing.
        """
        signs = admitted.signs(self._cn)
        count = self._log.row_count(relation.name, admitted.first, signs != 0)
        if not count:
            return None
        self.compensated += count
        places = np.flatnonzero(signs)
        seqs = places + admitted.first
        file = path.with_suffix(".signs.parquet")
        pq.write_table(pa.table({SEQ: seqs, "sign": signs[places]}), file)
        signed = self._frames.parquet("signs", [str(file)], f"{SEQ} BIGINT, sign BIGINT")
        files = self._log.files(relation.name, int(seqs[0]), int(seqs[-1]))
        ddl = f"{column_ddl(relation, columns)}, {COUNT} INT, {SEQ} BIGINT"
        log = self._frames.parquet("log", files, ddl)
        listed = _listed(columns)
        where = "" if only is None else f" WHERE {_is_one(only)}"
        return f"SELECT {listed}, sign * {COUNT} AS n FROM {log} JOIN {signed} USING ({SEQ}){where}"

    def _compensated(
        self, relation: RelationSchema, columns: Sequence[int], rows: str, changes: str
    ) -> str:
        """The rows counted together with the changes, then one row per copy again."""
        listed = _listed(columns)
        refusal = raising(_diverged(relation, self._cn), _row(relation, columns))
        return (
            f"(SELECT {listed} FROM (SELECT {listed}, SUM(n) AS n FROM (SELECT {listed}, 1L AS n "
            f"FROM {rows} UNION ALL {changes}) GROUP BY {listed} HAVING SUM(n) <> 0) "
            f"{copies('n', refusal)})"
        )


def _question(relation: RelationSchema, columns: Sequence[int], only: AskedRows | None) -> Read:
    if only is None:
        return Read(relation, tuple(columns))
    type_ = arrow_type(relation.columns[only.column].type)
    return Read(relation, tuple(columns), only.column, pa.array(only.values, type_))


def _is_one(only: AskedRows) -> str:
    """The condition that a row is one of these."""
    values = (literal(v) if isinstance(v, str) else str(v) for v in only.values)
    return f"c{only.column} IN ({', '.join(values)})"


def _named(relation: RelationSchema, column: int, value: str | None = None) -> str:
    """The column under its name at the source."""
    name = relation.columns[column].name.replace("`", "``")
    return f"{value or f'c{column}'} AS `{name}`"


def _unread(relation: RelationSchema, column: int) -> str:
    """A column that nobody needs, as Spark itself finds out: needed, it is an error."""
    name = relation.columns[column].name
    needed = SteadyviewError(
        f'the SQL text needs column "{name}" of "{relation.name}", which the view is kept without',
        hint="report this: the view may be wrong",
    )
    raised = f"RAISE_ERROR({literal(str(Carried(needed)))})"
    return _named(relation, column, f"CAST({raised} AS {relation.columns[column].type})")


def _listed(columns: Sequence[int]) -> str:
    return ", ".join(f"c{i}" for i in columns)


def _row(relation: RelationSchema, columns: Sequence[int]) -> str:
    """The row as a struct with the source's names."""
    fields = (f"{literal(relation.columns[i].name)}, c{i}" for i in columns)
    return f"NAMED_STRUCT({', '.join(fields)})"


def _diverged(relation: RelationSchema, cn: int) -> SourceDiverged:
    source = relation.name.source
    return SourceDiverged(
        f'the captured changes of "{relation.name}" are not what happened there',
        detail=f"row {{row}} of cn {cn} would be there fewer than zero times: a change passed the "
        "capture by, or the warehouse's log is damaged",
        hint=f"run: steadyview source resnapshot {source}: its views are built anew",
        source=source,
    )
