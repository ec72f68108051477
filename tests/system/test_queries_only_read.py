"""A query reads views and nothing else: what else is tried is refused before anything happens."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import steadyview
from steadyview.errors import (
    ConfigError,
    QueryRefused,
    QueryTooLong,
    SteadyviewError,
    ViewStopped,
)
from steadyview.runtime.warehouse import Warehouse
from tests.system.databases import SqliteFile, write_project, write_view

VIEWS = {
    "orders": "SELECT id, town, price, day FROM shop.orders",
    "towns": "SELECT town, COUNT(*) AS n, SUM(price) AS total FROM shop.orders GROUP BY town",
    "newest": "SELECT MEDIAN(id) AS id FROM shop.orders",
}
JAVA = "'java.lang.System', 'getenv', 'PATH'"

REFUSED = [
    # files and tables
    "SELECT * FROM text.`/etc/passwd`",
    "SELECT * FROM `text`.`{folder}/there.txt`",
    "SELECT * FROM parquet.`{folder}`",
    "TABLE json.`{folder}/there.txt`",
    "FROM binaryFile.`{folder}` SELECT path",
    "SELECT * FROM IDENTIFIER('text.`{folder}/there.txt`')",
    "WITH a AS (SELECT * FROM text.`{folder}/there.txt`) SELECT * FROM a",
    "SELECT (SELECT max(value) FROM text.`{folder}/there.txt`) FROM orders",
    "SELECT * FROM orders WHERE town IN (SELECT value FROM text.`{folder}/there.txt`)",
    "SELECT * FROM orders, LATERAL (SELECT * FROM text.`{folder}/there.txt`)",
    "FROM orders |> UNION ALL TABLE text.`{folder}/there.txt`",
    "SELECT * FROM orders ORDER BY (SELECT max(value) FROM text.`{folder}/there.txt`)",
    "SELECT * FROM global_temp.orders",
    "SELECT * FROM system.session.orders",
    "SELECT * FROM spark_catalog.default.orders",
    "SELECT * FROM default.orders",
    "SELECT * FROM sv_base_1",
    "SELECT * FROM (WITH sv_x AS (SELECT 1) SELECT * FROM sv_x), sv_x",
    "SELECT * FROM orders WITH ('path' = '{folder}')",
    "SELECT * FROM STREAM orders",
    "SELECT * FROM orders TIMESTAMP AS OF '2020-01-01'",
    "SELECT * FROM orders VERSION AS OF 1",
    "SELECT * FROM read_files('{folder}')",
    "SELECT * FROM python_worker_logs()",
    "SELECT * FROM sql_keywords()",
    "SELECT * FROM collations()",
    # functions that look outside
    f"SELECT java_method({JAVA})",
    f"SELECT Reflect({JAVA}) FROM orders",
    f"SELECT try_reflect({JAVA})",
    f"SELECT /* a comment */ `java_method` /* another */ ({JAVA})",
    f"VALUES (java_method({JAVA}))",
    f"SELECT * FROM VALUES (1, reflect({JAVA})) AS t(a, b)",
    f"SELECT sum(id) OVER w FROM orders WINDOW w AS (PARTITION BY java_method({JAVA}))",
    f"SELECT transform(array(1), x -> java_method({JAVA}))",
    f"SELECT count(*) FILTER (WHERE reflect({JAVA}) = '') FROM orders",
    f"SELECT id FROM orders LIMIT length(java_method({JAVA}))",
    f"SELECT id FROM orders GROUP BY id HAVING reflect({JAVA}) = ''",
    f"SELECT * FROM orders LATERAL VIEW explode(array(reflect({JAVA}))) t AS x",
    f"SELECT * FROM range(length(java_method({JAVA})))",
    f"SELECT IDENTIFIER('java_method')({JAVA})",
    f"EXPLAIN SELECT java_method({JAVA})",
    "SELECT system.builtin.java_method('a', 'b')",
    "SELECT input_file_name() FROM orders",
    "SELECT input_file_block_start() FROM orders",
    "SELECT current_user",
    "SELECT session_user(), user()",
    "SELECT current_database() || current_catalog()",
    "SELECT current_schema()",
    "SELECT version()",
    "SELECT xpath_string('<!DOCTYPE a SYSTEM \"{address}\"><a>b</a>', 'a')",
    "SELECT from_xml('<p/>', 'a INT', map('rowValidationXSDPath', '{folder}/there.txt'))",
    "SELECT schema_of_xml('<p/>', map('rowValidationXSDPath', '{folder}/there.txt'))",
    "SELECT from_avro(x'00', '\"int\"', map())",
    "SELECT from_protobuf(x'00', 'a', '{folder}/there.txt', map())",
    "SELECT http_get('{address}')",
    "SELECT ai_query('model', 'text')",
    "SELECT secret('scope', 'key')",
    "SELECT TRANSFORM (id) USING 'touch {folder}/made' FROM orders",
    # statements that are no queries
    "INSERT OVERWRITE DIRECTORY '{folder}/made' USING parquet SELECT * FROM orders",
    "INSERT OVERWRITE LOCAL DIRECTORY '{folder}/made' USING csv SELECT 1",
    "FROM orders INSERT INTO made SELECT id",
    "INSERT INTO made VALUES (1)",
    "MERGE INTO orders USING towns ON true WHEN MATCHED THEN DELETE",
    "UPDATE orders SET id = 1",
    "DELETE FROM orders",
    "TRUNCATE TABLE orders",
    "CREATE TABLE made USING parquet LOCATION '{folder}/made' AS SELECT 1 AS a",
    "CREATE TABLE made (a INT)",
    "CREATE TEMPORARY VIEW made AS SELECT 1",
    "CREATE GLOBAL TEMPORARY VIEW made AS SELECT 1",
    "CREATE TEMPORARY VIEW made USING csv OPTIONS (path '{folder}')",
    "CREATE TEMPORARY FUNCTION made AS 'java.lang.String' USING JAR '{folder}/x.jar'",
    "CREATE FUNCTION made() RETURNS INT RETURN 1",
    "CREATE DATABASE made",
    "CREATE DATABASE made LOCATION '{folder}/made'",
    "DROP VIEW orders",
    "DROP TABLE IF EXISTS orders",
    "ALTER VIEW orders AS SELECT 1",
    "SET spark.sql.ansi.enabled = false",
    "SET TIME ZONE 'Asia/Tokyo'",
    "SET",
    "RESET",
    "ADD JAR '{folder}/x.jar'",
    "ADD FILE '{folder}/there.txt'",
    "LIST JAR",
    "CACHE TABLE orders",
    "CACHE TABLE made AS SELECT 1",
    "UNCACHE TABLE orders",
    "CLEAR CACHE",
    "REFRESH TABLE orders",
    "REFRESH '{folder}'",
    "ANALYZE TABLE orders COMPUTE STATISTICS",
    "LOAD DATA LOCAL INPATH '{folder}/there.txt' INTO TABLE orders",
    "SHOW TABLES",
    "SHOW FUNCTIONS",
    "SHOW CREATE TABLE orders",
    "USE default",
    "DESCRIBE FUNCTION upper",
    "DESCRIBE DATABASE default",
    "DESCRIBE text.`{folder}/there.txt`",
    "DESCRIBE QUERY SELECT * FROM text.`{folder}/there.txt`",
    "EXPLAIN CREATE TABLE made (a INT)",
    "EXPLAIN SELECT * FROM text.`{folder}/there.txt`",
    "BEGIN SELECT 1; END",
    "BEGIN CREATE TABLE made (a INT); END",
    "EXECUTE IMMEDIATE 'CREATE TABLE made (a INT)'",
    "DECLARE VARIABLE made INT DEFAULT 1",
    "SET VARIABLE made = 1",
    "CALL made()",
    "SELECT 1; SELECT 2",
    "SELECT 1; DROP VIEW orders",
    "SELECT :parameter",
    "SELECT ? FROM orders",
]

ALLOWED = [
    "SELECT * FROM orders",
    "select ID, Price from ORDERS where town = 'Bonn' -- a comment",
    "SELECT `id` FROM `orders`;",
    "SELECT o.id, t.n FROM orders o JOIN towns t USING (town)",
    "SELECT * FROM orders o LEFT JOIN towns t ON o.town = t.town AND t.n > 1",
    "SELECT * FROM orders NATURAL JOIN towns",
    "SELECT town, sum(price), avg(price), min(id), max(id) FROM orders GROUP BY town",
    "SELECT town, count(DISTINCT id) FROM orders GROUP BY town HAVING count(*) > 0 ORDER BY 2 DESC",
    "SELECT town, sum(price) FROM orders GROUP BY ROLLUP (town)",
    "SELECT town, grouping(town) FROM orders GROUP BY GROUPING SETS ((town), ())",
    "WITH a AS (SELECT * FROM orders), b AS (SELECT * FROM a) SELECT * FROM b, towns",
    "WITH orders AS (SELECT 1 AS one) SELECT one FROM orders",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT * FROM r",
    "VALUES (1, 'a'), (2, 'b')",
    "SELECT * FROM VALUES (1, now()), (2, NULL) AS t(a, b)",
    "TABLE towns",
    "FROM orders SELECT id",
    "FROM orders |> WHERE price > 1 |> AGGREGATE sum(price) AS s GROUP BY town |> ORDER BY s",
    "SELECT id FROM orders UNION SELECT n FROM towns EXCEPT SELECT 1",
    "SELECT id, row_number() OVER (PARTITION BY town ORDER BY id DESC) AS r FROM orders",
    "SELECT id, sum(price) OVER w FROM orders WINDOW w AS (ORDER BY id ROWS 2 PRECEDING)",
    "SELECT id FROM orders QUALIFY rank() OVER (ORDER BY price) = 1",
    "SELECT * FROM orders WHERE town IN (SELECT town FROM towns) AND EXISTS (SELECT 1 FROM towns)",
    "SELECT (SELECT max(n) FROM towns), CASE WHEN id = 1 THEN 'one' ELSE 'more' END FROM orders",
    "SELECT * FROM orders o, LATERAL (SELECT n FROM towns t WHERE t.town = o.town)",
    "SELECT id, x FROM orders LATERAL VIEW explode(sequence(1, 3)) s AS x",
    "SELECT explode(array(1, 2)) AS x",
    "SELECT * FROM range(3), explode(array(1, 2)) AS e(x)",
    "SELECT * FROM (SELECT town, n FROM towns) PIVOT (sum(n) FOR town IN ('Bonn', 'Rome'))",
    "SELECT * FROM towns UNPIVOT (v FOR k IN (n))",
    "SELECT /*+ BROADCAST(t) */ * FROM orders o JOIN towns t ON o.town = t.town",
    "SELECT * FROM orders TABLESAMPLE (10 ROWS) LIMIT 2 OFFSET 1",
    "SELECT * EXCEPT (price) FROM orders WHERE day > current_date() - INTERVAL 30 DAYS",
    "SELECT date_trunc('month', day), year(day), day + INTERVAL 1 MONTH FROM orders",
    "SELECT upper(town) || 'x', town LIKE 'B%', town RLIKE 'o+', substring(town, 1, 2) FROM orders",
    "SELECT transform(collect_list(id), x -> x + 1) FROM orders",
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY id) FROM orders",
    "SELECT window(CAST(day AS TIMESTAMP), '1 day') AS w, count(*) FROM orders GROUP BY 1",
    "SELECT rand() < 2, uuid() IS NOT NULL, current_timestamp() > TIMESTAMP '2020-01-01 00:00:00'",
    "SELECT try_cast(town AS INT), price::DOUBLE / 3, try_divide(id, 0) FROM orders",
    "SELECT from_json('{\"a\": 1}', 'a INT').a, to_json(named_struct('x', id)), map('k', id)['k']"
    " FROM orders",
    "SELECT * FROM IDENTIFIER('orders')",
    "EXPLAIN SELECT * FROM orders",
    "DESCRIBE orders",
    "DESCRIBE TABLE EXTENDED towns",
    "SELECT 'java_method(1)', \"text.`/etc/passwd`\", '; DROP TABLE x' FROM orders",
    "SELECT '${{env:HOME}}' AS text FROM orders",
]


@pytest.fixture(scope="module")
def wh(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[Warehouse]:
    folder = tmp_path_factory.mktemp("guarded")
    database = SqliteFile(folder / "shop.db")
    database.create("orders", "id INTEGER, town TEXT, price DECIMAL(10,2), day DATE")
    database.writer().execute(
        "INSERT INTO orders VALUES (1, 'Bonn', 2.5, '2026-11-16'), (2, 'Rome', 3, '2026-11-17')"
    )
    write_project(folder / "project", {"shop": database}, VIEWS)
    with steadyview.open(folder / "project", spark=spark) as opened:
        opened.run_once()
        yield opened
    database.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one file, and nothing more afterwards."""
    folder = tmp_path_factory.mktemp("outside")
    (folder / "there.txt").write_text("secret")
    return folder


@pytest.fixture(scope="module")
def listener() -> Iterator[socket.socket]:
    """An address that nobody may come to."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


class World:
    """All that a query could have changed, in the application of a session and on the disk."""

    def __init__(self, spark: SparkSession, folder: Path, outside: Path) -> None:
        self.facts = {
            "files": sorted(outside.rglob("*")),
            "settings": {row.key: row.value for row in spark.sql("SET").collect()},
            "databases": [d.name for d in spark.catalog.listDatabases()],
            "tables": [t.name for t in spark.catalog.listTables()],
            "global": [t.name for t in spark.catalog.listTables("global_temp")],
            "jars": spark._jsc.sc().listJars().mkString(),
            "added files": spark._jsc.sc().listFiles().mkString(),
            "warehouse": sorted(p.name for p in folder.iterdir()),
        }


@pytest.fixture(scope="module", autouse=True)
def _nothing_happened(
    wh: Warehouse, spark: SparkSession, folder: Path, listener: socket.socket
) -> Iterator[None]:
    before = World(wh._parts.spark, wh.project.warehouse, folder).facts
    user = World(spark, wh.project.warehouse, folder).facts
    yield
    assert World(wh._parts.spark, wh.project.warehouse, folder).facts == before
    assert World(spark, wh.project.warehouse, folder).facts == user
    with pytest.raises(BlockingIOError):
        listener.accept()


def written(sql: str, folder: Path, listener: socket.socket) -> str:
    address = f"http://127.0.0.1:{listener.getsockname()[1]}/x"
    return sql.replace("{folder}", str(folder)).replace("{address}", address)


@pytest.mark.parametrize("sql", REFUSED)
def test_what_is_no_query_over_views_is_refused(
    wh: Warehouse, folder: Path, listener: socket.socket, sql: str
) -> None:
    with pytest.raises(SteadyviewError) as refused:
        wh.query(written(sql, folder, listener))
    assert isinstance(refused.value, QueryRefused), refused.value
    assert "secret" not in str(refused.value).replace('"secret"', "")
    assert not (folder / "made").exists()


def test_ordinary_queries_are_answered(wh: Warehouse) -> None:
    for sql in ALLOWED:
        assert wh.query(sql.replace("{{", "{").replace("}}", "}")).columns, sql


def test_the_environment_does_not_get_into_a_text(wh: Warehouse, spark: SparkSession) -> None:
    """Whichever session is the active one of the thread."""
    spark.sql("SELECT 1").collect()
    text = "${env:PATH} ${system:user.name} ${spark.app.name}"
    assert wh.query(f"SELECT '{text}' AS text").first()[0] == text


@pytest.mark.parametrize(
    ("select", "construct"),
    [
        ("SELECT DISTINCT java_method('java.lang.System', 'getenv', town) AS x", "java_method"),
        ("SELECT DISTINCT input_file_name() AS x", "input_file_name"),
        ("SELECT DISTINCT current_user AS x", "current_user"),
        ("SELECT max((SELECT max(value) FROM text.`/etc/passwd`)) AS x", "text"),
        ("SELECT xpath_string(max(town), 'a') AS x", "xpath_string"),
    ],
)
def test_a_recomputed_view_reads_its_tables_and_nothing_else(
    wh: Warehouse, select: str, construct: str
) -> None:
    properties = "TBLPROPERTIES ('steadyview.fallback' = 'recompute')"
    text = f"CREATE MATERIALIZED VIEW outward {properties} AS {select} FROM shop.orders"
    write_view(wh.project.root, "outward", text)
    (found,) = [view for view in wh.check() if view.name == "outward"]
    (wh.project.root / "views" / "outward.sql").unlink()
    assert found.verdict == "refused"
    assert construct in f"{found.message} {found.hint}"


def test_a_refused_view_says_why(wh: Warehouse) -> None:
    with pytest.raises(QueryRefused) as refused:
        wh.query("SELECT * FROM newest")
    assert '"newest" is refused' in refused.value.message
    assert "OTHER_AGGREGATE" in str(refused.value.detail)


def test_a_misspelt_view_is_told_with_the_nearest_name(wh: Warehouse) -> None:
    with pytest.raises(QueryRefused) as refused:
        wh.query("SELECT * FROM Ordres")
    assert refused.value.hint == 'did you mean "orders"?'


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (f"java_method({JAVA})", "with the rows of the answer"),
        ("reflect('java.lang.System', 'exit')", "with the rows of the answer"),
        ("input_file_name()", "with the rows of the answer"),
        ("xpath('<a/>', 'a')", "from_json"),
        ("current_user()", "write the value itself"),
        ("version()", "write the value itself"),
        ("nothing_like_it()", "with the rows of the answer"),
    ],
)
def test_a_refused_function_is_told_with_what_to_write_instead(
    wh: Warehouse, call: str, hint: str
) -> None:
    with pytest.raises(QueryRefused) as refused:
        wh.query(f"SELECT {call} FROM orders")
    assert hint in str(refused.value.hint)


def test_a_misspelt_function_is_told_with_the_nearest_name(wh: Warehouse) -> None:
    with pytest.raises(QueryRefused) as refused:
        wh.query("SELECT uper(town) FROM orders")
    assert refused.value.hint == 'did you mean "upper"?'


def test_a_query_on_a_stopped_view_warns_with_cn_and_reason(wh: Warehouse) -> None:
    views = wh._catalog.views
    views.stop("towns", "an overflow", 1)
    try:
        found = wh.query_at("SELECT * FROM towns, orders")
        (warning,) = found.warnings
        assert warning == f'view "towns" is stopped and shows cn {found.cn}: an overflow'
        with pytest.raises(ViewStopped, match='"towns" is stopped'):
            wh.query_at("SELECT * FROM towns", strict=True)
        assert wh.query_at("SELECT * FROM orders", strict=True).warnings == ()
    finally:
        views._change("towns", "state = 'active', error = NULL, error_cn = NULL")


def test_a_column_in_double_quotes_is_warned_of(wh: Warehouse) -> None:
    (warning,) = wh.query_at("""SELECT "ID", "id of it", 'town' FROM orders""").warnings
    assert "\"ID\" is the text 'ID' here" in warning


def test_rows_are_limited_and_the_cut_is_told(wh: Warehouse) -> None:
    sql = "SELECT id FROM orders ORDER BY id"
    cut = wh.query_at(sql, max_rows=1)
    assert (cut.rows().table.num_rows, cut.rows().cut) == (1, True)
    assert cut.frame.count() == 1
    whole = wh.query_at(sql, max_rows=2).rows()
    assert (whole.table.num_rows, whole.cut) == (2, False)


def test_a_query_that_takes_too_long_is_cancelled(wh: Warehouse, spark: SparkSession) -> None:
    # takes time, not memory: all tests share one Spark
    sql = "SELECT sum(id % 7) FROM range(1000000000000)"
    with pytest.raises(QueryTooLong, match="longer than 1 s"):
        wh.query_at(sql, timeout=timedelta(seconds=1)).rows()
    assert not spark.sparkContext.statusTracker().getActiveJobsIds()
    assert wh.query_at("SELECT 1", timeout=timedelta(minutes=5)).rows().table.num_rows == 1


def test_no_sql_at_all_is_told_by_spark(wh: Warehouse) -> None:
    with pytest.raises(ConfigError, match="Spark rejects"):
        wh.query("SELEC 1")


def test_a_constant_that_spark_folds_does_not_outlast_the_time_limit(wh: Warehouse) -> None:
    begun = time.monotonic()
    sql = "SELECT aggregate(sequence(1L, 60000000L), 0L, (a, x) -> a + x)"
    with pytest.raises(QueryTooLong, match="goes on for a while"):
        wh.query_at(sql, timeout=timedelta(seconds=1)).rows()
    assert time.monotonic() - begun < 5


@pytest.mark.parametrize("form", ["", "FORMATTED", "EXTENDED", "COST", "CODEGEN"])
def test_explain_tells_no_place_of_this_machine(wh: Warehouse, form: str) -> None:
    found = wh.query_at(f"EXPLAIN {form} SELECT * FROM orders").rows().table.to_pylist()
    text = str(found)
    assert "Scan" in text or form == "CODEGEN"
    assert str(wh.project.root) not in text
    assert "file:/" not in text
