"""The project file: what is read, what is refused, and how a person is told."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from steadyview.errors import ConfigError
from steadyview.runtime.project import load_project, parse_duration

SHOP = """
[project]
name = "shop"
warehouse = "wh"

[spark]
"spark.master" = "local[2]"
spark.sql.shuffle.partitions = 4
spark.ui.enabled = false

[sources.sales]
type = "postgresql"
url = "postgresql://me:${SALES_PASSWORD}@host/sales"
tables = ["public.orders"]

[sources.crm]
type = "sqlite"
path = "crm.db"
tables = ["customers"]
"""
ENVIRONMENT = {"SALES_PASSWORD": "s3cret"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "steadyview.toml").write_text(SHOP)
    (tmp_path / "views").mkdir()
    (tmp_path / "views" / "b.sql").write_text("SELECT 2")
    (tmp_path / "views" / "a.sql").write_text("SELECT 1")
    return tmp_path


def refusal(folder: Path, toml: str | None = None, environment: dict | None = None) -> ConfigError:
    if toml is not None:
        (folder / "steadyview.toml").write_text(toml)
    with pytest.raises(ConfigError) as caught:
        load_project(folder, ENVIRONMENT if environment is None else environment)
    return caught.value


def test_a_project_is_read_whole(folder):
    project = load_project(folder, ENVIRONMENT)
    assert project.name == "shop"
    assert project.root == folder
    assert project.warehouse == folder / "wh"
    assert project.retention == timedelta(days=7)
    assert [(v.name, v.text) for v in project.views] == [("a", "SELECT 1"), ("b", "SELECT 2")]
    assert list(project.sources) == ["sales", "crm"]
    assert project.sources["sales"]["url"] == "postgresql://me:s3cret@host/sales"


def test_paths_are_relative_to_the_project_file(folder):
    assert load_project(folder, ENVIRONMENT).sources["crm"]["path"] == str(folder / "crm.db")


def test_spark_settings_are_texts_quoted_or_not(folder):
    assert load_project(folder, ENVIRONMENT).spark == {
        "spark.master": "local[2]",
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.enabled": "false",
    }


def test_repr_and_str_show_no_settings_of_sources_or_spark(folder):
    text = repr(load_project(folder, ENVIRONMENT))
    assert "s3cret" not in text
    assert "local[2]" not in text
    assert "shop" in text


def test_a_missing_variable_names_variable_key_and_file(folder):
    error = load_project(folder, {}).unready["sales"]
    assert error.message == 'environment variable "SALES_PASSWORD" is not set'
    assert error.detail == f'"url" in [sources.sales] of {folder / "steadyview.toml"} uses it'
    assert "export SALES_PASSWORD" in error.hint


def test_what_a_variable_holds_is_taken_as_it_is(folder):
    project = load_project(folder, {"SALES_PASSWORD": "a${HOME}b"})
    assert project.sources["sales"]["url"] == "postgresql://me:a${HOME}b@host/sales"


def test_a_folder_without_project_points_to_init(tmp_path):
    error = refusal(tmp_path)
    assert error.message == f'there is no project in "{tmp_path}"'
    assert f"steadyview init {tmp_path}" in error.hint


def test_a_syntax_error_names_its_line(folder):
    error = refusal(folder, SHOP + "\n[spark\n")
    assert "is not valid TOML" in error.message
    assert f"line {SHOP.count(chr(10)) + 2}" in error.detail


@pytest.mark.parametrize(
    ("wrong", "right", "named"),
    [
        ("[source.sales]", "[sources.sales]", "source"),
        ("warehous =", "warehouse =", "warehous"),
        ("table =", "tables =", "table"),
        ("[sparc]", "[spark]", "sparc"),
    ],
)
def test_an_unknown_word_gets_the_near_one_as_hint(folder, wrong, right, named):
    error = refusal(folder, SHOP.replace(right, wrong, 1))
    assert f'"{named}"' in error.message
    assert error.hint.startswith('did you mean "')


def test_an_unknown_kind_of_source_gets_the_known_ones(folder):
    error = refusal(folder, SHOP.replace('"postgresql"', '"postgres"'))
    assert error.hint == 'did you mean "postgresql"?'
    assert "sqlite" in error.detail


def test_a_key_of_another_family_is_unknown(folder):
    assert '"url"' in refusal(folder, SHOP.replace('path = "crm.db"', 'url = "crm.db"')).message


@pytest.mark.parametrize("key", ["url", "tables", "type"])
def test_a_missing_key_of_a_source_is_named(folder, key):
    lines = [line for line in SHOP.splitlines() if not line.startswith(f"{key} =")]
    assert key in refusal(folder, "\n".join(lines)).message


@pytest.mark.parametrize("tables", ["[]", '"orders"', "[1]", '[""]', '["a", "a"]'])
def test_tables_must_be_distinct_names(folder, tables):
    toml = SHOP.replace('["customers"]', tables)
    assert "[sources.crm]" in refusal(folder, toml).message


def test_errors_about_a_source_do_not_show_its_settings(folder):
    error = refusal(folder, SHOP.replace("tables =", "tabels ="))
    assert "s3cret" not in str(error)


@pytest.mark.parametrize("name", ["my shop", "1shop", "shop-a", "shöp", "a;b"])
def test_a_project_name_is_an_identifier(folder, name):
    assert f'"{name}"' in refusal(folder, SHOP.replace('"shop"', f'"{name}"')).message


def test_a_source_name_is_an_identifier(folder):
    assert '"c r m"' in refusal(folder, SHOP.replace("[sources.crm]", '[sources."c r m"]')).message


def test_sources_that_differ_only_in_case_are_refused(folder):
    assert '"sales" and "Sales"' in refusal(folder, SHOP.replace("crm]", "Sales]")).message


def test_a_file_that_cannot_be_read_concerns_its_own_view_only(folder):
    (folder / "views" / "broken.sql").write_bytes(b"SELECT '\xff'")
    (folder / "views" / "gone.sql").symlink_to(folder / "nowhere.sql")
    files = {file.name: file for file in load_project(folder, ENVIRONMENT).views}
    assert files["a"].unreadable is None
    assert "utf-8" in (files["broken"].unreadable or "")
    assert "No such file" in (files["gone"].unreadable or "")


def test_what_editors_hide_among_the_views_is_no_view(folder):
    (folder / "views" / ".#a.sql").symlink_to("somebody@somewhere")
    (folder / "views" / ".a.sql.swp.sql").write_text("")
    assert [file.name for file in load_project(folder, ENVIRONMENT).views] == ["a", "b"]


def test_a_warehouse_address_is_refused_as_long_as_only_folders_work(folder):
    error = refusal(folder, SHOP.replace('"wh"', '"s3://bucket/wh"'))
    assert "must be a local folder" in error.message


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("7 days", timedelta(days=7)),
        ("1 day", timedelta(days=1)),
        ("12 hours", timedelta(hours=12)),
        ("30 Minutes", timedelta(minutes=30)),
        ("2weeks", timedelta(weeks=2)),
    ],
)
def test_durations(text, duration):
    assert parse_duration(text) == duration


@pytest.mark.parametrize("text", ["7", "0 days", "-1 days", "1.5 days", "soon", "7 years"])
def test_a_retention_that_is_no_duration_is_refused(folder, text):
    toml = SHOP.replace('warehouse = "wh"', f'retention = "{text}"')
    assert f'"{text}"' in refusal(folder, toml).message


@pytest.mark.parametrize(("line", "shared"), [("", False), ("shared = true", True)])
def test_a_warehouse_is_shared_where_the_project_says_so(folder, line, shared):
    (folder / "steadyview.toml").write_text(SHOP.replace('name = "shop"', f'name = "shop"\n{line}'))
    assert load_project(folder, ENVIRONMENT).shared is shared


def test_shared_is_true_or_false(folder):
    (folder / "steadyview.toml").write_text(SHOP.replace('"shop"', '"shop"\nshared = "yes"'))
    with pytest.raises(ConfigError, match='"shared" in .project.'):
        load_project(folder, ENVIRONMENT)


@pytest.mark.parametrize(
    ("line", "zone"), [("", "UTC"), ('timezone = "Europe/Berlin"', "Europe/Berlin")]
)
def test_schedules_have_the_zone_that_the_project_says(folder, line, zone):
    (folder / "steadyview.toml").write_text(SHOP.replace('name = "shop"', f'name = "shop"\n{line}'))
    assert load_project(folder, ENVIRONMENT).timezone == zone


def test_a_zone_that_is_none_is_refused_with_the_nearest(folder):
    error = refusal(folder, SHOP.replace('"shop"', '"shop"\ntimezone = "europe/berlin"'))
    assert error.message.startswith('"timezone" in [project] of ')
    assert error.hint == 'did you mean "Europe/Berlin"?'


@pytest.mark.parametrize("value", ["2", '""', "true", '"localtime"'])
def test_a_zone_is_the_name_of_one(folder, value):
    error = refusal(folder, SHOP.replace('"shop"', f'"shop"\ntimezone = {value}'))
    assert '"timezone" in [project]' in error.message


STORES = """
[stores.cache]
type = "sqlite"
path = "cache.db"

[stores.far]
type = "redis"
url = "redis://:${SALES_PASSWORD}@host/0"
"""


def test_stores_are_read_and_their_secrets_never_show(folder):
    (folder / "steadyview.toml").write_text(SHOP + STORES)
    project = load_project(folder, ENVIRONMENT)
    assert project.stores["cache"] == {"type": "sqlite", "path": str(folder / "cache.db")}
    assert project.stores["far"]["url"] == "redis://:s3cret@host/0"
    assert "s3cret" not in repr(project)
    assert list(load_project(folder, {}).unready_stores) == ["far"]


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        (('type = "redis"', 'type = "rediss"'), 'not a kind of store we know: "rediss"'),
        (('path = "cache.db"', ""), 'lacks "path"'),
        (('path = "cache.db"', 'path = "x"\nurl = "y"'), 'unknown key "url"'),
        (("[stores.far]", "[stores.Cache]"), "differ only in case"),
        (("[stores.far]", '[stores."a b"]'), "cannot be a store name"),
    ],
)
def test_a_store_that_is_described_wrong_is_refused(folder, change, fact):
    assert fact in refusal(folder, SHOP + STORES.replace(*change)).message
