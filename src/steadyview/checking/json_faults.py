"""Where a JSON text breaks a rule that Python's reader enforces without saying where.

The reader refuses some texts that follow the grammar, and names no place: NaN and its like, a key
that an object has twice, a number out of all bounds, lists in lists without end. It stops at the
first of these, or soon behind it, so that everything before follows the grammar, and a list of
words is enough to find it.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal

_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|[][{}:]|NaN|-?Infinity|-?\d[\d.eE+-]*')
_DEEPEST = 100
"""Far less than what the reader gives up at, far more than a history needs."""


def first_fault(text: str, *, too_deep: bool = False) -> json.JSONDecodeError:
    """What is wrong with a text that the reader refused so, and where.

    `too_deep`: the reader gave up on its depth.

    >>> str(first_fault('{"a": 1, "a": 2}'))
    'the key "a" is given twice in one object: line 1 column 10 (char 9)'
    """
    keys: list[set[str]] = []
    last, last_at = "", 0
    for found in _WORD.finditer(text):
        word, at = found.group(), found.start()
        if word in "[{":
            keys.append(set())
            if too_deep and len(keys) > _DEEPEST:
                return json.JSONDecodeError("nested too deeply", text, at)
        elif word in "]}":
            keys.pop()
        elif word == ":":
            if last in keys[-1]:
                why = f'the key "{last}" is given twice in one object'
                return json.JSONDecodeError(why, text, last_at)
            keys[-1].add(last)
        elif word.startswith('"'):
            last, last_at = json.loads(word), at
        elif not _is_number(word):
            return json.JSONDecodeError(f"{_cut(word)} is no number to keep", text, at)
    raise AssertionError("the text was refused, and nothing is wrong with it")


def _is_number(word: str) -> bool:
    """Whether it is one that can be kept: whole ones have a largest size, and so have exponents."""
    try:
        Decimal(word) if {".", "e", "E"} & set(word) else int(word)
    except (ValueError, ArithmeticError):
        return False
    return True


def _cut(word: str) -> str:
    return word if len(word) <= 60 else f"{word[:57]}..."
