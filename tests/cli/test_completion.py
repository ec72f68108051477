"""What the shell completes: commands, views and sources, asked as the shells ask."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from steadyview.cli.app import app

HEAVY = ("pyspark", "pyarrow", "deltalake", "numpy", "pandas", "sqlglot", "psycopg")
PROGRAM = f"""#!{sys.executable}
import atexit, sys
sys.argv[0] = "steadyview"
loaded = lambda: sorted(set({HEAVY!r}) & set(sys.modules))
atexit.register(lambda: loaded() and print("loaded", loaded(), file=sys.stderr))
from steadyview.cli import main
main()
"""
ASK_IN_BASH = """
eval "$(steadyview --show-completion)"
COMP_WORDS=({words}) COMP_CWORD={number}
_steadyview_completion steadyview
echo "${{COMPREPLY[@]}}"
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """A starter project with one view more, whose file has another name; and the program."""
    folder = tmp_path_factory.mktemp("completed")
    CliRunner().invoke(app, ["init", str(folder / "shop")])
    named = "-- CREATE MATERIALIZED VIEW old\nCREATE MATERIALIZED VIEW `by day` AS SELECT 1"
    (folder / "shop" / "views" / "daily.sql").write_text(named)
    program = folder / "bin" / "steadyview"
    program.parent.mkdir()
    program.write_text(PROGRAM)
    program.chmod(0o700)
    return folder / "shop"


def run(shop: Path, *command: str, cwd: Path | None = None, **environment: str) -> str:
    path = f"{shop.parent / 'bin'}{os.pathsep}{os.environ['PATH']}"
    ended = subprocess.run(
        command,
        cwd=cwd or shop,
        env={**os.environ, "PATH": path, "HOME": str(shop.parent), **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.stderr == ""
    return ended.stdout


def completed(shop: Path, *words: str, cwd: Path | None = None) -> list[str]:
    """As bash asks: the words, and the number of the one that is being written."""
    asked = {"COMP_WORDS": " ".join(["steadyview", *words]), "COMP_CWORD": str(len(words))}
    told = run(shop, "steadyview", cwd=cwd, _STEADYVIEW_COMPLETE="complete_bash", **asked)
    return [line for line in told.splitlines() if line]


VIEWS = ["by day", "order_details", "revenue_by_region"]


@pytest.mark.parametrize("command", [["explain"], ["history"], ["verify"], ["run", "--view"]])
def test_views_are_completed_by_the_names_in_their_files(shop, command):
    assert completed(shop, *command, "") == VIEWS


def test_only_what_the_word_may_become_is_offered(shop):
    assert completed(shop, "explain", "rev") == ["revenue_by_region"]
    assert completed(shop, "source", "remove", "s") == ["sales"]


def test_a_view_already_named_is_not_offered_again(shop):
    assert completed(shop, "verify", "order_details", "") == ["by day", "revenue_by_region"]


def test_sources_are_completed(shop):
    assert completed(shop, "source", "remove", "") == ["crm", "sales"]


def test_the_project_may_lie_elsewhere(shop, tmp_path):
    asked = ("explain", "--project", str(shop), "")
    assert completed(shop, *asked, cwd=tmp_path) == VIEWS


def test_commands_are_completed(shop):
    assert completed(shop, "ver") == ["verify"]
    assert completed(shop, "source", "li") == ["list"]


@pytest.mark.parametrize("toml", [b"sources = 3", b"[sources", b"\xff"])
def test_a_project_that_cannot_be_read_completes_to_nothing(shop, tmp_path, toml):
    (tmp_path / "steadyview.toml").write_bytes(toml)
    assert completed(shop, "source", "remove", "", cwd=tmp_path) == []


def test_a_view_that_cannot_be_read_is_known_by_its_file(shop, tmp_path):
    assert completed(shop, "explain", "", cwd=tmp_path) == []
    (tmp_path / "views").mkdir()
    (tmp_path / "views" / "v.sql").write_bytes(b"\xff\xfe")
    assert completed(shop, "explain", "", cwd=tmp_path) == ["v"]


def test_bash_completes_with_what_show_completion_prints(shop):
    asked = ASK_IN_BASH.format(words="steadyview explain rev", number=2)
    assert run(shop, "bash", "-c", asked) == "revenue_by_region\n"


def test_install_completion_writes_it_for_the_shell_that_runs(shop):
    told = run(shop, "bash", "-c", "steadyview --install-completion; true")
    assert "bash completion installed" in told
    assert "steadyview" in (shop.parent / ".bashrc").read_text()
