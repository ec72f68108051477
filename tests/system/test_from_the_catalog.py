"""What is told of views from the catalog alone: their sources are gone, their secrets are not set.

One project over PostgreSQL and SQLite; after its first run the database's URL is taken away and the
file moved.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import steadyview
from steadyview.errors import ConfigError, OutsideRetention, QueryRefused
from steadyview.runtime.warehouse import Warehouse
from tests.system.databases import PostgresDatabase, SqliteFile, write_project, write_view

VIEWS = {
    "sold": (
        "SELECT c.region, COUNT(*) AS orders, SUM(o.amount) AS amount FROM crm.customers c "
        "JOIN sales.orders o ON o.customer = c.id WHERE o.amount > 0 GROUP BY c.region"
    ),
    "large": (
        "SELECT c.name, t.total FROM crm.customers c LEFT JOIN (SELECT customer, MAX(amount) AS "
        "high, SUM(amount) AS total FROM sales.orders GROUP BY customer) t ON t.customer = c.id"
    ),
    "regions": "SELECT region FROM sold WHERE orders > 1 UNION SELECT region FROM crm.customers",
    "numbered": (
        "CREATE MATERIALIZED VIEW numbered TBLPROPERTIES ('steadyview.fallback' = 'recompute') AS "
        "SELECT id, ROW_NUMBER() OVER (ORDER BY id) AS place FROM crm.customers"
    ),
    "refused": "SELECT id, ROW_NUMBER() OVER (ORDER BY id) AS place FROM crm.customers",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[Path]:
    root = tmp_path_factory.mktemp("catalog")
    sales, crm = PostgresDatabase(), SqliteFile(root / "crm.db")
    try:
        sales.create("orders", "id bigint PRIMARY KEY, customer bigint, amount bigint")
        crm.create("customers", "id INTEGER PRIMARY KEY, region TEXT, name TEXT")
        crm.writer().execute("INSERT INTO customers VALUES (1, 'n', 'Ada'), (2, 's', 'Bo')")
        sales.writer().execute("INSERT INTO orders VALUES (1, 1, 5), (2, 1, 7), (3, 2, 9)")
        folder = write_project(root / "project", {"sales": sales, "crm": crm}, VIEWS)
        with steadyview.open(folder, spark=spark) as wh:
            wh.run_once()
            sales.writer().execute("INSERT INTO orders VALUES (4, 2, 1)")
            wh.run_once()
    finally:
        crm.close()
        sales.close()
    file = folder / "steadyview.toml"
    url = json.dumps(str(sales.settings["url"]))
    file.write_text(file.read_text().replace(url, '"${STEADYVIEW_TEST_NO_SUCH_URL}"'))
    (root / "crm.db").rename(root / "away.db")
    return folder


@pytest.fixture
def wh(folder: Path, spark: SparkSession) -> Iterator[Warehouse]:
    with steadyview.open(folder, spark=spark) as wh:
        yield wh


def told(text: str) -> str:
    """Without what differs from run to run."""
    return re.sub(r"\d+(\.\d)? k?B\)", "..)", re.sub(r" of 20\S+", "", text))


def test_rows_history_and_status_need_no_source(wh: Warehouse) -> None:
    assert wh.query("SELECT region, amount FROM sold ORDER BY region").collect() == [
        ("n", 12),
        ("s", 10),
    ]
    assert {tuple(r) for r in wh.view("large").read().collect()} == {("Ada", 12), ("Bo", 10)}
    assert wh.view("sold").read(at=0).count() == 2
    assert wh.view("numbered").read().count() == 2
    assert [(c.source, c.added, c.removed) for c in wh.view("sold").history()] == [("sales", 1, 1)]
    states = {v.name: (v.state, v.cn) for v in wh.status().views}
    assert states.pop("refused")[0] == "refused"
    assert set(states.values()) == {("active", wh.status().cn)}


def test_a_view_that_has_no_rows_says_why(wh: Warehouse, folder: Path) -> None:
    with pytest.raises(QueryRefused, match="is refused"):
        wh.query("SELECT * FROM refused")
    with pytest.raises(QueryRefused, match="is refused"):
        wh.view("refused").read()
    with pytest.raises(QueryRefused, match='no view "sol"'):
        wh.query("SELECT * FROM sol")
    with pytest.raises(ConfigError, match='no view "sol"'):
        wh.view("sol").history()
    write_view(folder, "later", "SELECT id FROM crm.customers")
    try:
        with pytest.raises(OutsideRetention, match='"later" has no state yet'):
            wh.query("SELECT * FROM later")
        assert wh.explain("later").to_dict()["state"] == "not built yet"
    finally:
        (folder / "views" / "later.sql").unlink()


def test_a_view_is_explained_in_the_names_of_its_text(wh: Warehouse) -> None:
    assert told(wh.explain("sold").text) == (
        "view   sold\n"
        "kept   incrementally\n"
        "level  complete\n"
        f"state  active, at cn {wh.status().cn}\n"
        "\n"
        "sold: customers.region, COUNT(*) AS orders, SUM(orders.amount) AS amount\n"
        "│  rows 2 (..), changes 2 (..), state 3 (..)\n"
        "└─ group by customers.region: COUNT(*), SUM(orders.amount)\n"
        "   │  keeps COUNT(*), COUNT(orders.amount), SUM(orders.amount) per customers.region: "
        "a change is added to the sums of its group, so no other row of it is read again\n"
        "   └─ join on customers.id = orders.customer\n"
        "      ├─ crm.customers   looked up by id (index)\n"
        "      └─ where orders.amount > 0\n"
        "         └─ sales.public.orders   looked up by customer (no index)\n"
        "\n"
        "hint: an index on public.orders (customer) at sales would help"
    )


def test_hidden_nodes_stand_in_the_tree_with_what_they_keep(wh: Warehouse) -> None:
    text = told(wh.explain("LARGE").text)
    assert "large: customers.name, node3.SUM(amount) AS total" in text
    assert "left outer join on customers.id = node3.customer" in text
    assert "node3: customer, MAX(amount), SUM(amount)" in text
    assert "MAX(amount) per customer, beside sums" in text
    assert "node1: customer, COUNT(amount), SUM(amount)" in text
    assert "node2: customer, amount" in text
    assert "when the least or greatest value goes, the next one must be known" in text
    found = wh.explain("regions").to_dict()
    assert found["tree"]["text"] == "distinct sold.region"
    assert found["tree"]["keeps"]["sums"] == [{"of": "COUNT(*)", "type": "BIGINT"}]
    assert found["algorithm"] == "versions"
    for name in ("sold", "large", "regions"):
        assert not re.search(r"\bt\d+_c\d+\b|\b[gpam]\d+\b", wh.explain(name).text)
    assert wh.explain("numbered").to_dict()["reason"]["code"] == "WINDOW"


def test_a_changed_file_and_a_lost_one_are_noted(wh: Warehouse, folder: Path) -> None:
    write_view(folder, "regions", "SELECT region FROM sold")
    assert "changed since" in wh.explain("regions").to_dict()["notes"][0]
    (folder / "views" / "regions.sql").unlink()
    assert "no file any more" in wh.explain("regions").to_dict()["notes"][0]
    assert wh.view("regions").read().count() == 2
    write_view(folder, "regions", VIEWS["regions"])
    assert wh.explain("regions").to_dict()["notes"] == []


def test_the_graph_has_everything_in_one_order(wh: Warehouse) -> None:
    found = wh.graph().to_dict()["nodes"]
    names = [v["name"] for v in found]
    assert names[:3] == ["crm.customers", "sales.public.orders", "refused"]
    assert names[-2:] == ["regions", "large"]
    by_name = {v["name"]: v for v in found}
    assert by_name["regions"]["reads"] == ("crm.customers", "sold")
    assert by_name["sold"]["state"] == "active"
    assert by_name["refused"]["state"] == "refused"
    hidden = [v["title"] for v in found if v["kind"] == "node"]
    assert sorted(hidden) == [
        "COUNT(*), COUNT(amount), SUM(amount) per customer",
        "MAX(amount) per customer, beside sums",
        "values per customer, amount",
    ]
    for vertex in found:
        assert all(names.index(r) < names.index(vertex["name"]) for r in vertex["reads"])
    dot = wh.graph().written("dot")
    assert '"sold" -> "regions";' in dot
    assert dot == wh.graph().written("dot")
    assert wh.graph().written("mermaid").count("-->") == sum(len(v["reads"]) for v in found)
    assert json.loads(wh.graph().written("json"))["nodes"][0]["kind"] == "relation"
    assert len(wh.graph().written("text").splitlines()) == len(found)
