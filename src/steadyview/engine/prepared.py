"""Statements over few rows: planned once, run with other rows each time, in one task.

A batch runs the same texts again and again. Most of the time that Spark takes for a small one goes
into reading, analysing and planning the text, and into moving a few rows between tasks. So the plan
is kept, by text and by the names and types of the inputs' columns, and a run only puts the rows in
(`Prepared.java`).

Claim: the rows are those that `spark.sql` would give over the same inputs. So are the errors, but
for values that need not be computed here, since one side of a join is empty, say. A text that keeps
a plan inside another one is not taken, nor is a result of more than 64 MB.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Lock
from weakref import WeakKeyDictionary, ref

import pyarrow as pa
from pyspark.errors.exceptions.captured import unwrap_spark_exception
from pyspark.sql import SparkSession

from steadyview.changes import arrow_type
from steadyview.engine.java import compiled
from steadyview.engine.session import beside

_ONE_TASK = {
    "spark.sql.shuffle.partitions": "1",
    # all rows are in one task already
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}
Columns = tuple[tuple[str, str], ...]
"""Names and types."""


@dataclass(frozen=True)
class Input:
    """What a name in a statement stands for: few rows, with these columns."""

    columns: Columns
    rows: pa.Table


class Preparations:
    """The plans of one session's statements. Any thread may run any of them."""

    def __init__(self, spark: SparkSession) -> None:
        # the session is the key of these: they must not keep it alive
        self._spark = ref(spark)
        self._idle: SimpleQueue[SparkSession] = SimpleQueue()
        """Sessions beside it, in which nobody plans now: all statements call their inputs alike."""
        self._java = compiled(spark.sparkContext._gateway, "Prepared")
        self._kept: dict[tuple[str, tuple[Columns, ...]], int] = {}
        """Numbers of plans, which the JVM keeps; 0: there is none."""

    def rows(self, sql: str, inputs: Sequence[Input]) -> pa.Table | None:
        """The statement's rows; None if it cannot be run this way.

        In the text, input i is called what `place(i)` says.
        """
        key = (sql, tuple(i.columns for i in inputs))
        sent = b"".join(_behind_its_length(_stream(i)) for i in inputs)
        while (number := self._number(key)) > 0:
            with unwrap_spark_exception():
                parts = self._java.run(number, sent)
            if parts is None:
                return None
            if found := b"".join(parts):
                with pa.ipc.open_stream(found) as rows:
                    return rows.read_all()
            # others have needed the place since
            self._kept.pop(key, None)
        return None

    def forget(self) -> None:
        """Let go of all plans."""
        numbers, self._kept = [*self._kept.values()], {}
        self._java.forget(numbers)

    def _number(self, key: tuple[str, tuple[Columns, ...]]) -> int:
        if key not in self._kept:
            sql, columns = key
            names = [place(i) for i in range(len(columns))]
            listed = [", ".join(f"`{n}` {t}" for n, t in each) for each in columns]
            session = self._session()
            self._kept[key] = self._java.keep(session._jsparkSession, sql, names, listed)
            # not where planning was broken off: it may still go on there
            self._idle.put(session)
        return self._kept[key]

    def _session(self) -> SparkSession:
        with suppress(Empty):
            return self._idle.get_nowait()
        spark = self._spark()
        assert spark is not None, "whoever plans has it"
        made = beside(spark)
        for key, value in _ONE_TASK.items():
            made.conf.set(key, value)
        return made


_preparations: WeakKeyDictionary[SparkSession, Preparations] = WeakKeyDictionary()
_lock = Lock()


def preparations(spark: SparkSession) -> Preparations:
    """Those of this session."""
    with _lock:
        if spark not in _preparations:
            _preparations[spark] = Preparations(spark)
        return _preparations[spark]


def forget(spark: SparkSession) -> None:
    """Let go of what is kept for a session that is not used any more."""
    with _lock:
        found = _preparations.pop(spark, None)
    if found is not None:
        found.forget()


def place(number: int) -> str:
    """What a statement calls an input."""
    return f"input_{number}"


def _stream(given: Input) -> bytes:
    schema = pa.schema([(name, arrow_type(type_)) for name, type_ in given.columns])
    rows = given.rows.select(schema.names).cast(schema)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_table(rows)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def _behind_its_length(stream: bytes) -> bytes:
    return len(stream).to_bytes(4, "big") + stream
