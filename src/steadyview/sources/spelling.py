"""How steadyview.toml writes a table's name: dotted parts, each plain or in double quotes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from steadyview.errors import ConfigError

_PART = re.compile(r'\s*(?:"(?P<quoted>(?:[^"]|"")+)"|(?P<plain>[^\s".]+))\s*(?P<dot>\.|$)')


@dataclass(frozen=True)
class NamePart:
    """One part of a dotted name, unquoted; `quoted` says whether it was written in quotes."""

    text: str
    quoted: bool


def parts(spelling: str) -> tuple[NamePart, ...]:
    """The parts of a dotted name.

    >>> [p.text for p in parts('public."Weird Name"')]
    ['public', 'Weird Name']
    """
    found: list[NamePart] = []
    at, dot = 0, "."
    while dot:
        match = _PART.match(spelling, at)
        if not match:
            raise ConfigError(
                f'table name "{spelling}" cannot be read',
                hint='write schema.table; quote parts with spaces or dots: public."My Table"',
            )
        quoted = match["quoted"]
        found.append(
            NamePart(
                match["plain"] if quoted is None else quoted.replace('""', '"'), quoted is not None
            )
        )
        at, dot = match.end(), match["dot"]
    return tuple(found)
