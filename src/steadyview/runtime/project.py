"""A project folder: `steadyview.toml` and `views/*.sql`, read and checked before anything starts.

Claim: what `load_project` returns is complete and of the right kinds (every `${NAME}` filled in,
every path absolute, every name an identifier), so that nothing later asks "is this key there?".
Assumes: nobody edits the folder while it is read.
Not promised: that a source can be reached or a view maintained; `steadyview check` says that.
Secrets: settings of sources, stores and of Spark never show in a `repr` or in an error.
"""

from __future__ import annotations

import os
import re
import shlex
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from steadyview.errors import ConfigError
from steadyview.nearest import did_you_mean
from steadyview.timing import UnknownZone, check_zone

FILE_NAME = "steadyview.toml"
DEFAULT_RETENTION = timedelta(days=7)

_SECTIONS = ("project", "spark", "sources", "stores")
_PROJECT_KEYS = ("name", "warehouse", "retention", "timezone", "shared", "class_archive")
# Keys of a source by family: the first ones are required. `path` is a file beside steadyview.toml.
_SOURCE_KEYS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "postgresql": (("type", "url", "tables"), ("slot", "publication", "audit")),
    "sqlite": (("type", "path", "tables"), ("audit",)),
}
_STORE_KEYS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "sqlite": (("type", "path"), ()),
    "postgresql": (("type", "url"), ("schema",)),
    "redis": (("type", "url"), ("prefix",)),
}
AUDITS = ("daily", "off")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_FAR = 0.8
"""Other variables of the environment are named only where they are nearly the same."""
_TOML = "correct the line; texts stand in double quotes, lists in brackets"
_UTF8 = "save it in UTF-8"
_EXAMPLES = {
    "name": '"shop"',
    "warehouse": '"warehouse"',
    "retention": '"7 days"',
    "timezone": '"Europe/Berlin"',
    "type": '"postgresql", or "sqlite"',
    "url": '"${SALES_URL}", with SALES_URL=postgresql://user@host/database in the environment',
    "path": '"crm.db"',
    "tables": '["orders", "order_lines"]',
    "audit": '"daily"',
    "schema": '"steadyview"',
    "prefix": '"steadyview"',
}
_STORE_EXAMPLES = {
    "type": '"sqlite", "postgresql", or "redis"',
    "url": '"${CACHE_URL}", with CACHE_URL=redis://host:6379/0 in the environment',
    "path": '"cache.db"',
}
_DURATION = re.compile(r"(\d+)\s*(minute|hour|day|week)s?")


@dataclass(frozen=True)
class ViewFile:
    """One file of `views/`: its name without `.sql` names the view."""

    name: str
    path: Path
    text: str = field(repr=False)
    unreadable: str | None = None
    """Why its text cannot be had: a reason to refuse this view, not the project."""


@dataclass(frozen=True)
class ProjectConfig:
    """One project, checked. `sources` maps a source's name to its settings, `type` among them.

    `warehouse` and every source's `path` are absolute. Settings are left out of `repr`.
    """

    root: Path
    name: str
    warehouse: Path
    spark: Mapping[str, str] = field(repr=False)
    sources: Mapping[str, Mapping[str, Any]] = field(repr=False)
    retention: timedelta
    views: tuple[ViewFile, ...]
    unready: Mapping[str, ConfigError] = field(default_factory=dict)
    """Sources with a setting whose variable is not set: reading views does not need them."""
    shared: bool = False
    """Whether the group of the warehouse's folder may read and write in it, too."""
    class_archive: bool = True
    """Whether an archive of Spark's classes is kept in the user's cache folder."""
    timezone: str = "UTC"
    """The time zone of schedules that name none."""
    stores: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    """Serving stores by name, as `sources` are; `unready_stores` as `unready`."""
    unready_stores: Mapping[str, ConfigError] = field(default_factory=dict)


def load_project(
    directory: str | Path, environment: Mapping[str, str] = os.environ
) -> ProjectConfig:
    """The project in `directory`; ConfigError names file, key and remedy of the first fault."""
    root = Path(directory).expanduser().absolute()
    file = root / FILE_NAME
    data = _read_toml(file)
    _refuse_unknown(data, _SECTIONS, "section", str(file))
    project = _section(data, "project", file)
    unready: dict[str, ConfigError] = {}
    unready_stores: dict[str, ConfigError] = {}
    _refuse_unknown(project, _PROJECT_KEYS, "key", f"[project] of {file}")
    return ProjectConfig(
        root=root,
        name=_identifier(_text(project, "name", "project", file), "project name", file),
        warehouse=_warehouse(root, project, file),
        spark=_spark_settings(_section(data, "spark", file), file),
        sources=_sources(_section(data, "sources", file), file, environment, unready),
        retention=_retention(project, file),
        views=load_views(root),
        unready=unready,
        shared=_flag(project, "shared", file, default=False),
        class_archive=_flag(project, "class_archive", file, default=True),
        timezone=_timezone(project, file),
        stores=_stores(_section(data, "stores", file), file, environment, unready_stores),
        unready_stores=unready_stores,
    )


def parse_duration(text: str) -> timedelta:
    """A positive whole number of minutes, hours, days or weeks; ValueError for anything else.

    >>> parse_duration("12 hours")
    datetime.timedelta(seconds=43200)
    """
    match = _DURATION.fullmatch(text.strip().lower())
    if not match or int(match[1]) == 0:
        raise ValueError(text)
    return timedelta(**{f"{match[2]}s": int(match[1])})


def _read_toml(file: Path) -> dict[str, Any]:
    folder = shlex.quote(str(file.parent))
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise ConfigError(
            f'there is no project in "{file.parent}"',
            detail=f'"{FILE_NAME}" was not found there',
            hint=f"name the project's folder, --project DIR, or make one: steadyview init {folder}",
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f'"{file}" is not valid TOML', detail=str(error), hint=_TOML) from None
    except UnicodeDecodeError as error:
        raise ConfigError(f'"{file}" is not text', detail=str(error), hint=_UTF8) from None
    except OSError as error:
        hint = "let the user that runs steadyview read it"
        raise ConfigError(f'"{file}" cannot be read', detail=error.strerror, hint=hint) from None


def _section(data: Mapping[str, Any], name: str, file: Path) -> dict[str, Any]:
    section = data.get(name, {})
    if not isinstance(section, dict):
        raise ConfigError(
            f'"{name}" in {file} is not a section',
            detail=_found(section),
            hint=f"write [{name}] on a line of its own, and its settings below it",
        )
    return section


def _refuse_unknown(given: Iterable[str], known: Iterable[str], kind: str, where: str) -> None:
    known = tuple(known)
    for key in given:
        if key not in known:
            raise ConfigError(
                f'unknown {kind} "{key}" in {where}',
                detail=f"known here: {', '.join(known)}",
                hint=did_you_mean(key, known) or "take it out",
            )


def _text(section: Mapping[str, Any], key: str, title: str, file: Path) -> str:
    if key not in section:
        raise ConfigError(f'[{title}] of {file} lacks "{key}"', hint=_example(key, title))
    value = section[key]
    if not isinstance(value, str) or not value.strip():
        raise ConfigError(
            f'"{key}" in [{title}] of {file} must be a text that is not empty',
            detail=None if isinstance(value, str) else _found(value),
            hint=_example(key, title),
        )
    return value


def _example(key: str, title: str = "") -> str:
    stores = title.startswith("stores.") and key in _STORE_EXAMPLES
    return f"for example: {key} = {(_STORE_EXAMPLES if stores else _EXAMPLES)[key]}"


def _found(value: Any) -> str:
    """The kind of a value, without the value: it may be a secret."""
    kinds = {bool: "true or false", str: "a text", dict: "a section", list: "a list"}
    return f"found {kinds.get(type(value), 'a number or a date')}"


def _identifier(name: str, kind: str, file: Path) -> str:
    if not _IDENTIFIER.fullmatch(name):
        raise ConfigError(
            f'"{name}" cannot be a {kind} in {file}',
            detail="a name is letters a-z, digits and underscores, and does not start with a digit",
            hint=f"for example: {as_identifier(name)}",
        )
    return name


def as_identifier(text: str) -> str:
    """The text as a name that a project or a source may have.

    >>> as_identifier("my-shop 2"), as_identifier("2nd")
    ('my_shop_2', '_2nd')
    """
    name = re.sub(r"[^A-Za-z0-9_]", "_", text)
    return name if _IDENTIFIER.fullmatch(name) else f"_{name}"


def _warehouse(root: Path, project: Mapping[str, Any], file: Path) -> Path:
    if "warehouse" not in project:
        return root / "warehouse"
    folder = _text(project, "warehouse", "project", file)
    if "://" in folder:
        raise ConfigError(
            f'"warehouse" in [project] of {file} must be a local folder, not a URI: "{folder}"',
            hint='write a folder, relative to the file: warehouse = "warehouse"',
        )
    return root / Path(folder).expanduser()


def _retention(project: Mapping[str, Any], file: Path) -> timedelta:
    if "retention" not in project:
        return DEFAULT_RETENTION
    text = _text(project, "retention", "project", file)
    try:
        return parse_duration(text)
    except (ValueError, OverflowError):
        raise ConfigError(
            f'"retention" in [project] of {file} is not a duration: "{text}"',
            detail="a duration is a whole number of minutes, hours, days or weeks, not zero",
            hint=_example("retention"),
        ) from None


def _timezone(project: Mapping[str, Any], file: Path) -> str:
    if "timezone" not in project:
        return "UTC"
    text = _text(project, "timezone", "project", file)
    try:
        return check_zone(text)
    except UnknownZone as unknown:
        raise ConfigError(
            f'"timezone" in [project] of {file} is not a time zone: "{text}"',
            detail="a zone is a name of the IANA database, in its upper and lower case",
            hint=unknown.hint or _example("timezone"),
        ) from None


def _flag(project: Mapping[str, Any], key: str, file: Path, *, default: bool) -> bool:
    found = project.get(key, default)
    if not isinstance(found, bool):
        raise ConfigError(f'"{key}" in [project] of {file} must be true or false')
    return found


def _spark_settings(section: Mapping[str, Any], file: Path) -> dict[str, str]:
    return {key: _spark_value(key, value, file) for key, value in _flattened(section)}


def _flattened(section: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    # spark.master = "..." without quotes is TOML for nested tables; the setting's name is the path.
    for key, value in section.items():
        if isinstance(value, dict):
            yield from _flattened(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _spark_value(key: str, value: Any, file: Path) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise ConfigError(
        f'"{key}" in [spark] of {file} must be a text, a number or true/false',
        detail=_found(value),
        hint=f'for example: "{key}" = "..."',
    )


def _sources(
    section: Mapping[str, Any],
    file: Path,
    environment: Mapping[str, str],
    unready: dict[str, ConfigError],
) -> dict[str, dict[str, Any]]:
    _check_names(section, "source", file)
    found = {}
    for name in section:
        try:
            found[name] = _source(name, section[name], file, environment)
        except _VariableMissing as missing:
            found[name] = {k: section[name][k] for k in ("type", "tables") if k in section[name]}
            unready[name] = missing
    return found


def _check_names(section: Mapping[str, Any], kind: str, file: Path) -> None:
    seen: dict[str, str] = {}
    for name in section:
        _identifier(name, f"{kind} name", file)
        if other := seen.get(name.lower()):
            raise ConfigError(
                f'{kind}s "{other}" and "{name}" in {file} differ only in case',
                detail="Spark does not tell upper from lower case in names",
                hint="give one of them another name",
            )
        seen[name.lower()] = name


def _stores(
    section: Mapping[str, Any],
    file: Path,
    environment: Mapping[str, str],
    unready: dict[str, ConfigError],
) -> dict[str, dict[str, Any]]:
    _check_names(section, "store", file)
    found: dict[str, dict[str, Any]] = {}
    for name, given in section.items():
        try:
            found[name] = _store(name, given, file, environment)
        except _VariableMissing as missing:
            found[name] = {"type": given["type"]}
            unready[name] = missing
    return found


def _store(name: str, given: Any, file: Path, environment: Mapping[str, str]) -> dict[str, Any]:
    title = f"stores.{name}"
    given = _named_section(given, "store", name, title, file)
    family = _known_kind(_text(given, "type", title, file), "store", _STORE_KEYS, title, file)
    required, optional = _STORE_KEYS[family]
    _refuse_unknown(given, required + optional, "key", f"[{title}] of {file}")
    settings = {key: _filled(value, key, title, file, environment) for key, value in given.items()}
    for key in (*required, *(k for k in optional if k in settings)):
        _text(settings, key, title, file)
    if "path" in settings:
        settings["path"] = str(file.parent / Path(settings["path"]).expanduser())
    return settings


def _named_section(given: Any, kind: str, name: str, title: str, file: Path) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise ConfigError(
            f'{kind} "{name}" in {file} is not a section',
            detail=_found(given),
            hint=f"write [{title}] on a line of its own, and its settings below it",
        )
    return given


class _VariableMissing(ConfigError):
    """A setting speaks of an environment variable that is not set."""


def _source(name: str, given: Any, file: Path, environment: Mapping[str, str]) -> dict[str, Any]:
    title = f"sources.{name}"
    given = _named_section(given, "source", name, title, file)
    family = _known_kind(_text(given, "type", title, file), "source", _SOURCE_KEYS, title, file)
    required, optional = _SOURCE_KEYS[family]
    _refuse_unknown(given, required + optional, "key", f"[{title}] of {file}")
    settings = {key: _filled(value, key, title, file, environment) for key, value in given.items()}
    for key in required:
        if key != "tables":
            _text(settings, key, title, file)
    _check_tables(settings.get("tables"), title, file)
    if settings.setdefault("audit", AUDITS[0]) not in AUDITS:
        raise ConfigError(
            f'"audit" in [{title}] of {file} must be "daily" or "off", not "{settings["audit"]}"',
            hint=did_you_mean(str(settings["audit"]), AUDITS) or _example("audit"),
        )
    if "path" in settings:
        settings["path"] = str(file.parent / Path(settings["path"]).expanduser())
    return settings


def _known_kind(given: str, kind: str, known: Iterable[str], title: str, file: Path) -> str:
    if given not in (names := tuple(known)):
        raise ConfigError(
            f'"type" in [{title}] of {file} is not a kind of {kind} we know: "{given}"',
            detail=f"known: {', '.join(names)}",
            hint=did_you_mean(given, names) or "use one of these",
        )
    return given


def _check_tables(tables: Any, title: str, file: Path) -> None:
    texts = isinstance(tables, list) and all(isinstance(t, str) and t.strip() for t in tables)
    if not tables or not texts:
        raise ConfigError(
            f"[{title}] of {file} must list the tables to watch",
            hint=_example("tables"),
        )
    twice = [table for table, count in Counter(tables).items() if count > 1]
    if twice:
        raise ConfigError(
            f'"tables" in [{title}] of {file} names "{twice[0]}" twice', hint="name it once"
        )


def _filled(value: Any, key: str, title: str, file: Path, environment: Mapping[str, str]) -> Any:
    """The value with every `${NAME}` replaced once; what a variable holds is not looked at."""
    if isinstance(value, list):
        return [_filled(item, key, title, file, environment) for item in value]
    if not isinstance(value, str):
        return value

    def fill(match: re.Match[str]) -> str:
        variable = match[1]
        if variable not in environment:
            raise _VariableMissing(
                f'environment variable "{variable}" is not set',
                detail=f'"{key}" in [{title}] of {file} uses it',
                hint=did_you_mean(variable, environment, _FAR) or f"run: export {variable}=...",
            )
        return environment[variable]

    return _VARIABLE.sub(fill, value)


def load_views(root: Path) -> tuple[ViewFile, ...]:
    """The view files of the project in a folder, as they are now."""
    return tuple(_view_file(path) for path in view_paths(root / "views"))


def view_paths(folder: Path) -> list[Path]:
    """The files that hold views, in order; what editors hide beside them is none."""
    return sorted(path for path in folder.rglob("*.sql") if not path.name.startswith("."))


def _view_file(path: Path) -> ViewFile:
    try:
        return ViewFile(path.stem, path, path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        return ViewFile(path.stem, path, "", str(error))
