"""What capture must find at the server again before it goes on: the same log, with the same past.

A marker is a logical message of ours in the log; every snapshot sends one. With m the last marker
captured and t1..tn the transactions in the stream behind it, up to the position,

    digest  =  H(...H(H(m), t1)..., tn)        of (xid, place, time) of each commit

The slot is confirmed up to the start of m's commit only, so a new monitor is sent m, t1..tn again.
It drops their rows and makes the digest anew: only if that is equal does anything new follow.

Every transaction in the stream counts, not those of watched relations alone: what the stream holds
depends on the log and the publication, not on what is asked of it. A log that was forked off (a
restored copy, a point in time, a standby that lagged) has another commit at one of these places.
Not noticed, because nothing that was captured is concerned: a fork behind the last of them.
"""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import dataclass
from typing import Any

from steadyview.errors import SourceDiverged
from steadyview.sources.postgres.pgoutput import Begin
from steadyview.sources.postgres.position import Lsn

MARKER = "steadyview"
"""Prefix of our logical messages; their text begins with the warehouse they are of."""
_FORMAT = 2


@dataclass(frozen=True)
class Server:
    """One life of one database: `started` tells the lives of a server apart."""

    system: str
    database: str
    started: str


@dataclass(frozen=True)
class PastCommits:
    """The commits from `since` on: there stands the marker, or, without one, the first position."""

    since: Lsn
    marker: str = ""
    digest: str = ""

    def after(self, commit: Begin, marker: str) -> PastCommits:
        """With one more commit, which may be a marker of ours.

        >>> start = PastCommits(Lsn(1)).after(Begin(7, 100, 5), "")
        >>> start.after(Begin(8, 200, 6), "m") == PastCommits(Lsn(9)).after(Begin(8, 200, 6), "m")
        True
        """
        if marker:
            return PastCommits(Lsn(commit.lsn), marker, _digest("", commit))
        return PastCommits(self.since, self.marker, _digest(self.digest, commit))


@dataclass(frozen=True)
class Proof:
    """A history, and through what it was read. Its text is kept with the position."""

    slot: str
    publication: str
    server: Server
    history: PastCommits

    def __str__(self) -> str:
        known = {
            "format": _FORMAT,
            "slot": self.slot,
            "publication": self.publication,
            "system": self.server.system,
            "database": self.server.database,
            "started": self.server.started,
            "since": str(self.history.since),
            "marker": self.history.marker,
            "digest": self.history.digest,
        }
        return json.dumps(known)

    @staticmethod
    def parse(text: str) -> Proof | None:
        """Read back what `str` wrote; None for an older form and for nothing."""
        known: dict[str, Any] = json.loads(text or "{}")
        if known.get("format") != _FORMAT:
            return None
        return Proof(
            known["slot"],
            known["publication"],
            Server(known["system"], known["database"], known["started"]),
            PastCommits(Lsn.parse(known["since"]), known["marker"], known["digest"]),
        )


def before_proofs(text: str) -> bool:
    """Whether capture began before there were proofs, under names without the warehouse."""
    return bool(text) and json.loads(text).get("format") == 1


def check_database(source: str, expected: Server, found: Server) -> None:
    """SourceDiverged if it is another cluster, or another database of the same."""
    if (expected.system, expected.database) != (found.system, found.database):
        raise SourceDiverged(
            f'source "{source}" is another database than the one captured so far',
            detail=f"expected system {expected.system} and database {expected.database},"
            f" found system {found.system} and database {found.database}",
            hint=f"correct the url of [sources.{source}], or {_resnapshot(source)}",
            source=source,
        )


def check_history(source: str, expected: PastCommits, found: PastCommits) -> None:
    """SourceDiverged if the log does not hold what was captured from it."""
    if expected != found:
        raise _another_past(source, _difference(expected, found))


def log_too_short(source: str, position: Lsn, end: str) -> SourceDiverged:
    """The log ends before what was captured from it."""
    detail = f"expected a log that reaches position {position}, found one that ends at {end}"
    return _another_past(source, detail)


def _another_past(source: str, detail: str) -> SourceDiverged:
    return SourceDiverged(
        f'source "{source}" has another past than the one captured so far'
        " (was it restored from a copy?)",
        detail=detail,
        hint=_resnapshot(source),
        source=source,
    )


def _difference(expected: PastCommits, found: PastCommits) -> str:
    if expected.marker and (expected.since, expected.marker) != (found.since, found.marker):
        seen = f'"{found.marker}" at {found.since}' if found.marker else "none there"
        return f'expected our marker "{expected.marker}" at {expected.since}, found {seen}'
    return (
        f"expected the transactions after {expected.since} to have the digest"
        f" {expected.digest[:16] or 'of none'}, found {found.digest[:16] or 'none'}"
    )


def _resnapshot(source: str) -> str:
    return f"run: steadyview source resnapshot {source}"


def _digest(before: str, commit: Begin) -> str:
    packed = struct.pack("!QQq", commit.xid, commit.lsn, commit.committed)
    return hashlib.sha256(bytes.fromhex(before) + packed).hexdigest()
