"""A password shows nowhere: not in files, outputs, errors, process lists, or Spark's settings.

One process runs the commands as a person would, with a Spark of its own and a project that names
the url by a variable; then everything it said and left behind is searched for the password.
"""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import psutil
import pytest
from psycopg import conninfo

from tests.crash.keepers import ROOT
from tests.crash.server import Server
from tests.crash.shop import Shop, shop_on
from tests.processes.test_signals import COMMAND, steadyview_run, wait_for_cn

CANARY = "canary-7f3a91"
WRONG = "canary-wrong-55e2"
PROGRAM = """
import json, os, sys
from pathlib import Path
import psutil
from typer.testing import CliRunner
from steadyview.cli.app import app

folder, good, bad = sys.argv[1], os.environ["GOOD_URL"], os.environ["BAD_URL"]
runner, said = CliRunner(), []

def do(*words):
    found = runner.invoke(app, [*words, "--project", folder])
    said.append([list(words), found.exit_code, found.stdout, found.stderr])

os.environ["SHOP_URL"] = good
do("run", "--once", "--debug")
do("query", "SELECT * FROM sold", "--json", "--debug")
do("verify", "--json", "--debug")
do("status", "--json")
do("source", "list", "--json")
do("check", "--json", "--debug")
do("explain", "sold")
do("history", "totals")
do("query", "SELECT '${SHOP_URL}', '${env:SHOP_URL}'", "--json")
os.environ["SHOP_URL"] = bad
do("run", "--once", "--debug")
do("check", "--debug")
do("status", "--json")
from pyspark import SparkContext
context = SparkContext._active_spark_context
processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
json.dump({
    "said": said,
    "conf": context.getConf().getAll(),
    "processes": [p.cmdline() for p in processes if p.status() != psutil.STATUS_ZOMBIE],
    "java": any("java" in p.name() for p in processes),
    "local": {str(p): p.read_bytes().decode("latin-1")
              for p in Path(os.environ["SPARK_LOCAL_DIRS"]).rglob("*") if p.is_file()},
}, open(sys.argv[2], "w"))
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path / "server")
    server.ask_for_password("clerk", CANARY)
    yield server
    server.delete()


@pytest.fixture
def shop(server: Server, tmp_path: Path) -> Shop:
    shop = shop_on(server, tmp_path / "shop")
    settings = shop.folder / "steadyview.toml"
    settings.write_text(settings.read_text().replace(server.url, "${SHOP_URL}"))
    return shop


def everything(shop: Shop, left: dict) -> dict[str, str]:
    """All that was said and left, by where it was found."""
    found = {f"{words}": out + err for words, _, out, err in left["said"]}
    found |= {"settings of Spark": str(left["conf"]), "processes": str(left["processes"])}
    found |= left["local"]
    for path in shop.folder.rglob("*"):
        if path.is_file():
            found[str(path)] = path.read_bytes().decode("latin-1")
    return found


@pytest.mark.slow
def test_a_password_is_found_nowhere_and_no_file_is_open_to_others(
    shop: Shop, server: Server, tmp_path: Path
) -> None:
    left, local = tmp_path / "left.json", tmp_path / "local"
    local.mkdir()
    urls = {
        name: conninfo.make_conninfo(server.url, user="clerk", password=password)
        for name, password in (("GOOD_URL", CANARY), ("BAD_URL", WRONG))
    }
    before = os.umask(0)
    try:
        ended = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(shop.folder), str(left)],
            capture_output=True,
            text=True,
            check=False,
            env={
                **os.environ,
                **urls,
                "SPARK_LOCAL_DIRS": str(local),
                "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
            },
        )
    finally:
        os.umask(before)
    assert ended.returncode == 0, ended.stderr
    told = json.loads(left.read_text())
    codes = [code for _, code, _, _ in told["said"]]
    assert codes[:9] == [0] * 9, told["said"]
    assert codes[9] != 0, "the wrong password is refused"
    assert told["java"], "a Spark of its own was watched"
    found = everything(shop, told) | {"output": ended.stdout, "errors": ended.stderr}
    assert len(found) > 20
    assert [place for place, text in found.items() if CANARY in text or WRONG in text] == []
    assert open_to_others(shop.warehouse) == []


@pytest.mark.slow
def test_a_long_run_with_sparks_pages_open_tells_no_password(
    shop: Shop, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = conninfo.make_conninfo(server.url, user="clerk", password=CANARY)
    monkeypatch.setenv("SHOP_URL", url)
    settings = shop.folder / "steadyview.toml"
    pages = '[spark]\n"spark.ui.enabled" = "true"\n"spark.ui.port" = "0"\n'
    settings.write_text(settings.read_text().replace("[spark]\n", pages))
    with steadyview_run(shop.folder) as process:
        wait_for_cn(process, 0)
        asked = [*COMMAND[:-2], "query", "SELECT * FROM sold", "--json", "--project"]
        answer = subprocess.run(
            [*asked, str(shop.folder)], capture_output=True, text=True, check=False
        )
        found = {"answer": answer.stdout + answer.stderr, **pages_of(process.pid)}
        os.killpg(process.pid, signal.SIGINT)
        found["output"], found["errors"] = process.communicate()
    assert answer.returncode == 0, answer.stderr
    assert any("Spark Properties" in text for text in found.values())
    for path in shop.folder.rglob("*"):
        if path.is_file():
            found[str(path)] = path.read_bytes().decode("latin-1")
    assert [place for place, text in found.items() if CANARY in text] == []


def pages_of(pid: int) -> dict[str, str]:
    """What Spark's own pages show of its settings and statements."""
    found = {}
    for process in [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]:
        for port in {c.laddr.port for c in process.net_connections() if c.status == "LISTEN"}:
            for page in ("environment/", "SQL/", "jobs/"):
                with suppress(OSError, HTTPException):
                    connection = HTTPConnection("127.0.0.1", port, timeout=10)
                    connection.request("GET", f"/{page}")
                    found[f"{port}/{page}"] = connection.getresponse().read().decode("latin-1")
    return found


def open_to_others(root: Path) -> list[str]:
    """What lies in the warehouse and could be read by others, were its folder open."""
    return [str(p) for p in [root, *root.rglob("*")] if stat.S_IMODE(p.stat().st_mode) & 0o077]
