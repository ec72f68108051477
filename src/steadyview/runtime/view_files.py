"""Changing the project's views by command: their files and their rows together.

What becomes of the files is recorded in the transaction that changes the rows, and done afterwards;
a command that is killed in between is finished by the next run. A file that somebody else changed
meanwhile is left alone.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from steadyview.catalog import Catalog, FileChange
from steadyview.crash_points import crash_point
from steadyview.errors import ConfigError, StorageUnavailable, ViewRefused
from steadyview.nearest import nearest_or_all
from steadyview.runtime.kept import inputs_of, is_hidden
from steadyview.runtime.project import ViewFile, load_views
from steadyview.runtime.reconciling import rename_row
from steadyview.views.parse import ViewText, parse_view, renamed, view_name
from steadyview.views.plan import places_read, views_read


@dataclass(frozen=True)
class ListedView:
    """A view of the project: in the catalog, in a file, or (as mostly) in both.

    `state` is "new" for one that no run has seen yet; `reads` are other views.
    """

    name: str
    kind: str | None
    level: str | None
    state: str
    cn: int | None
    path: str | None
    reads: list[str]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


@dataclass(frozen=True)
class ReaderPlace:
    """Where a file reads a view."""

    path: str
    line: int
    column: int

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


class ViewFiles:
    """The views of one project, for commands; what changes them is called with the lease held."""

    def __init__(self, catalog: Catalog, root: Path) -> None:
        self._catalog = catalog
        self._views = catalog.views
        self._root = root
        files = load_views(root)
        self._files = {view_name(f.name, f.text): f for f in reversed(files)}
        self._rows = {r.name: r for r in self._views.all() if not is_hidden(r)}

    # --- looking -----------------------------------------------------------------------------

    def all(self) -> list[ListedView]:
        """Every view, by name."""
        return [self._listed(name) for name in sorted({*self._files, *self._rows})]

    def _listed(self, name: str) -> ListedView:
        row, file = self._rows.get(name), self._files.get(name)
        path = None if file is None else self._relative(file.path)
        reads = sorted(self._reads(name))
        if row is None:
            return ListedView(name, None, None, "new", None, path, reads)
        return ListedView(name, row.kind, row.level or None, row.state, row.cn, path, reads)

    def known(self, name: str) -> str:
        """The view's name as it is spelt; ConfigError if there is none."""
        names = {n.lower(): n for n in (*self._rows, *self._files)}
        if name.lower() not in names:
            hint = nearest_or_all(name, list(names.values())) or "the project has no views yet"
            raise ConfigError(f'there is no view "{name}"', hint=hint)
        return names[name.lower()]

    def readers(self, name: str) -> list[str]:
        """The views that read this one, themselves or over others, each before those it reads."""
        reads = {n: self._reads(n) for n in (*self._files, *self._rows)}
        found: list[str] = []
        left = [name]
        while left:
            now = left.pop(0)
            direct = sorted(n for n, below in reads.items() if now in below and n != name)
            found = [n for n in found if n not in direct] + direct
            left += direct
        return found[::-1]

    def _reads(self, name: str) -> set[str]:
        """The views that its file reads, or that what is kept of it was made of."""
        return self._read_by_file(name) | self._read_by_row(name)

    def _read_by_file(self, name: str) -> set[str]:
        try:
            text = self._text(name)
            names = {*self._files, *self._rows} - {name}
            return set() if text is None else set(views_read(text, names))
        except ViewRefused:
            return set()

    def _text(self, name: str) -> ViewText | None:
        file = self._files.get(name)
        if file is not None:
            return parse_view(file.name, file.text)
        row = self._rows.get(name)
        return None if row is None else ViewText(name, row.sql)

    def _read_by_row(self, name: str) -> set[str]:
        rows = {r.id: r for r in self._views.all()}
        found: set[str] = set()
        left = [self._rows[name]] if name in self._rows else []
        while left:
            below = [rows[i] for i in inputs_of(left.pop()).values() if i in rows]
            found |= {r.name for r in below if not is_hidden(r)}
            left += [r for r in below if is_hidden(r)]
        return found

    # --- changing ----------------------------------------------------------------------------

    def drop(self, name: str, *, cascade: bool) -> list[str]:
        """Drop a view with its file; with `cascade`, first all that read it. What was dropped."""
        name = self.known(name)
        readers = self.readers(name)
        if readers and not cascade:
            raise ConfigError(
                f'view "{name}" is read by others and cannot be dropped',
                detail=f"it is read by {', '.join(sorted(readers))}",
                hint=f"drop them first, or all together: steadyview view drop {name} --cascade",
            )
        gone = [*readers, name]
        files = [self._files[n] for n in gone if n in self._files]
        for file in files:
            _check_changeable(file.path)
        removed = [FileChange(self._relative(f.path), _digest(f.path), None) for f in files]
        self._views.drop_all(gone, removed)
        crash_point("change-recorded")
        finish(self._catalog, self._root)
        return gone

    def rename(self, old: str, new: str) -> list[ReaderPlace]:
        """Call a view otherwise, file and all; where other files still read it by its old name."""
        old = self.known(old)
        file = self._files.get(old)
        if file is None:
            raise ConfigError(
                f'view "{old}" has no file and cannot be renamed',
                hint=f"put its file back, or run: steadyview view drop {old}",
            )
        self._check_free(old, new)
        if file.unreadable is not None:
            raise ConfigError(f'file "{file.path}" cannot be read', detail=file.unreadable)
        text = renamed(file.name, file.path.read_bytes().decode(), new)
        path = _path_for(file, old, new)
        changes = self._moved(file, path, text)
        rename_row(self._catalog, old, new, changes)
        crash_point("change-recorded")
        finish(self._catalog, self._root)
        return self._places(old)

    def _moved(self, file: ViewFile, path: Path, text: str) -> list[FileChange]:
        """What is to be done: the new file before the old one goes."""
        _check_changeable(file.path)
        was = _digest(file.path)
        if path == file.path:
            return [FileChange(self._relative(path), was, text)]
        return [
            FileChange(self._relative(path), None, text),
            FileChange(self._relative(file.path), was, None),
        ]

    def _check_free(self, old: str, new: str) -> None:
        taken = {n.lower(): n for n in (*self._files, *self._rows) if n != old}
        if new.lower() in taken:
            raise ConfigError(
                f'there is a view "{taken[new.lower()]}" already',
                hint=f"take another name, or run: steadyview view drop {taken[new.lower()]}",
            )
        if new == old:
            raise ConfigError(f'view "{old}" is called so already')

    def _places(self, old: str) -> list[ReaderPlace]:
        """Where files read a view of that name."""
        found = []
        for name, file in sorted(self._files.items()):
            if name == old:
                continue
            with suppress(ViewRefused):
                places = places_read(parse_view(file.name, file.text), old)
                found += [ReaderPlace(self._relative(file.path), *place) for place in places]
        return found

    def _relative(self, path: Path) -> str:
        return str(path.relative_to(self._root))


def finish(catalog: Catalog, root: Path) -> None:
    """Make the changes of files that are recorded; StorageUnavailable if one cannot be made."""
    for change in catalog.files.all():
        path = root / change.path
        try:
            _make(path, change)
        except OSError as error:
            raise StorageUnavailable(
                f'view file "{path}" cannot be changed',
                detail=str(error),
                hint="let the user that runs steadyview write to its folder; then try again",
            ) from error
        crash_point("file-changed")
        catalog.files.made(change.path)


def _make(path: Path, change: FileChange) -> None:
    if _digest(path) != change.was:
        # made already, or somebody else's file by now
        return
    if change.text is None:
        path.unlink(missing_ok=True)
        return
    beside = path.with_name(f".{path.name}.new")
    with beside.open("w", encoding="utf-8", newline="") as file:
        file.write(change.text)
        file.flush()
        os.fsync(file.fileno())
    if path.exists():
        beside.chmod(path.stat().st_mode & 0o777)
    os.replace(beside, path)


def _digest(path: Path) -> str | None:
    """Of what the file holds; None: there is none."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        return None


def _path_for(file: ViewFile, old: str, new: str) -> Path:
    """The file moves where it is named after its view."""
    path = file.path.with_name(f"{new}.sql") if file.name.lower() == old.lower() else file.path
    if path != file.path and path.exists() and not path.samefile(file.path):
        raise ConfigError(f'there is a file "{path}" already', hint="move it away, and try again")
    return path


def _check_changeable(path: Path) -> None:
    if not os.access(path.parent, os.W_OK):
        raise ConfigError(
            f'view file "{path}" cannot be changed',
            detail=f'"{path.parent}" cannot be written to',
            hint="let the user that runs steadyview write to it",
        )
