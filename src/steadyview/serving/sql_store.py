"""What the stores that speak SQL have in common: the registry, the tables, and how they are read.

    steadyview_store        identity, format
    steadyview_views        a row per view: whose it is, which incarnation is read, what is wrong
    steadyview_records      a row per table of records: its view, its layout
    steadyview_positions    a row per table of records and stream: position, floor, time
    <view>__<incarnation>   the records
    <view>                  for readers, a view of SQL: the rows at the watermark

A table of records has a row per key: `_key`, the view's columns, then `_cn`, `_dead` and the
previous version, `_was_cn`, `_was_dead` and `_was_<column>`; of records that are kept from the
update log `_entries` instead, their hidden sums and `_dead`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from steadyview.crash_points import crash_point
from steadyview.errors import StoreRefused, StoreUnavailable
from steadyview.serving.contract import (
    FORMAT,
    Counts,
    Found,
    Position,
    Reading,
    ServedView,
    Signed,
    Version,
)
from steadyview.serving.layout import (
    CHANGES,
    CN,
    DEAD,
    ENTRIES,
    KEY,
    WAS,
    Columns,
    RecordLayout,
    Records,
    short_name,
)
from steadyview.serving.sql_streams import SqlStreams, Values

if TYPE_CHECKING:
    import pyarrow as pa

_NOW = f"r.{CN} <= p.position"
_THERE = (
    f"CASE WHEN {_NOW} THEN NOT r.{DEAD} ELSE r.{WAS}cn IS NOT NULL AND NOT r.{WAS}dead END"
)
"""That a record r is there at the watermark p.position."""


class NoSuchTable(StoreUnavailable):
    """A table of records is gone: another incarnation is read by now."""


_REGISTRY = (
    "CREATE TABLE IF NOT EXISTS steadyview_store (identity TEXT NOT NULL, format BIGINT NOT NULL)",
    """CREATE TABLE IF NOT EXISTS steadyview_views (
        view TEXT PRIMARY KEY, warehouse TEXT NOT NULL, incarnation BIGINT NOT NULL,
        last BIGINT NOT NULL, error TEXT, wanted BIGINT NOT NULL, rebuilt TEXT)""",
    """CREATE TABLE IF NOT EXISTS steadyview_records (
        records TEXT PRIMARY KEY, view TEXT NOT NULL, incarnation BIGINT NOT NULL,
        node BIGINT NOT NULL, layout TEXT NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS steadyview_positions (
        records TEXT NOT NULL, stream TEXT NOT NULL, position BIGINT NOT NULL,
        floor BIGINT NOT NULL, time BIGINT NOT NULL, PRIMARY KEY (records, stream))""",
)


class SqlStore(SqlStreams):
    """A store that speaks SQL; a family says how it connects, spells types and writes many rows.

    Statements mark parameters with `self.mark`; identifiers are quoted by `self.quoted`.
    """

    # --- what a family says ------------------------------------------------------------------

    @abstractmethod
    def reading(self) -> AbstractContextManager[None]:
        """One transaction of which everything is of one moment."""

    @abstractmethod
    def streamed(self, sql: str, values: Values) -> Iterator[list[tuple[Any, ...]]]:
        """The rows of a statement in pieces."""

    @abstractmethod
    def kind_of(self, name: str) -> str | None:
        """What the store has under a name: "table", "view" or something else; None: nothing."""

    @abstractmethod
    def new_identity(self) -> str:
        """A text that no other store has."""

    @abstractmethod
    def replace_view(self, name: str, select: str) -> None:
        """Make a view of SQL, or have it select otherwise."""

    # --- the registry ------------------------------------------------------------------------

    def prepare(self) -> None:
        """See the contract."""
        if self.kind_of("steadyview_store") is None:
            with self.writing():
                for statement in _REGISTRY:
                    self.run(statement)
                if not self.run("SELECT 1 FROM steadyview_store"):
                    values = (self.new_identity(), FORMAT)
                    sql = f"INSERT INTO steadyview_store VALUES ({self.mark}, {self.mark})"
                    self.run(sql, values)
        self.identity()

    def identity(self) -> str | None:
        """See the contract."""
        if self.kind_of("steadyview_store") is None:
            return None
        rows = self.run("SELECT identity, format FROM steadyview_store")
        if len(rows) != 1 or rows[0][1] != FORMAT:
            raise StoreRefused(
                f'store "{self.name}" has a registry of another format',
                detail=f"expected {FORMAT}, found {rows[0][1] if rows else 'none'}",
                hint="use the version of steadyview that wrote it, or give it another place",
            )
        return str(rows[0][0])

    def views(self) -> list[ServedView]:
        """See the contract."""
        if self.kind_of("steadyview_store") is None:
            return []
        sql = (
            "SELECT v.view, v.warehouse, v.error, v.wanted, v.rebuilt,"
            " r.incarnation, r.node, r.layout, b.incarnation, b.node, b.layout"
            " FROM steadyview_views v LEFT JOIN steadyview_records r"
            " ON r.view = v.view AND r.incarnation = v.incarnation LEFT JOIN steadyview_records b"
            " ON b.view = v.view AND b.incarnation = v.last ORDER BY v.view"
        )
        return [_served(row) for row in self.run(sql)]

    def begin(self, layout: RecordLayout, warehouse: str, node: int, why: str) -> Records:
        """See the contract."""
        mark = self.mark
        with self.writing():
            sql = f"SELECT warehouse, last FROM steadyview_views WHERE view = {mark}"
            known = self.run(sql, (layout.view,))
            if known and known[0][0] != warehouse:
                raise self._of_another(layout.view)
            if not known:
                self._check_free(short_name(layout.view))
                sql = f"INSERT INTO steadyview_views VALUES ({mark}, {mark}, 0, 0, NULL, 0, NULL)"
                self.run(sql, (layout.view, warehouse))
            last = known[0][1] if known else 0
            records = Records(layout.view, last + 1, node, layout)
            self._check_free(records.name)
            sql = f"UPDATE steadyview_views SET last = {mark}, rebuilt = {mark} WHERE view = {mark}"
            self.run(sql, (last + 1, why, layout.view))
            for statement in self._table(records):
                self.run(statement)
            marks = ", ".join([mark] * 5)
            values = (records.name, records.view, last + 1, node, layout.to_json())
            self.run(f"INSERT INTO steadyview_records VALUES ({marks})", values)
            if not layout.sums:
                sql = f"INSERT INTO steadyview_positions VALUES ({mark}, {mark}, -1, -1, 0)"
                self.run(sql, (records.name, CHANGES))
        crash_point("records-begun")
        return records

    def switch(self, records: Records, stream: str, position: Position) -> None:
        """See the contract."""
        mark = self.mark
        with self.writing():
            self._stand(records, stream)
            sql = (
                f"UPDATE steadyview_positions SET position = {mark}, time = {mark},"
                f" floor = {mark} WHERE records = {mark} AND stream = {mark}"
            )
            values = (position.entry, position.time, position.floor, records.name, stream)
            self.run(sql, values)
            sql = (
                f"UPDATE steadyview_views SET incarnation = {mark}, error = NULL, wanted = 0"
                f" WHERE view = {mark}"
            )
            self.run(sql, (records.incarnation, records.view))
            others = f"view = {mark} AND incarnation <> {mark}"
            sql = (
                "DELETE FROM steadyview_positions WHERE records IN"
                f" (SELECT records FROM steadyview_records WHERE {others})"
            )
            self.run(sql, (records.view, records.incarnation))
            self.replace_view(short_name(records.view), self._shown(records))
        crash_point("records-switched")

    def sweep(self, view: str) -> int:
        """See the contract."""
        mark = self.mark
        sql = (
            "SELECT r.records FROM steadyview_records r JOIN steadyview_views v ON v.view = r.view"
            f" WHERE r.view = {mark} AND r.incarnation <> v.incarnation"
        )
        old = [name for (name,) in self.run(sql, (view,))]
        for name in old:
            with self.writing():
                self._drop(name)
        return len(old)

    def forget(self, view: str) -> None:
        """See the contract."""
        mark = self.mark
        with self.writing():
            if not self.run(f"SELECT 1 FROM steadyview_views WHERE view = {mark}", (view,)):
                return
            if self.kind_of(short_name(view)) == "view":
                self.run(f"DROP VIEW {self.quoted(short_name(view))}")
            sql = f"SELECT records FROM steadyview_records WHERE view = {mark}"
            for (name,) in self.run(sql, (view,)):
                self._drop(name)
            self.run(f"DELETE FROM steadyview_views WHERE view = {mark}", (view,))

    def tell(self, view: str, error: str | None) -> None:
        """See the contract."""
        sql = f"UPDATE steadyview_views SET error = {self.mark} WHERE view = {self.mark}"
        self.run(sql, (error, view))

    def want(self, view: str) -> None:
        """See the contract."""
        self.run(f"UPDATE steadyview_views SET wanted = 1 WHERE view = {self.mark}", (view,))

    def position(self, records: Records, stream: str) -> Position:
        """See the contract."""
        return self.positions(records).get(stream, Position(0, 0, 0))

    def positions(self, records: Records) -> dict[str, Position]:
        """See the contract."""
        sql = (
            "SELECT stream, position, time, floor FROM steadyview_positions"
            f" WHERE records = {self.mark}"
        )
        return {row[0]: Position(*row[1:]) for row in self.run(sql, (records.name,))}

    def move(self, records: Records, stream: str, entry: int, time: int) -> None:
        """See the contract."""
        mark = self.mark
        sql = (
            f"UPDATE steadyview_positions SET position = {mark}, time = {mark}"
            f" WHERE records = {mark} AND stream = {mark} AND position <= {mark}"
        )
        with self.writing():
            self._stand(records, stream)
            self.run(sql, (entry, time, records.name, stream, entry))
        crash_point("position-moved")

    def reclaim(self, records: Records, stream: str, floor: int) -> int:
        """See the contract."""
        mark, table = self.mark, self.quoted(records.name)
        with self.writing():
            sql = (
                f"UPDATE steadyview_positions SET floor = {mark}"
                f" WHERE records = {mark} AND stream = {mark} AND floor < {mark}"
            )
            self.run(sql, (floor, records.name, stream, floor))
            values: Values = (floor,)
            covered = f"{CN} <= {mark}"
            if records.layout.sums:
                covered, values = self.reached.format(place="floor"), (records.name,)
            # after the floor: whoever writes has seen it by now, or was waited for
            dropped = self.changed(f"DELETE FROM {table} WHERE {self.dead} AND {covered}", values)
        crash_point("floor-raised")
        return dropped

    # --- reading -----------------------------------------------------------------------------

    def read(self, records: Records, keys: Sequence[str]) -> Reading | None:
        """See the contract."""
        sql, values = self._read_statement(records, keys)
        try:
            rows = self.run(sql, values)
        except NoSuchTable:
            return None
        if not rows:
            return None
        by_key = {row[3]: self._found(records, row[4:]) for row in rows if row[3] is not None}
        return Reading(Position(*rows[0][:3]), [by_key.get(key, Found()) for key in keys])

    def there(self, records: Records, keys: Sequence[str]) -> tuple[int, list[str]]:
        """See the contract."""
        among, values = self.among(f"r.{KEY}", keys)
        sql = (
            f"SELECT p.position, r.{KEY} FROM steadyview_positions p"
            f" LEFT JOIN {self.quoted(records.name)} r ON {among} AND {_THERE}"
            f" WHERE p.records = {self.mark} AND p.stream = {self.mark}"
        )
        found = self.run(sql, (*values, records.name, CHANGES))
        return found[0][0] if found else -1, [key for _, key in found if key is not None]

    def rows(self, records: Records) -> AbstractContextManager[tuple[int, Iterator[pa.Table]]]:
        """See the contract."""
        from steadyview.serving.reading_rows import rows_at_watermark

        return rows_at_watermark(self, records)

    def counts(self, records: Records) -> Counts:
        """See the contract."""
        sql = f"SELECT {self.dead}, COUNT(*) FROM {self.quoted(records.name)} GROUP BY 1"
        found = {bool(dead): int(n) for dead, n in self.run(sql)}
        return Counts(found.get(False, 0), found.get(True, 0))

    def shown_sql(self, records: Records) -> str:
        """The rows that a reader sees, as a query over the view's columns."""
        listed = ", ".join(self.quoted(name) for name, _ in records.layout.columns)
        return f"SELECT {listed} FROM {self.quoted(short_name(records.view))}"

    def _read_statement(self, records: Records, keys: Sequence[str]) -> tuple[str, Values]:
        """Position, time, floor, key and both versions: a row without a key where none is there."""
        columns = ", ".join(f"r.{self.quoted(c)}" for c in self._stored_versions(records.layout))
        among, values = self.among(f"r.{KEY}", keys)
        sql = (
            f"SELECT p.position, p.time, p.floor, r.{KEY}, {columns} FROM steadyview_positions p"
            f" LEFT JOIN {self.quoted(records.name)} r ON {among}"
            f" WHERE p.records = {self.mark} AND p.stream = {self.mark}"
        )
        return sql, (*values, records.name, CHANGES)

    def among(self, column: str, keys: Sequence[str]) -> tuple[str, Values]:
        """That a column is one of these texts."""
        marks = ", ".join([self.mark] * len(keys))
        return f"{column} IN ({marks})", tuple(keys)

    def _stored_versions(self, layout: RecordLayout) -> list[str]:
        names = [name for name, _ in layout.values]
        return [CN, DEAD, *names, f"{WAS}cn", f"{WAS}dead", *(f"{WAS}{n}" for n in names)]

    def _found(self, records: Records, stored: Values) -> Found:
        columns = records.layout.values
        half = len(columns) + 2
        return Found(self._version(stored[:half], columns), self._version(stored[half:], columns))

    def _version(self, stored: Values, columns: Columns) -> Version | None:
        cn, dead, *values = stored
        if cn is None:
            return None
        if dead:
            return Version(int(cn), None)
        named = zip(columns, values, strict=True)
        return Version(int(cn), {n: self.decoded(v, t) for (n, t), v in named})

    # --- tables ------------------------------------------------------------------------------

    def _table(self, records: Records) -> list[str]:
        layout = records.layout
        columns = [f"{KEY} TEXT PRIMARY KEY NOT NULL"]
        columns += [f"{self.quoted(n)} {self.column_type(t)}" for n, t in layout.stored]
        if layout.sums:
            columns += [f"{ENTRIES} {self.entries_type} NOT NULL"]
        else:
            columns += [f"{CN} {self.column_type('BIGINT')} NOT NULL"]
            was = [("cn", "BIGINT"), ("dead", "BOOLEAN"), *layout.values]
            columns += [f"{self.quoted(WAS + n)} {self.column_type(t)}" for n, t in was]
        columns += [f"{DEAD} {self.column_type('BOOLEAN')} NOT NULL"]
        table = self.quoted(records.name)
        return [
            f"CREATE TABLE {table} ({', '.join(columns)}){self.table_options}",
            f"CREATE INDEX {self.quoted(records.name + '_dead')} ON {table} ({DEAD})"
            f" WHERE {self.dead}",
        ]

    table_options = ""

    def _shown(self, records: Records) -> str:
        """What readers see: the rows at the watermark, with the cn of each row's last change."""
        layout, table = records.layout, self.quoted(records.name)
        if layout.sums:
            return (
                f"SELECT {self._shown_columns(records)}, {KEY}, {ENTRIES} FROM {table}"
                f" WHERE NOT {self.dead} AND ({layout.there or '1 = 1'})"
            )
        listed = [
            f"r.{self.quoted(n)}"
            if n in layout.key
            else f"CASE WHEN {_NOW} THEN r.{self.quoted(n)} ELSE r.{self.quoted(WAS + n)} END"
            f" AS {self.quoted(n)}"
            for n, _ in layout.columns
        ]
        listed += [f"CASE WHEN {_NOW} THEN r.{CN} ELSE r.{WAS}cn END AS {CN}", f"r.{KEY}"]
        return (
            f"SELECT {', '.join(listed)} FROM {table} r JOIN steadyview_positions p"
            f" ON p.records = {_text(records.name)} AND p.stream = '{CHANGES}' WHERE {_THERE}"
        )

    def _shown_columns(self, records: Records) -> str:
        """The view's columns, of records that are kept from the update log."""
        shown = dict(records.layout.shown)
        return ", ".join(
            f"{shown[n]} AS {self.quoted(n)}" if n in shown else self.quoted(n)
            for n, _ in records.layout.columns
        )

    def shown(self, records: Records, keys: Sequence[str]) -> list[Signed] | None:
        """See the contract."""
        among, values = self.among(KEY, keys)
        try:
            found = self.run(f"{self._shown(records)} AND {among}", values)
        except NoSuchTable:
            return None
        columns = records.layout.columns
        by_key = {row[-2]: self._signed((row[-1], False, *row[:-2]), columns) for row in found}
        return [by_key.get(key, Signed(None)) for key in keys]

    def settled(
        self, records: Records
    ) -> AbstractContextManager[tuple[dict[str, Position] | None, Iterator[pa.Table]]]:
        """See the contract."""
        from steadyview.serving.reading_rows import settled_rows

        return settled_rows(self, records)

    def is_settled(self, records: Records) -> bool:
        """Whether no record has an entry that is not registered."""
        table = self.quoted(records.name)
        sql = f"SELECT COUNT(*) FROM {table} WHERE NOT {self.reached.format(place='position')}"
        return self.run(sql, (records.name,)) == [(0,)]

    def _drop(self, name: str) -> None:
        mark = self.mark
        self.run(f"DROP TABLE IF EXISTS {self.quoted(name)}")
        self.run(f"DELETE FROM steadyview_positions WHERE records = {mark}", (name,))
        self.run(f"DELETE FROM steadyview_records WHERE records = {mark}", (name,))

    def _check_free(self, name: str) -> None:
        if (kind := self.kind_of(name)) is not None:
            raise StoreRefused(
                f'store "{self.name}" has something else called "{name}": a {kind}',
                detail="what steadyview did not make is not written to",
                hint="rename it there, or give the view another name or store",
            )

    def _of_another(self, view: str) -> StoreRefused:
        return StoreRefused(
            f'another warehouse serves a view "{view}" in store "{self.name}"',
            hint="give one of the two another store, or another name",
        )

    def _stand(self, records: Records, stream: str) -> None:
        """Have a row for the stream's position."""
        mark = self.mark
        sql = (
            f"INSERT INTO steadyview_positions VALUES ({mark}, {mark}, 0, 0, 0)"
            " ON CONFLICT (records, stream) DO NOTHING"
        )
        self.run(sql, (records.name, stream))


def _served(row: Values) -> ServedView:
    view, warehouse, error, wanted, rebuilt, *both = row
    read, begun = (_records(view, part) for part in (both[:3], both[3:]))
    return ServedView(view, warehouse, read, error, bool(wanted), rebuilt, begun)


def _records(view: str, told: Values) -> Records | None:
    incarnation, node, layout = told
    if incarnation is None:
        return None
    return Records(view, incarnation, node, RecordLayout.from_json(layout))


def _text(value: str) -> str:
    """A text as a literal, for a definition that takes no parameters."""
    return "'" + value.replace("'", "''") + "'"
