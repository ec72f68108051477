"""The exception tree. Every error says what, why and what to do.

    SteadyviewError
    ├── DefiniteError            trying again cannot help
    │   ├── ConfigError              the project file, a variable or an argument is wrong
    │   ├── QueryRefused             a query would do more than read views
    │   ├── QueryTooLong             a query took longer than the caller allowed
    │   ├── ViewRefused              the view's SQL cannot be maintained; has code and place
    │   ├── ViewStopped              a view met a run-time error at a cn and stands just before it
    │   ├── SourceRefused            a source lacks a right, a setting or a table we need
    │   ├── ChangesLost              a source no longer keeps changes we have not captured
    │   ├── SourceDiverged           a source's rows contradict the changes captured from it
    │   ├── ColumnLost               a column was dropped, retyped, or cannot be kept exactly
    │   ├── WarehouseHeld            another process holds the warehouse's lease
    │   ├── StoreRefused             a serving store lacks a right, or holds something else
    │   ├── OutsideRetention         the state asked for is not kept (any more, or yet)
    │   └── StorageDamaged           a file of the warehouse is missing, foreign or unreadable
    └── TransientError           the same call may succeed later
        ├── TooStale                 an answer would be older than the caller allows
        ├── SourceUnavailable        a source does not answer
        ├── StoreUnavailable         a serving store does not answer
        └── StorageUnavailable       the warehouse's disk is full or does not answer

Messages are three parts: the fact (lower case, names in double quotes), an optional detail, an
optional hint (the command to run). None of the three ever holds a credential.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class SteadyviewError(Exception):
    """Root of everything this package raises on purpose.

    `source`: the name of the source that the error is about, where only that one is concerned.
    """

    def __init__(
        self,
        message: str,
        *,
        detail: str | None = None,
        hint: str | None = None,
        source: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail
        self.hint = hint
        self.source = source

    def __str__(self) -> str:
        lines = [self.message]
        if self.detail:
            lines.append(f"detail: {self.detail}")
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)


class DefiniteError(SteadyviewError):
    """Trying again cannot help: somebody has to change something first."""


class TransientError(SteadyviewError):
    """The same call may succeed later, unchanged."""


class ConfigError(DefiniteError):
    """The project file, an environment variable or an argument is wrong."""


class QueryRefused(DefiniteError):
    """A query would do more than read views, or reads one that is not there to be read."""


class QueryTooLong(DefiniteError):
    """A query took longer than the caller allowed, and was cancelled."""


class ViewRefused(DefiniteError):
    """The view's SQL cannot be maintained incrementally.

    `code` is one of `steadyview.views.reasons`; `line` and `column` (1-based) point into the view's
    file where the refused construct starts.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        line: int | None = None,
        column: int | None = None,
        detail: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, detail=detail, hint=hint)
        self.code = code
        self.line = line
        self.column = column


class ViewStopped(DefiniteError):
    """A view met a run-time error at one cn; its last good state is the cn before."""


class SourceRefused(DefiniteError):
    """A source lacks a right, a setting or a table that capture or answers need."""


class ChangesLost(DefiniteError):
    """A source no longer keeps changes that were not captured yet (a lost slot, a pruned log)."""


class SourceDiverged(DefiniteError):
    """A source's rows contradict the changes captured from it, or those in the log."""


class ColumnLost(DefiniteError):
    """A column was dropped or retyped at its source, or holds a value that cannot be kept exactly.

    `relation` is the relation's display name, `column` the column's name at the source; None: the
    whole relation is lost, to every view that reads it.
    """

    def __init__(
        self,
        message: str,
        *,
        relation: str,
        column: str | None,
        detail: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, detail=detail, hint=hint)
        self.relation = relation
        self.column = column


class WarehouseHeld(DefiniteError):
    """Another process holds the lease of this warehouse."""


class StoreRefused(DefiniteError):
    """A serving store lacks a right that we need, holds something else, or takes a value not."""


class OutsideRetention(DefiniteError):
    """The state asked for lies before the oldest or after the newest that is kept."""


class StorageDamaged(DefiniteError):
    """A file of the warehouse is missing, unreadable, or of a kind we would misread."""


class TooStale(TransientError):
    """An answer would be older than the caller allows."""


class SourceUnavailable(TransientError):
    """A source does not answer (down, network, too many connections)."""


class StoreUnavailable(TransientError):
    """A serving store does not answer (down, network, full)."""


class StorageUnavailable(TransientError):
    """The warehouse's disk is full or does not answer."""


@contextmanager
def about(source: str) -> Iterator[None]:
    """Errors of the block are about this source, so that the others can go on."""
    try:
        yield
    except SteadyviewError as error:
        error.source = error.source or source
        raise
