"""Spark's classes, read and checked once for all starts: a class archive (AppCDS) per installation.

Half of a cold start is the reading of ten thousand classes from Spark's jars. The first Java that
has run something writes those it has loaded into an archive when it ends, after the command that
started it; every later one maps the archive.

Claim: an archive is never a reason to fail. Its name carries a key (Java, jars, settings), its
length and its checksum: one that is not as it was written, or that somebody else could have
written, is removed (Java itself looks at versions and jars, and dies of one that is cut off). It is
written to a name of its own and renamed, so nobody sees a part of one. Kept in the user's cache
folder, 0600 in 0700; at most `KEPT` of them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import subprocess
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steadyview.engine.java import compiled

KEPT = 3
"""Archives that stay, the last used ones; each has 120 to 170 MB."""
LEAST = 18_000
"""A Java that has run a job has loaded 20,000 classes; one that has not, 16,000: a poor archive."""
_SECONDS = 3600
"""What is older and has no final name was left by a Java that was killed."""
_RECORD = "-XX:+RecordDynamicDumpInfo"
# Java tells on standard output, where results go, that it cannot use an archive
_QUIET = "-Xlog:disable -Xlog:all=warning,cds*=off:stderr"
_OWN_WORDS = ("-Xshare", "Shared", "ArchiveClasses", "RecordDynamic", "AOT", "-javaagent")
"""Who says one of these to Java has plans of his own."""
_ENVIRONMENT = (
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "SPARK_SUBMIT_OPTS",
    "SPARK_CONF_DIR",
    "HADOOP_CONF_DIR",
    "YARN_CONF_DIR",
    "SPARK_DIST_CLASSPATH",
    "PYSPARK_SUBMIT_ARGS",
)


@dataclass(frozen=True)
class ClassArchive:
    """An archive that is there to be used, or is to be written when Java ends.

    `path` is its file, or the beginning of the name that it will have.
    """

    path: Path
    there: bool

    @property
    def options(self) -> str:
        """What Java must be told."""
        use = f'"-XX:SharedArchiveFile={self.path}"' if self.there else _RECORD
        return f"{_QUIET} {use}"


def class_archive(settings: Mapping[str, str], spark_home: Path) -> ClassArchive | None:
    """The archive for a Java with these Spark settings; None where there can be none."""
    java = _java()
    told = [value for key, value in sorted(settings.items()) if key.startswith("spark.driver.")]
    told += [os.environ.get(name, "") for name in _ENVIRONMENT]
    if java is None or any(word in text for text in told for word in _OWN_WORDS):
        return None
    try:
        folder = _folder()
        stem = folder / _key(java, spark_home, told)
        # a colon parts two archives, a quote ends the option
        if set(str(stem)) & set(":\"'\\"):
            return None
        for path in folder.glob(f"{stem.name}-*-*.jsa"):
            if _ours(path) and _whole(path):
                os.utime(path)
                return ClassArchive(path, there=True)
            path.unlink(missing_ok=True)
        _tidy(folder)
    except OSError:
        return None
    return ClassArchive(stem, there=False) if _can_record(java) else None


def write_at_exit(gateway: Any, archive: ClassArchive) -> None:
    """Let this Java write the archive when it ends, if it is one that records."""
    if not archive.there:
        stem = str(archive.path)
        temporary = f"{stem}.{os.getpid()}-{time.time_ns()}.part"
        compiled(gateway, "ClassArchive").writeAtExit(stem, temporary, LEAST)


def _folder() -> Path:
    """The cache folder of the user, made if missing; OSError where others could write in it."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(cache).absolute() / "steadyview" / "classes"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not _private(folder.lstat()) or not os.access(folder, os.W_OK):
        raise PermissionError(str(folder))
    return folder


def _ours(path: Path) -> bool:
    """Whether nobody else can have written the file: its code will be run."""
    found = path.lstat()
    return stat.S_ISREG(found.st_mode) and _private(found)


def _whole(path: Path) -> bool:
    """Whether the content is what its name says."""
    _, size, checksum = path.stem.rsplit("-", 2)
    if str(path.stat().st_size) != size:
        return False
    found = 0
    with path.open("rb") as content:
        while block := content.read(1 << 22):
            found = zlib.crc32(block, found)
    return str(found) == checksum


def _private(found: os.stat_result) -> bool:
    return found.st_uid == os.getuid() and not found.st_mode & 0o022


def _tidy(folder: Path) -> None:
    """Make room for one more."""
    kept = sorted(folder.glob("*.jsa"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in [*kept[KEPT - 1 :], *_left(folder)]:
        path.unlink(missing_ok=True)


def _left(folder: Path) -> Iterator[Path]:
    for path in folder.glob("*.part*"):
        with suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > _SECONDS:
                yield path


def _java() -> Path | None:
    """The Java that Spark will start."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(f"{home}/bin/java" if home else "java")
    return Path(found).resolve() if found else None


def _key(java: Path, spark_home: Path, told: list[str]) -> str:
    """A name for all that decides which classes Java has, and where it finds them."""
    facts = [str(java), *told]
    release = java.parent.parent / "release"
    if release.exists():
        facts.append(release.read_text(encoding="utf-8", errors="replace"))
    for file in (java, java.parent.parent / "lib" / "modules"):
        if file.exists():
            facts.append(_stamp(file))
    facts += sorted(_stamp(jar) for jar in (spark_home / "jars").iterdir())
    return hashlib.sha256("\0".join(facts).encode()).hexdigest()[:32]


def _stamp(file: Path) -> str:
    found = file.stat()
    return f"{file} {found.st_size} {found.st_mtime_ns}"


def _can_record(java: Path) -> bool:
    """Whether this Java knows our options: one that does not would not start at all."""
    command = [str(java), *_QUIET.split(), _RECORD, "-version"]
    try:
        return subprocess.run(command, capture_output=True, timeout=30).returncode == 0  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return False
