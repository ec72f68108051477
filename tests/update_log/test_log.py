"""Flushes, the files of a range, new columns, compaction, retention."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from steadyview.changes import Chunk, Column, Loss, RelationName, RelationSchema
from steadyview.errors import StorageUnavailable
from steadyview.update_log import FlushWriter, UpdateLog, writing
from tests.update_log.captured import LINES, ORDERS, SHOP, At, chunk, rows


@pytest.fixture
def log(tmp_path: Path) -> UpdateLog:
    return UpdateLog(tmp_path / "log")


@pytest.fixture
def writer(log: UpdateLog) -> FlushWriter:
    return log.writer("sales", SHOP, 1, 1)


def fill(writer: FlushWriter, flushes: int) -> None:
    for seq in range(1, flushes + 1):
        writer.append(chunk([seq]))
        writer.flush()


def seqs(log: UpdateLog, relation: RelationSchema, *bounds: int) -> list[int]:
    return sorted(log.rows(relation.name, *bounds).column("_seq").to_pylist())


def test_a_flush_tells_what_it_holds(writer: FlushWriter) -> None:
    writer.append(chunk([1, 2]))
    lost = Loss(ORDERS.name, "price", 3, "dropped")
    writer.append(replace(chunk([3], [LINES]), lost=(lost,)))
    assert writer.transactions == 3
    assert writer.bytes > 0
    done = writer.flush()
    assert (done.number, done.seq_from, done.seq_to, done.position) == (1, 1, 3, "at-3")
    assert done.rows == {ORDERS.name: 2, LINES.name: 3}
    assert done.lost == (lost,)
    assert (writer.transactions, writer.bytes) == (0, 0)


def test_an_empty_flush_carries_the_position_and_uses_its_number(writer: FlushWriter) -> None:
    writer.append(Chunk({}, (), At(9)))
    done = writer.flush()
    assert (done.number, done.seq_from, done.seq_to, done.position) == (1, 1, 0, "at-9")
    writer.append(chunk([1]))
    assert writer.flush().number == 2


def test_an_open_transaction_cannot_be_flushed(log: UpdateLog, writer: FlushWriter) -> None:
    start = Chunk({ORDERS.name: rows(ORDERS, [1])}, (), At(0), open=True)
    writer.append(start)
    assert writer.open
    with pytest.raises(ValueError, match="middle of a transaction"):
        writer.flush()
    writer.append(chunk([1]))
    writer.flush()
    assert seqs(log, ORDERS) == [1, 1]


def test_a_gap_in_the_stream_is_refused(writer: FlushWriter) -> None:
    writer.append(chunk([1]))
    with pytest.raises(ValueError, match="delivered transaction 3, expected 2"):
        writer.append(chunk([3]))


def test_rows_go_to_disk_before_too_many_wait(
    log: UpdateLog, writer: FlushWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "BUFFER_BYTES", 1000)
    for _ in range(20):
        part = {ORDERS.name: rows(ORDERS, [1] * 30)}
        writer.append(Chunk(part, (), At(0), open=True))
        assert writer._logs[ORDERS.name].buffered <= 1000
    writer.append(chunk([1]))
    writer.flush()
    (file,) = log.entries(ORDERS.name)
    assert file.rows == 601
    assert pq.ParquetFile(file.path).num_row_groups > 5


def test_only_files_that_may_hold_the_transactions_are_read(
    log: UpdateLog, writer: FlushWriter
) -> None:
    fill(writer, 12)
    assert [f.ranges["_seq"] for f in log.entries(ORDERS.name)] == [(s, s) for s in range(1, 13)]
    (path,) = log.files(ORDERS.name, 7, 7)
    assert pq.read_table(path).column("_seq").to_pylist() == [7]
    assert log.files(ORDERS.name, 13) == []
    assert seqs(log, ORDERS, 4, 6) == [4, 5, 6]


def test_transactions_of_all_relations_come_once_in_order(
    log: UpdateLog, writer: FlushWriter
) -> None:
    writer.append(chunk([1, 2]))
    writer.append(chunk([3], [LINES]))
    writer.flush()
    writer.append(chunk([4], [ORDERS]))
    writer.flush()
    assert log.transactions("sales").to_pydict() == {
        "seq": [1, 2, 3, 4],
        "tx": [1001, 1002, 1003, 1004],
    }
    assert log.transactions("sales", 2, 3).column("seq").to_pylist() == [2, 3]
    assert log.transactions("crm").num_rows == 0


def test_any_delta_reader_reads_the_log(log: UpdateLog, writer: FlushWriter) -> None:
    fill(writer, 2)
    found = DeltaTable(str(log.table(LINES.name).path)).to_pyarrow_table().sort_by("_seq")
    assert found.column("c0").to_pylist() == [10, 20]
    assert found.column("_count").type == pa.int32()


def test_a_column_added_at_the_source_is_null_in_older_rows(
    log: UpdateLog, writer: FlushWriter
) -> None:
    fill(writer, 1)
    wider = replace(LINES, columns=(*LINES.columns, Column("due", "TIMESTAMP_NTZ")))
    later = log.writer("sales", (ORDERS, wider), 2, 2)
    due = pa.array([0], pa.timestamp("us"))
    part = rows(LINES, [2]).append_column("c2", due)
    later.append(replace(chunk([2]), rows={LINES.name: part}))
    later.append(chunk([3]))
    later.flush()
    found = log.rows(LINES.name).sort_by("_seq")
    assert [v is None for v in found.column("c2").to_pylist()] == [True, False, True]
    assert log.table(LINES.name).version() == 3
    assert log.table(LINES.name).schema().names == ["c0", "c1", "_seq", "_count", "_tx", "c2"]


def test_relations_of_any_name_have_tables_of_their_own(log: UpdateLog) -> None:
    paths = [("a", "b"), ("a.b",), ('a"."b',), ("A", "b"), ("ä",), ("a b",), ("a/b",), ("select",)]
    names = [RelationName("sales", p) for p in paths] + [RelationName("Sales", ("a", "b"))]
    folders = {str(log.table(n).path).lower() for n in names}
    assert len(folders) == len(names)
    for name in names:
        assert log.table(name).path.is_relative_to(log.root)


def test_compaction_keeps_every_row_in_fewer_files(log: UpdateLog, writer: FlushWriter) -> None:
    fill(writer, 8)
    old = log.files(ORDERS.name)
    assert log.compact(ORDERS.name, upto_seq=5, many=5) == 0
    assert log.compact(ORDERS.name, upto_seq=7, many=5) == 7
    assert log.compact(ORDERS.name, upto_seq=7, many=5) == 0
    assert [f.ranges["_seq"] for f in log.entries(ORDERS.name)] == [(1, 7), (8, 8)]
    assert seqs(log, ORDERS) == list(range(1, 9))
    assert all(Path(f).exists() for f in old)
    assert log.recover("sales", 7) == 9
    assert seqs(log, ORDERS) == seqs(log, LINES) == list(range(1, 8))


def test_compaction_fills_columns_that_old_files_lack(log: UpdateLog, writer: FlushWriter) -> None:
    fill(writer, 4)
    wider = replace(ORDERS, columns=(*ORDERS.columns, Column("x", "INT")))
    log.prepare([wider])
    assert log.compact(ORDERS.name, upto_seq=4, many=3) == 4
    assert log.rows(ORDERS.name).column("c3").null_count == 4


def test_an_interrupted_compaction_is_redone_from_scratch(
    log: UpdateLog, writer: FlushWriter
) -> None:
    fill(writer, 4)
    table = log.table(ORDERS.name)
    litter = table.folder_for("compact", table.version() + 1) / "part-0.parquet"
    litter.parent.mkdir(parents=True)
    litter.write_bytes(b"half")
    assert log.compact(ORDERS.name, upto_seq=4, many=3) == 4
    assert seqs(log, ORDERS) == [1, 2, 3, 4]


def test_retention_drops_whole_files_only(log: UpdateLog, writer: FlushWriter) -> None:
    writer.append(chunk([1, 2]))
    writer.flush()
    writer.append(chunk([3, 4]))
    writer.flush()
    assert log.prune(ORDERS.name, 2) == 0
    assert log.prune(ORDERS.name, 4) == 1
    assert seqs(log, ORDERS) == [3, 4]
    assert seqs(log, LINES) == [1, 2, 3, 4]
    assert log.vacuum(ORDERS.name, timedelta(days=7)) == 0
    assert log.vacuum(ORDERS.name, timedelta(0)) == 1
    assert seqs(log, ORDERS) == [3, 4]


def test_rows_are_counted_by_transaction_whatever_file_holds_them(
    log: UpdateLog, writer: FlushWriter
) -> None:
    for seqs_of_flush in ([1, 2], [3, 4], [5]):
        writer.append(chunk(seqs_of_flush))
        writer.flush()

    def count(first: int, *wanted: bool) -> int:
        return log.row_count(ORDERS.name, first, np.array(wanted, dtype=bool))

    assert count(1, True, True, True, True, True) == log.rows(ORDERS.name).num_rows == 5
    assert count(2, True, True, True) == 3
    assert count(2, True, False, True) == 2
    assert count(4, False, True) == count(6, True) + 1 == 1
    assert count(1) == count(1, False) == 0


def test_a_forgotten_source_leaves_nothing(log: UpdateLog, writer: FlushWriter) -> None:
    fill(writer, 1)
    log.forget("sales")
    log.forget("sales")
    assert list(log.root.iterdir()) == []
    assert log.recover("sales", 0) == 1


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MB; only root can mount one."""
    place = tmp_path / "small"
    place.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)]
    if os.geteuid() or subprocess.run(mounting, check=False, capture_output=True).returncode:
        pytest.skip("mounting a small disk needs root")
    yield place
    # lazily: a thread of a library may still be closing a file
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_a_full_disk_is_said_so_and_capture_goes_on_when_there_is_space(small_disk: Path) -> None:
    log = UpdateLog(small_disk / "log")
    writer = log.writer("sales", SHOP, 1, 1)
    fill(writer, 1)
    filler = small_disk / "filler"
    _fill_up(filler)
    writer.append(chunk([2]))
    with pytest.raises(StorageUnavailable, match="disk full"):
        writer.flush()
    writer.abandon()
    filler.unlink()
    later = log.writer("sales", SHOP, log.recover("sales", 1), 2)
    later.append(chunk([2]))
    later.flush()
    assert seqs(log, ORDERS) == seqs(log, LINES) == [1, 2]


def _fill_up(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        try:
            while file.write(b"0" * 4096):
                pass
        except OSError:
            return
