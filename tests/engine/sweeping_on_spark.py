"""Drives the batched sweep on Spark through a world, with answers that reflect any set P.

The counterpart of `tests/maintenance/sweeping.py`: the same showings, the same state machine, but
logs and answers are files and the change is one Spark statement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from steadyview.engine.spark_algebra import Answer, Handle, SparkAlgebra, Window
from steadyview.engine.statements import delta_sql

from steadyview.algebra import Bag, Row, Summary
from steadyview.changes import RelationName, RelationSchema, arrow_type
from steadyview.engine.analysis import typed
from steadyview.engine.frames import Frames
from steadyview.engine.tagged_log import Admitted, LogTagger, TaggedLog
from steadyview.maintenance import BatchedSweep, EdgeLookup, Record
from steadyview.views.definition import Definition
from steadyview.views.join_tree import join_tree
from tests.maintenance.sweeping import Showing, changed_occurrences, reflected_states
from tests.worlds import World


@dataclass
class SparkSweeper:
    """Sweeps on Spark; files go into the folder. `careful`: every partner is made of versions."""

    spark: SparkSession
    folder: Path
    careful: bool = False
    compensated: bool = True

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._numbers = count(1)

    def changes(
        self, definition: Definition, world: World, showings: Sequence[Showing]
    ) -> dict[int, Any]:
        """The view's change per cn over all batches: a bag, or a summary per group."""
        changes: dict[int, Any] = {}
        for showing in showings:
            changes |= self._one(definition, world, showing)
        return changes

    def _one(self, definition: Definition, world: World, showing: Showing) -> dict[int, Any]:
        frames = Frames(self.spark)
        try:
            sql = self._swept(frames, definition, world, showing)
            rows = self.spark.sql(sql).toArrow().to_pylist() if sql else []
        finally:
            frames.drop()
        return per_cn(rows, grouped=definition.grouping is not None)

    def _swept(
        self, frames: Frames, definition: Definition, world: World, showing: Showing
    ) -> str | None:
        logs = self._logs(frames, world, showing)
        window = Window(showing.batch.after, showing.batch.upto)
        algebra = SparkAlgebra(logs, window, careful=self.careful, compensated=self.compensated)
        changed = changed_occurrences(definition, world, showing.batch)
        machine: BatchedSweep[Handle] = BatchedSweep(
            definition, join_tree(definition), algebra, changed
        )
        states = reflected_states(world, showing.reflected)
        waiting = list(machine.begin())
        while not isinstance(action := waiting.pop(), Record):
            state = states[action.occurrence.relation.name]
            log = logs[action.occurrence.relation.name]
            waiting += machine.answered(action.edge, self._answer(frames, action, state, log))
        types = typed(self.spark, definition)
        return delta_sql(definition, types, action.change) if action.change.terms else None

    def _logs(
        self, frames: Frames, world: World, showing: Showing
    ) -> dict[RelationName, TaggedLog]:
        """Every relation's log, tagged: transactions of a source are numbered in their order."""
        places, admitted = _admitted(world, showing)
        tagger = LogTagger(frames, self.folder, admitted)
        logs = {}
        for schema in world.schemas:
            path = self.folder / f"raw-{next(self._numbers)}.parquet"
            table = _log_rows(world, schema, places)
            pq.write_table(table, path)
            files = [(str(path), table.num_rows)] if table.num_rows else []
            numbers = range(len(schema.columns))
            logs[schema.name] = tagger.tag(schema, files, numbers, showing.batch.after)
        return logs

    def _answer(
        self, frames: Frames, ask: EdgeLookup[Any], state: Bag[Row], log: TaggedLog
    ) -> Answer:
        relation, key = ask.occurrence.relation, ask.edge.key
        column = key.to_column if key else None
        if ask.keys is not None and column is not None:
            wanted = set(ask.keys.values.to_pylist())
            state = state.where(lambda row: row[column] in wanted)
        path = self.folder / f"answer-{next(self._numbers)}.parquet"
        copies = [row for row, n in state for _ in range(n)]
        pq.write_table(_table(relation, copies), path)
        view = log.with_answer(frames, [str(path)])
        return Answer(view, (str(path),), column, logged=bool(log.paths))


def realizable(world: World, showing: Showing) -> Showing:
    """The same, without the transactions that take away rows of others that are not shown.

    In-memory bags can show less than no copy of a row; a database cannot.
    """
    state, shown = dict(world.initial), set()
    for cn, transaction in enumerate(world.transactions, 1):
        if cn not in showing.reflected:
            continue
        after = dict(state)
        for change in transaction.changes:
            after[change.relation] += Bag([(change.row, change.count)])
        if all(count >= 0 for rows in after.values() for _, count in rows):
            state, shown = after, {*shown, cn}
    return replace(showing, reflected=frozenset(shown))


def _admitted(world: World, showing: Showing) -> tuple[dict[int, int], dict[str, Admitted]]:
    """Each transaction's number at its source, and per source what the batch needs to know."""
    cns: dict[str, list[int]] = {schema.name.source: [] for schema in world.schemas}
    places = {}
    for cn, transaction in enumerate(world.transactions, 1):
        cns[transaction.source].append(cn)
        places[cn] = len(cns[transaction.source])
    return places, {
        source: Admitted(
            1,
            np.array(numbers, dtype=np.int64),
            np.array([cn in showing.reflected for cn in numbers], dtype=bool),
        )
        for source, numbers in cns.items()
    }


def _log_rows(world: World, schema: RelationSchema, places: Mapping[int, int]) -> pa.Table:
    entries = [
        (change, places[cn])
        for cn, transaction in enumerate(world.transactions, 1)
        for change in transaction.changes
        if change.relation == schema.name
    ]
    table = _table(schema, [change.row for change, _ in entries])
    counts = pa.array([change.count for change, _ in entries], pa.int32())
    seqs = pa.array([seq for _, seq in entries], pa.int64())
    return table.append_column("_count", counts).append_column("_seq", seqs)


def _table(schema: RelationSchema, rows: Sequence[Row]) -> pa.Table:
    columns = {
        f"c{i}": pa.array([row[i] for row in rows], arrow_type(column.type))
        for i, column in enumerate(schema.columns)
    }
    return pa.table(columns)


def per_cn(rows: Sequence[Mapping[str, Any]], *, grouped: bool) -> dict[int, Any]:
    """Rows of a view delta as a bag per cn, or as a summary per cn and group."""
    tagged: dict[int, list[Mapping[str, Any]]] = {}
    for row in rows:
        tagged.setdefault(row["_cn"], []).append(row)
    change = _summaries if grouped else _bag
    return {cn: change(of_cn) for cn, of_cn in tagged.items()}


def _bag(rows: Sequence[Mapping[str, Any]]) -> Bag[Row]:
    return Bag((_of(row, "o"), row["_count"]) for row in rows)


def _summaries(rows: Sequence[Mapping[str, Any]]) -> dict[Row, Summary]:
    return {_of(row, "_g"): _summary(row) for row in rows}


def _summary(row: Mapping[str, Any]) -> Summary:
    nonnull = _of(row, "_nonnull_")
    sums = tuple(int(row.get(f"_sum_{a}", 0)) for a in range(len(nonnull)))
    return Summary(row["_count"], nonnull, sums)


def _of(row: Mapping[str, Any], prefix: str) -> Row:
    return tuple(value for name, value in row.items() if name.startswith(prefix))
