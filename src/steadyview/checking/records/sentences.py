"""A finding about one view record as a sentence that a person can check against the history."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from steadyview.checking.records.history import Shown


def sentence(
    key: Hashable, values: Sequence[Shown], level: str, at: int | None, missing: Shown
) -> str:
    """What holds, and what keeps the record from more.

    >>> sentence("x", [(1,), (3,)], "convergent", 0, None)
    'record x is convergent: it showed 1, which no base state gives (value 1 of 2)'
    """
    if level == "complete":
        return f"record {key} is complete: it showed the value of every base state, in order"
    if level == "strong":
        more = f"; it never showed {said(missing)}" if missing is not None else ""
        return f"record {key} is strong: one order of base states explains all it showed{more}"
    assert at is not None
    shown, place = said(values[at]), f"(value {at + 1} of {len(values)})"
    if level == "none":
        return f"record {key} is not convergent: the last base state does not give {shown}, its end"
    if level == "convergent":
        return f"record {key} is convergent: it showed {shown}, which no base state gives {place}"
    before = ", ".join(map(said, values[:at]))
    return (
        f"record {key} is weak: it showed {shown} after {before}, and no base state that gives "
        f"{shown} is behind those that explain the values before {place}"
    )


def said(value: Shown) -> str:
    """A value in words.

    >>> said(None), said(()), said((5,)), said((1, None))
    ('absent', 'present', '5', '(1, NULL)')
    """
    if value is None:
        return "absent"
    if not value:
        return "present"
    words = ["NULL" if part is None else str(part) for part in value]
    return words[0] if len(words) == 1 else f"({', '.join(words)})"
