"""Other texts in the place of names: an expression of a block is plain SQL over unique names."""

from __future__ import annotations

import re
from collections.abc import Mapping

_WORD = re.compile(r"'(?:[^'\\]|\\.)*'|`[^`]*`|(?<![.\w])[A-Za-z_]\w*")


def renamed(sql: str, names: Mapping[str, str]) -> str:
    """An expression with other texts in the place of some names.

    >>> renamed("s0 * 10 / _rows || 's0' || t.s0", {"s0": "x1", "_rows": "x0"})
    "x1 * 10 / x0 || 's0' || t.s0"
    """
    return _WORD.sub(lambda found: names.get(found[0], found[0]), sql)
