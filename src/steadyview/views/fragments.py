"""Pieces of SQL in which names are already references, and everything else the user's own tokens.

A fragment may be put in the place of a name inside another fragment: it is bracketed there unless
it is a single token, so precedence never changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias


@dataclass(frozen=True)
class Piece:
    """One token. `ref`: (occurrence, column) if it is a reference to a stored column.

    `offset` is where it came from in the view's text; `spaced`: a blank separates it from the piece
    before. Comments between pieces are gone.
    """

    text: str
    spaced: bool = False
    offset: int = 0
    ref: tuple[int, int] | None = None


Fragment: TypeAlias = tuple[Piece, ...]


def reference(occurrence: int, column: int) -> Fragment:
    """The stored column as a fragment.

    >>> sql(reference(0, 2))
    't0.c2'
    """
    return (Piece(f"t{occurrence}.c{column}", ref=(occurrence, column)),)


def sql(fragment: Iterable[Piece]) -> str:
    """The fragment's text."""
    return "".join(f" {p.text}" if p.spaced else p.text for p in fragment).strip()


def refs(fragment: Fragment) -> frozenset[tuple[int, int]]:
    """All stored columns the fragment speaks of."""
    return frozenset(p.ref for p in fragment if p.ref)


def put(fragment: Fragment, *, spaced: bool, offset: int) -> Fragment:
    """The fragment as it stands in the place of a name that was written at `offset`."""
    body = tuple(replace(p, offset=offset) for p in unbracketed(fragment))
    if len(body) == 1:
        return (replace(body[0], spaced=spaced),)
    opening, closing = Piece("(", spaced, offset), Piece(")", False, offset)
    return (opening, replace(body[0], spaced=False), *body[1:], closing)


def unbracketed(fragment: Fragment) -> Fragment:
    """The fragment without brackets around the whole of it.

    >>> sql(unbracketed((Piece("("), Piece("("), Piece("a"), Piece(")"), Piece(")"))))
    'a'
    """
    while (
        len(fragment) > 2
        and fragment[0].text == "("
        and _first_close(fragment) == len(fragment) - 1
    ):
        fragment = fragment[1:-1]
    return fragment


def _first_close(fragment: Fragment) -> int:
    depth = 0
    for i, piece in enumerate(fragment):
        depth += (piece.text == "(") - (piece.text == ")")
        if depth == 0:
            return i
    return -1


def canonical(fragment: Fragment) -> tuple[str, ...]:
    """Equal for fragments that differ in blanks and in the case of words only."""
    return tuple(p.text if p.text[-1] in "'\"`" else p.text.upper() for p in fragment)
