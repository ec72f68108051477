"""The archive of Spark's classes: written once, used afterwards, and never a reason to fail."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from steadyview.engine.class_archive import KEPT, class_archive
from tests.conftest import SOAK

HOME = Path(__file__).parents[2]
PATIENCE = 120.0


@dataclass
class Start:
    """One start of Spark: its answer, Java's words, and what both printed besides."""

    total: list[int]
    java: list[str]
    told: str


@dataclass
class Place:
    """A folder with a cache of its own."""

    root: Path

    @property
    def archives(self) -> list[Path]:
        return sorted((self.root / "cache" / "steadyview" / "classes").glob("*.jsa"))

    @property
    def loaded(self) -> list[str]:
        return (self.root / "loaded.txt").read_text().splitlines()

    def start(self, kind: str = "brief") -> Start:
        """Start Spark; Java writes which classes it takes from where."""
        words = f'-Xlog:class+load:file="{self.root}/loaded.txt"'
        settings = {
            "spark.master": "local[1]",
            "spark.driver.memory": "1g",
            "spark.driver.extraJavaOptions": f"{words} -XX:ReservedCodeCacheSize=200m",
        }
        command = [sys.executable, "-m", "tests.processes.archive_driver", str(self.root / "wh")]
        ended = subprocess.run(
            [*command, json.dumps(settings), kind],
            env={**os.environ, "XDG_CACHE_HOME": str(self.root / "cache")},
            cwd=HOME,
            capture_output=True,
            text=True,
            check=True,
        )
        *printed, last = ended.stdout.splitlines()
        return Start(**json.loads(last), told="\n".join(printed))

    def settled(self) -> None:
        """Wait until the last Java has written its archive, which outlives its start."""
        until = time.monotonic() + PATIENCE
        while not self.archives and time.monotonic() < until:
            time.sleep(0.1)

    def shared(self) -> int:
        """How many classes the last start took from the archive."""
        return sum("shared objects file (top)" in line for line in self.loaded)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A cache with an archive, written by a first start."""
    place = Place(tmp_path_factory.mktemp("with space"))
    first = place.start()
    assert first.total == [45]
    assert place.shared() == 0
    place.settled()
    assert len(place.archives) == 1
    return place


def test_the_first_start_writes_an_archive_for_its_owner_alone(place):
    (archive,) = place.archives
    assert stat.S_IMODE(archive.stat().st_mode) == 0o600
    assert stat.S_IMODE(archive.parent.stat().st_mode) == 0o700
    assert [path.name for path in archive.parent.iterdir()] == [archive.name]


def test_a_later_start_takes_its_classes_from_it_and_keeps_the_users_words_for_java(place):
    later = place.start()
    assert later.total == [45]
    assert place.shared() > 5_000
    # of two words Java takes the last
    sizes = [word for word in later.java if "ReservedCodeCacheSize" in word]
    assert sizes[-1] == "-XX:ReservedCodeCacheSize=200m"
    assert any("log4j2.configurationFile" in word for word in later.java)
    assert "-XX:TieredStopAtLevel=1" in later.java


def test_a_long_run_has_other_words_for_java_and_the_same_archive(place):
    later = place.start("lasting")
    assert place.shared() > 5_000
    assert "-XX:TieredStopAtLevel=1" not in later.java
    assert "-XX:Tier4InvocationThreshold=50000" in later.java


def _flipped(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes(255 - b for b in content[middle : middle + 65536])


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "changed inside": lambda content: _flipped(content) + content[len(content) // 2 + 65536 :],
    "cut off": lambda content: content[: len(content) // 2],
    "empty": lambda _: b"",
    "something else": lambda _: b"something else\n" * 1000,
}


@pytest.mark.parametrize("damage", DAMAGES if SOAK else ["changed inside"])
def test_a_damaged_archive_is_ignored_without_a_word(place, damage):
    (archive,) = place.archives
    whole = archive.read_bytes()
    archive.write_bytes(DAMAGES[damage](whole))
    try:
        found = place.start()
        assert (found.total, found.told) == ([45], "")
        assert place.shared() == 0
        assert any("RecordDynamicDumpInfo" in word for word in found.java)
    finally:
        place.settled()
        for written in place.archives:
            written.unlink()
        archive.write_bytes(whole)
        archive.chmod(0o600)


SETTINGS = {"spark.driver.memory": "1g"}


@pytest.fixture
def spark_home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    jars = tmp_path / "spark" / "jars"
    jars.mkdir(parents=True)
    (jars / "a.jar").write_bytes(b"a")
    return tmp_path / "spark"


def _there(spark_home: Path) -> Path:
    missing = class_archive(SETTINGS, spark_home)
    assert missing is not None
    assert not missing.there
    Path(f"{missing.path}-0-0.jsa").touch(0o600)
    found = class_archive(SETTINGS, spark_home)
    assert found is not None
    assert found.there
    return found.path


def test_an_archive_that_others_can_write_is_not_used(spark_home):
    path = _there(spark_home)
    path.chmod(0o666)
    assert not class_archive(SETTINGS, spark_home).there
    empty = spark_home / "empty"
    empty.touch(0o600)
    path.symlink_to(empty)
    assert not class_archive(SETTINGS, spark_home).there


def test_a_folder_that_others_can_write_is_not_used(spark_home):
    _there(spark_home).parent.chmod(0o777)
    assert class_archive(SETTINGS, spark_home) is None


def test_a_cache_folder_that_cannot_be_made_means_no_archive(spark_home, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    assert class_archive(SETTINGS, spark_home) is None


def test_other_jars_and_other_words_for_java_have_another_archive(spark_home):
    path = _there(spark_home)
    others = class_archive({**SETTINGS, "spark.driver.extraJavaOptions": "-Xss8m"}, spark_home)
    (spark_home / "jars" / "b.jar").write_bytes(b"b")
    more = class_archive(SETTINGS, spark_home)
    assert len({path, others.path, more.path}) == 3
    assert not others.there
    assert not more.there


@pytest.mark.parametrize("word", ["-Xshare:off", "-XX:SharedArchiveFile=x", "-javaagent:x.jar"])
def test_a_user_with_plans_of_his_own_is_left_alone(spark_home, monkeypatch, word):
    told = {**SETTINGS, "spark.driver.extraJavaOptions": word}
    assert class_archive(told, spark_home) is None
    monkeypatch.setenv("JDK_JAVA_OPTIONS", word)
    assert class_archive(SETTINGS, spark_home) is None


def test_a_few_archives_stay_and_what_killed_starts_left_goes(spark_home):
    folder = _there(spark_home).parent
    for age in range(1, 6):
        old = folder / f"{age}.jsa"
        old.touch(0o600)
        os.utime(old, (age, age))
    left = folder / "1.2.part.temp"
    left.touch()
    os.utime(left, (0, 0))
    begun = folder / "3.4.part"
    begun.touch()
    class_archive({"spark.driver.memory": "2g"}, spark_home)
    assert len(list(folder.glob("*.jsa"))) == KEPT - 1
    assert begun.exists()
    assert not left.exists()
