"""Judging a warehouse from outside: its views against what was done to the databases."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from deltalake import DeltaTable

from steadyview.warehouse.table_mark import read_mark
from tests.crash import commits
from tests.crash.shop import VIEWS, Shop, comparable


class Reader(Protocol):
    """Whoever reads views: a keeper, or a warehouse in this process."""

    def ask(self, do: str, **how: Any) -> Any: ...


def check_all(shop: Shop, reader: Reader, views: Iterable[str] = ("sold", "totals")) -> None:
    """Every transaction is there once and in order; views are right now and at an earlier cn."""
    views = list(views)
    check_newest(shop, reader, views)
    past = past_cn(shop, views)
    assert crm_at(shop, reader, views, past) is not None, f"no state of the sources gives cn {past}"
    verdicts = reader.ask("verify", at=past, views=views)
    assert [v["view"] for v in verdicts if not v["equal"]] == [], verdicts


def check_newest(shop: Shop, reader: Reader, views: Iterable[str]) -> None:
    """Every transaction is there once and in order; views show all of them."""
    commits.check_order(shop.warehouse)
    check_rows(shop, reader, views)


def check_rows(shop: Shop, reader: Reader, views: Iterable[str]) -> None:
    """The newest cn holds every transaction, once; views show all of them."""
    newest = commits.last_cn(shop.warehouse)
    assert commits.seen_at(shop.warehouse, newest)["shop"] == len(shop.states["shop"]) - 1
    assert crm_at(shop, reader, views, newest) == len(shop.states["crm"]) - 1


Tables = dict[str, tuple[int, list[str]]]
"""By view, the cn of its table and its rows."""


def tables(shop: Shop, views: Iterable[str]) -> Tables:
    """What any Delta reader sees."""
    found = {}
    for view in views:
        folder = shop.warehouse / "views" / view
        mark = read_mark(folder)
        assert mark is not None
        rows = DeltaTable(folder).to_pyarrow_table().to_pylist()
        found[view] = mark.cn, comparable([list(row.values()) for row in rows])
    return found


def check_tables(shop: Shop, reader: Reader, found: Tables) -> None:
    """Each is the view at its cn."""
    for view, (cn, rows) in found.items():
        assert rows == comparable(reader.ask("rows", view=view, at=cn)), (view, cn)


def past_cn(shop: Shop, views: Iterable[str]) -> int:
    """A cn at which all these views can be read."""
    known = commits.starts(shop.warehouse)
    return shop.random.randint(max(known[v] for v in views), commits.last_cn(shop.warehouse))


def crm_at(shop: Shop, reader: Reader, views: Iterable[str], cn: int) -> int | None:
    """How many transactions of the SQLite file all views show at cn; None if they disagree."""
    found = {v: comparable(reader.ask("rows", view=v, at=cn)) for v in views if v in VIEWS}
    return shop.crm_state(found, commits.seen_at(shop.warehouse, cn)["shop"])
