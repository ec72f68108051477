"""Redis (6 or newer) as a store: a hash per record, its values as JSON, scripts for every change.

What Redis has on its disk, and when, is as it is set up there: positions are written after records
and are on the disk after them, so what a crash takes away is done again. `redis_scripts` has the
names. Sums are whole numbers of 64 bits, in units of their type's last digit.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus, unquote, urlsplit

from steadyview.crash_points import crash_point
from steadyview.errors import ConfigError, StoreRefused, StoreUnavailable
from steadyview.serving import redis_scripts as scripts
from steadyview.serving.contract import (
    FORMAT,
    Addition,
    Counts,
    Entries,
    Found,
    Position,
    Put,
    Reading,
    RecordStore,
    ServedView,
    Signed,
    TestAndSet,
    Version,
)
from steadyview.serving.json_texts import EXACT, exact, json_of, key_text, value_of
from steadyview.serving.layout import CHANGES, CN, DEAD, KEY, Columns, RecordLayout, Records

if TYPE_CHECKING:
    import pyarrow as pa

PATIENCE = 60.0
_PIECE = 1_000
_NOW = ("cn", "dead", "now", "was_cn", "was_dead", "was")


class RedisStore(RecordStore):
    """All keys that begin with a prefix, in one database of a server."""

    def __init__(self, name: str, url: str, prefix: str) -> None:
        self.name = name
        self._url = url
        self._prefix = prefix
        self._client: Any = None

    # --- the registry ------------------------------------------------------------------------

    def prepare(self) -> None:
        """See the contract."""
        with self._told():
            redis, key = self._redis(), f"{self._prefix}:store"
            facts = f"{os.uname().nodename} {os.getpid()} {time.time_ns()}"
            new = hashlib.sha256(facts.encode()).hexdigest()[:16]
            if redis.type(key) not in ("none", "hash"):
                raise self._something_else(key)
            redis.hsetnx(key, "format", FORMAT)
            redis.hsetnx(key, "identity", new)
        self.identity()

    def identity(self) -> str | None:
        """See the contract."""
        with self._told():
            found, format_ = self._redis().hmget(f"{self._prefix}:store", "identity", "format")
        if found is not None and int(format_) != FORMAT:
            raise StoreRefused(
                f'store "{self.name}" has a registry of another format',
                detail=f"expected {FORMAT}, found {format_}",
                hint="use the version of steadyview that wrote it, or give it another prefix",
            )
        return None if found is None else str(found)

    def views(self) -> list[ServedView]:
        """See the contract."""
        with self._told():
            redis = self._redis()
            names = sorted(redis.smembers(f"{self._prefix}:views"))
            found = [(name, redis.hgetall(self._view(name))) for name in names]
        return [_served(name, fields) for name, fields in found if "warehouse" in fields]

    def begin(self, layout: RecordLayout, warehouse: str, node: int, why: str) -> Records:
        """See the contract."""
        view = self._view(layout.view)
        with self._told():
            redis = self._redis()
            known = redis.sismember(f"{self._prefix}:views", layout.view)
            if not known and redis.exists(view):
                raise self._something_else(view)
            values = (warehouse, node, layout.to_json(), why, layout.view)
            last = self._run(scripts.BEGIN, [view, f"{self._prefix}:views"], values)
        if last == -1:
            raise StoreRefused(
                f'another warehouse serves a view "{layout.view}" in store "{self.name}"',
                hint="give one of the two another store, or another prefix",
            )
        crash_point("records-begun")
        return Records(layout.view, int(last), node, layout)

    def switch(self, records: Records, stream: str, position: Position) -> None:
        """See the contract."""
        values = (records.incarnation, stream, position.entry, position.time, position.floor)
        with self._told():
            self._run(scripts.SWITCH, [self._view(records.view)], values)
        crash_point("records-switched")

    def sweep(self, view: str) -> int:
        """See the contract."""
        registry = self._view(view)
        with self._told():
            redis = self._redis()
            fields = redis.hgetall(registry)
            numbers = [f.partition(":")[2] for f in fields if f.startswith("layout:")]
            old = [n for n in numbers if n != fields.get("incarnation")]
            for number in old:
                self._remove(f"{registry}:{number}")
                redis.hdel(registry, f"layout:{number}", f"node:{number}")
        return len(old)

    def forget(self, view: str) -> None:
        """See the contract."""
        registry = self._view(view)
        with self._told():
            redis = self._redis()
            if not redis.sismember(f"{self._prefix}:views", view):
                return
            numbers = [f for f in redis.hkeys(registry) if f.startswith("layout:")]
            for number in numbers:
                self._remove(f"{registry}:{number.partition(':')[2]}")
            redis.delete(registry)
            redis.srem(f"{self._prefix}:views", view)

    def _remove(self, base: str) -> None:
        """First what writers look for, then the records."""
        redis = self._redis()
        redis.delete(base)
        for keys in self._scanned(f"{base}:*"):
            redis.unlink(*keys)

    def tell(self, view: str, error: str | None) -> None:
        """See the contract."""
        with self._told():
            if error is None:
                self._redis().hdel(self._view(view), "error")
            else:
                self._redis().hset(self._view(view), "error", error)

    def want(self, view: str) -> None:
        """See the contract."""
        with self._told():
            if self._redis().exists(self._view(view)):
                self._redis().hset(self._view(view), "wanted", 1)

    def position(self, records: Records, stream: str) -> Position:
        """See the contract."""
        return self.positions(records).get(stream, Position(0, 0, 0))

    def positions(self, records: Records) -> dict[str, Position]:
        """See the contract."""
        with self._told():
            return _positions(self._redis().hgetall(self._base(records)))

    def move(self, records: Records, stream: str, entry: int, time: int) -> None:
        """See the contract."""
        with self._told():
            self._run(scripts.MOVE, [self._base(records)], (stream, entry, time))
        crash_point("position-moved")

    # --- records of a change table -----------------------------------------------------------

    def upsert(self, records: Records, images: pa.Table) -> None:
        """See the contract."""
        from steadyview.serving.json_texts import object_texts

        texts = object_texts(images, records.layout.columns).to_pylist()
        keys, cns = images[KEY].to_pylist(), images[CN].to_pylist()
        dead = images[DEAD].to_pylist()
        # what a tombstone was is in its previous version
        rows = (
            (k, c, int(d), "null" if d else t)
            for k, c, d, t in zip(keys, cns, dead, texts, strict=True)
        )
        with self._told():
            self._run(scripts.UPSERT, [self._base(records)], [v for row in rows for v in row])

    def there(self, records: Records, keys: Sequence[str]) -> tuple[int, list[str]]:
        """See the contract."""
        base = self._base(records)
        position = self.position(records, CHANGES)
        with self._told():
            pipeline = self._redis().pipeline(transaction=False)
            for key in keys:
                pipeline.hmget(f"{base}:r:{key}", "cn", "dead", "was_cn", "was_dead")
            found = pipeline.execute()
        dead = [old if int(cn or 0) > position.entry else now for cn, now, _, old in found]
        return position.entry, [k for k, d in zip(keys, dead, strict=True) if d == "0"]

    def reclaim(self, records: Records, stream: str, floor: int) -> int:
        """See the contract."""
        dropped, cursor = 0, "0"
        while True:
            with self._told():
                told = self._run(scripts.RECLAIM, [self._base(records)], (stream, floor, cursor))
            cursor, some = str(told[0]), int(told[1])
            dropped += some
            if cursor == "0":
                break
        crash_point("floor-raised")
        return dropped

    # --- records kept from the update log ----------------------------------------------------

    def add(self, records: Records, stream: str, additions: Sequence[Addition]) -> None:
        """See the contract."""
        sums = records.layout.sums
        values: list[Any] = [stream, json.dumps([name for name, _ in sums])]
        for a in additions:
            units = [_units(a.sums[name], type_) for name, type_ in sums]
            values += [self._key(records, a.key), a.entry, *units]
        with self._told():
            self._run(scripts.ADD, [self._base(records)], values)

    def put(self, records: Records, stream: str, puts: Sequence[Put]) -> None:
        """See the contract."""
        values: list[Any] = [stream]
        for p in puts:
            told = self._json(records, p.key, p.values)
            values += [self._key(records, p.key), p.entry, int(p.values is None), told]
        with self._told():
            self._run(scripts.PUT, [self._base(records)], values)

    def signed(self, records: Records, keys: Sequence[tuple[Any, ...]]) -> list[Signed]:
        """See the contract."""
        base = self._base(records)
        with self._told():
            pipeline = self._redis().pipeline(transaction=True)
            pipeline.hgetall(base)
            for key in keys:
                pipeline.hgetall(f"{base}:r:{self._key(records, key)}")
            at, *found = pipeline.execute()
        floors = {s: p.floor for s, p in _positions(at).items() if p.floor > 0}
        return [_signed(records.layout, fields, floors) for fields in found]

    def test_and_set(self, records: Records, tests: Sequence[TestAndSet]) -> list[bool]:
        """See the contract."""
        with self._told():
            return [self._tested(records, test) for test in tests]

    def _tested(self, records: Records, test: TestAndSet) -> bool:
        given = test.values or {}
        sums = {n: str(_units(given.get(n, 0), t)) for n, t in records.layout.sums}
        expected, new = ({s: str(e) for s, e in x.items()} for x in (test.expected, test.signature))
        values = (
            self._key(records, test.key),
            int(test.there),
            json.dumps(expected),
            json.dumps(new),
            int(test.values is None),
            self._json(records, test.key, test.values),
            json.dumps(sums),
        )
        return bool(self._run(scripts.TEST_AND_SET, [self._base(records)], values))

    # --- reading -----------------------------------------------------------------------------

    def read(self, records: Records, keys: Sequence[str]) -> Reading | None:
        """See the contract."""
        base = self._base(records)
        with self._told():
            pipeline = self._redis().pipeline(transaction=True)
            pipeline.hgetall(base)
            for key in keys:
                pipeline.hmget(f"{base}:r:{key}", *_NOW)
            at, *found = pipeline.execute()
        if not at:
            return None
        position = _positions(at)[CHANGES]
        return Reading(position, [_found(records.layout, fields) for fields in found])

    @contextmanager
    def rows(self, records: Records) -> Iterator[tuple[int, Iterator[pa.Table]]]:
        """See the contract. StoreUnavailable by the iterator, if a record has moved on twice."""
        position = self.position(records, CHANGES)
        yield position.entry, self._pieces(records, position.entry)

    def _pieces(self, records: Records, cn: int) -> Iterator[pa.Table]:
        import pyarrow as pa

        from steadyview.changes import arrow_type

        columns, seen = records.layout.columns, set[str]()
        for keys in self._scanned(f"{self._base(records)}:r:*"):
            new = [key for key in dict.fromkeys(keys) if key not in seen]
            seen.update(new)
            with self._told():
                pipeline = self._redis().pipeline(transaction=False)
                for key in new:
                    pipeline.hmget(key, *_NOW)
                found = [_found(records.layout, fields) for fields in pipeline.execute()]
            try:
                there = [v.values for f in found if (v := f.at(cn)) is not None and v.values]
            except LookupError:
                moved = f'store "{self.name}" moved on while all of it was read'
                raise StoreUnavailable(moved, hint="try again") from None
            arrays = [pa.array([v[n] for v in there], arrow_type(t)) for n, t in columns]
            yield pa.table(arrays, names=[n for n, _ in columns])

    def counts(self, records: Records) -> Counts:
        """See the contract."""
        base = self._base(records)
        with self._told():
            redis = self._redis()
            return Counts(int(redis.hget(base, "records") or 0), redis.zcard(f"{base}:dead"))

    def close(self) -> None:
        """See the contract."""
        if self._client is not None:
            self._client.close()
            self._client = None

    # --- names and values --------------------------------------------------------------------

    def _view(self, view: str) -> str:
        return f"{self._prefix}:{{{view}}}"

    def _base(self, records: Records) -> str:
        return f"{self._view(records.view)}:{records.incarnation}"

    def _key(self, records: Records, key: tuple[Any, ...]) -> str:
        return key_text(key, [type_ for _, type_ in records.layout.keys])

    def _json(
        self, records: Records, key: tuple[Any, ...], values: Mapping[str, Any] | None
    ) -> str:
        if values is None:
            return "null"
        layout = records.layout
        all_ = {**dict(zip(layout.key, key, strict=True)), **values}
        return json_of([(n, t, all_.get(n)) for n, t in layout.columns])

    def _scanned(self, pattern: str) -> Iterator[list[str]]:
        cursor = 0
        while True:
            with self._told():
                cursor, keys = self._redis().scan(cursor, match=pattern, count=_PIECE)
            if keys:
                yield keys
            if cursor == 0:
                return

    # --- the connection ----------------------------------------------------------------------

    def _redis(self) -> Any:
        if self._client is None:
            try:
                import redis
            except ImportError:
                raise ConfigError(
                    f'store "{self.name}" is Redis, and its Python client is not installed',
                    hint="run: pip install 'steadyview[redis]'",
                ) from None
            try:
                self._client = redis.Redis.from_url(
                    self._url,
                    decode_responses=True,
                    socket_connect_timeout=10,
                    socket_timeout=PATIENCE,
                )
            except ValueError:
                raise ConfigError(
                    f'url of store "{self.name}" is no address of Redis',
                    hint="write redis://host:6379/0",
                ) from None
        return self._client

    def _run(self, script: str, keys: Sequence[str], values: Sequence[Any]) -> Any:
        """A script, by its digest where the server has it."""
        import redis

        digest = hashlib.sha1(script.encode(), usedforsecurity=False).hexdigest()
        try:
            return self._redis().evalsha(digest, len(keys), *keys, *values)
        except redis.exceptions.NoScriptError:
            return self._redis().eval(script, len(keys), *keys, *values)

    @contextmanager
    def _told(self) -> Iterator[None]:
        # what is not installed is told by whoever connects
        self._redis()
        import redis

        away = (
            redis.exceptions.ConnectionError,
            redis.exceptions.TimeoutError,
            redis.exceptions.BusyLoadingError,
            redis.exceptions.ReadOnlyError,
            redis.exceptions.OutOfMemoryError,
        )
        try:
            yield
        except redis.exceptions.AuthenticationError as error:
            raise self._refused(error) from None
        except away as error:
            self.close()
            raise StoreUnavailable(
                f'store "{self.name}" does not answer',
                detail=self._scrubbed(str(error)),
                hint=f"see that the server runs, and that url of [stores.{self.name}] is right",
            ) from None
        except redis.exceptions.RedisError as error:
            if scripts.GONE in str(error):
                raise StoreUnavailable(
                    f'the records are not kept any more in store "{self.name}"', hint="try again"
                ) from None
            raise self._refused(error) from None

    def _refused(self, error: Exception) -> StoreRefused:
        return StoreRefused(
            f'store "{self.name}" refused a command',
            detail=self._scrubbed(str(error)),
            hint=f"correct url of [stores.{self.name}], or the rights at the server",
        )

    def _something_else(self, key: str) -> StoreRefused:
        return StoreRefused(
            f'store "{self.name}" has something else at "{key}"',
            detail="what steadyview did not make is not written to",
            hint="rename it there, or give the store another prefix",
        )

    def _scrubbed(self, text: str) -> str:
        password = urlsplit(self._url).password or ""
        spellings = [self._url, password, unquote(password)]
        spellings += [quote(unquote(password), safe=""), quote_plus(unquote(password))]
        for secret in sorted(filter(None, spellings), key=len, reverse=True):
            text = text.replace(secret, "***")
        return text.strip()


def _served(view: str, fields: Mapping[str, str]) -> ServedView:
    read, begun = (_records(view, fields, fields.get(n)) for n in ("incarnation", "last"))
    error, wanted = fields.get("error"), fields.get("wanted") == "1"
    return ServedView(view, fields["warehouse"], read, error, wanted, fields.get("rebuilt"), begun)


def _records(view: str, fields: Mapping[str, str], number: str | None) -> Records | None:
    layout = fields.get(f"layout:{number}")
    if number is None or layout is None:
        return None
    node = int(fields[f"node:{number}"])
    return Records(view, int(number), node, RecordLayout.from_json(layout))


def _positions(fields: Mapping[str, str]) -> dict[str, Position]:
    streams = [f.partition(":")[2] for f in fields if f.startswith(("position:", "floor:"))]
    parts = ("position", "time", "floor")
    return {s: Position(*(int(fields.get(f"{p}:{s}", 0)) for p in parts)) for s in streams}


def _found(layout: RecordLayout, fields: Sequence[str | None]) -> Found:
    return Found(_version(layout, fields[:3]), _version(layout, fields[3:]))


def _version(layout: RecordLayout, fields: Sequence[str | None]) -> Version | None:
    cn, dead, told = fields
    if cn is None or told is None:
        return None
    values = None if dead == "1" else _values(told, layout.columns)
    return Version(int(cn), values)


def _values(told: str, columns: Columns) -> dict[str, Any]:
    found = json.loads(told)
    return {name: value_of(found[name], type_) for name, type_ in columns}


def _signed(layout: RecordLayout, fields: Mapping[str, str], floors: Entries) -> Signed:
    if not fields:
        return Signed(None, floors)
    signature = {f[2:]: int(e) for f, e in fields.items() if f.startswith("e:")}
    if fields.get("dead") == "1":
        return Signed(None, signature)
    told = fields.get("now")
    values = _values(told, layout.columns) if told not in (None, "null") else {}
    for name, type_ in layout.sums:
        if (units := fields.get(f"s:{name}")) is not None:
            values[name] = _of_units(int(units), type_)
    return Signed(values, signature)


def _scale(type_: str) -> int:
    return int(type_.rstrip(")").rpartition(",")[2]) if type_.startswith("DECIMAL") else 0


def _units(value: Any, type_: str) -> int:
    """A sum as a whole number of its type's last digit."""
    return int(EXACT.scaleb(Decimal(exact(value, type_)), _scale(type_)))


def _of_units(units: int, type_: str) -> Any:
    if not type_.startswith("DECIMAL"):
        return units
    return exact(EXACT.scaleb(Decimal(units), -_scale(type_)), type_)
