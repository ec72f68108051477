"""Files: what comes back is what went in, and half-written ones leave nothing."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from steadyview.changes import Column
from steadyview.changes.types import arrow_schema
from steadyview.delta import ParquetSink, Table, slug
from steadyview.errors import StorageDamaged

VALUES = {
    "BOOLEAN": [True, False],
    "SMALLINT": [-(2**15), 2**15 - 1],
    "INT": [-(2**31), 2**31 - 1],
    "BIGINT": [-(2**63), 2**63 - 1],
    "FLOAT": [-0.0, 1.5],
    "DOUBLE": [-0.0, 5e-324],
    "STRING": ["", "NULL 'é' \U0001f600"],
    "BINARY": [b"", b"\x00\xff"],
    "DATE": [datetime.date(1, 1, 1), datetime.date(9999, 12, 31)],
    "TIMESTAMP": [
        datetime.datetime(1, 1, 1, tzinfo=datetime.UTC),
        datetime.datetime(2024, 2, 29, 23, 59, 59, 999999, datetime.UTC),
    ],
    "TIMESTAMP_NTZ": [
        datetime.datetime(1582, 10, 10),
        datetime.datetime(9999, 12, 31, 23, 59, 59, 1),
    ],
    "DECIMAL(9,2)": [Decimal("-9999999.99"), Decimal("0.01")],
    "DECIMAL(18,0)": [Decimal(10**18 - 1), Decimal(-1)],
    "DECIMAL(38,18)": [Decimal("-99999999999999999999.999999999999999999"), Decimal("1e-18")],
}


def test_every_type_comes_back_exactly_through_any_delta_reader(tmp_path: Path) -> None:
    schema = arrow_schema([Column(t, t) for t in VALUES])
    rows = pa.table(
        [
            pa.array([*values, None], f.type)
            for values, f in zip(VALUES.values(), schema, strict=True)
        ],
        schema=schema,
    )
    table = Table.create(tmp_path / "t", schema)
    sink = ParquetSink(table.path, table.folder_for("w", 1) / "part-0.parquet", schema)
    sink.write(rows)
    table.commit("w", 1, [sink.close()])
    found = DeltaTable(str(table.path)).to_pyarrow_table()
    assert found.cast(schema).to_pylist() == rows.to_pylist()
    assert math.copysign(1, found.column(4)[0].as_py()) == -1


def test_timestamps_are_stored_in_microseconds_never_int96(tmp_path: Path) -> None:
    schema = pa.schema([("c0", pa.timestamp("us", tz="UTC")), ("c1", pa.decimal128(12, 2))])
    sink = ParquetSink(tmp_path, tmp_path / "a.parquet", schema)
    sink.write(pa.table({"c0": pa.array([1], schema.field(0).type)}))
    sink.close()
    stored = pq.ParquetFile(tmp_path / "a.parquet").schema
    assert [stored.column(i).physical_type for i in (0, 1)] == ["INT64", "INT64"]
    assert "microseconds" in str(stored.column(0).logical_type)


def test_nan_is_kept(tmp_path: Path) -> None:
    schema = pa.schema([("c0", pa.float64())])
    sink = ParquetSink(tmp_path, tmp_path / "a.parquet", schema)
    sink.write(pa.table({"c0": [math.nan]}))
    sink.close()
    assert math.isnan(pq.read_table(tmp_path / "a.parquet").column(0)[0].as_py())


def test_pieces_count_rows_and_widen_the_range(tmp_path: Path) -> None:
    schema = pa.schema([("c0", pa.string()), ("_seq", pa.int64())])
    sink = ParquetSink(tmp_path, tmp_path / "d" / "a.parquet", schema, ("_seq",))
    for seqs in ([5, 6], [], [2], [9]):
        sink.write(pa.table({"_seq": pa.array(seqs, pa.int64())}))
    file = sink.close()
    assert (file.path, file.rows, dict(file.ranges)) == ("d/a.parquet", 4, {"_seq": (2, 9)})
    assert pq.read_table(tmp_path / "d" / "a.parquet").column("c0").null_count == 4


def test_a_column_the_file_does_not_have_is_refused(tmp_path: Path) -> None:
    sink = ParquetSink(tmp_path, tmp_path / "a.parquet", pa.schema([("c0", pa.int64())]))
    with pytest.raises(ValueError, match="c9"):
        sink.write(pa.table({"c9": [1]}))


def test_a_value_that_does_not_fit_is_refused_not_rounded(tmp_path: Path) -> None:
    sink = ParquetSink(tmp_path, tmp_path / "a.parquet", pa.schema([("c0", pa.decimal128(4, 1))]))
    with pytest.raises(pa.ArrowInvalid):
        sink.write(pa.table({"c0": pa.array([Decimal("1.23")])}))


def test_an_abandoned_file_is_gone(tmp_path: Path) -> None:
    sink = ParquetSink(tmp_path, tmp_path / "a.parquet", pa.schema([("c0", pa.int64())]))
    sink.write(pa.table({"c0": [1]}))
    sink.abandon()
    sink.abandon()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_spark_counts_only_when_it_is_complete(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", pa.schema([("c0", pa.int64())]))
    folder = table.folder_for("base", 1)
    for bucket, rows in (("b=0", [1, 2]), ("b=1", []), ("b=2", [3])):
        (folder / bucket).mkdir(parents=True)
        pq.write_table(pa.table({"c0": pa.array(rows, pa.int64())}), folder / bucket / "p.parquet")
    with pytest.raises(StorageDamaged, match="incomplete"):
        table.collect(folder)
    (folder / "_SUCCESS").touch()
    files = table.collect(folder)
    assert [f.rows for f in files] == [2, 1]
    table.commit("base", 1, files)
    assert DeltaTable(str(table.path)).to_pyarrow_table().num_rows == 3


def test_a_truncated_file_of_spark_is_damage(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "t", pa.schema([("c0", pa.int64())]))
    folder = table.folder_for("base", 1)
    folder.mkdir(parents=True)
    (folder / "p.parquet").write_bytes(b"PAR1")
    (folder / "_SUCCESS").touch()
    with pytest.raises(StorageDamaged, match="cannot be read"):
        table.collect(folder)


def test_file_names_differ_for_different_names_also_without_case() -> None:
    names = ["orders", "Orders", "ORDERS", "a b", "a-b", "a.b", "é", "è", "", "x" * 41, "x" * 42]
    assert len({slug(n).lower() for n in names}) == len(names)
    assert all(set(slug(n)) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-") for n in names)
