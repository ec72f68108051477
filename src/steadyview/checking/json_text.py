"""JSON in and out, exact: numbers with a fraction are decimals, and every complaint has a place.

A `JsonValue` is a value together with the path that leads to it
(`transactions[1].changes[0].row`), so that whoever takes a document apart never has to think of
error messages.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from typing import Any

from steadyview.checking.json_faults import first_fault
from steadyview.errors import ConfigError, DefiniteError

_PLAIN = re.compile(r"\w+")
_NAMES = {dict: "an object", list: "a list", str: "a text", int: "a whole number"}


@dataclass(frozen=True)
class JsonValue:
    """A value of a document, and where it stands; the whole document has no path."""

    value: Any
    path: str = ""

    def member(self, key: str) -> JsonValue:
        """The value under `key` of an object that must have it."""
        found = self.of(dict)
        if key not in found:
            raise self.wrong(f'the key "{key}" is missing')
        return self._under(key)

    def members(self) -> Iterator[tuple[str, JsonValue]]:
        """All keys of what must be an object, with their values."""
        return ((key, self._under(key)) for key in self.of(dict))

    def items(self) -> list[JsonValue]:
        """The items of what must be a list."""
        return [JsonValue(item, f"{self.path}[{i}]") for i, item in enumerate(self.of(list))]

    def of(self, kind: type) -> Any:
        """The value, which must be of this kind; true and false are no numbers."""
        if type(self.value) is not kind:
            raise self.wrong(f"expected {_NAMES[kind]}, found {shown(self.value)}")
        return self.value

    def wrong(self, why: str) -> ConfigError:
        """What to raise when the value cannot be accepted."""
        place = f"at {self.path}" if self.path else "as a whole"
        return ConfigError(f"the history is malformed {place}", detail=why)

    def _under(self, key: str) -> JsonValue:
        step = key if _PLAIN.fullmatch(key) else f"[{json.dumps(key, ensure_ascii=False)}]"
        joint = "." if self.path and not step.startswith("[") else ""
        return JsonValue(self.value[key], f"{self.path}{joint}{step}")


def parsed(text: str) -> JsonValue:
    """The document; ConfigError with line and column if it is none.

    >>> parsed('{"a": [1.50]}').member("a").items()[0]
    JsonValue(value=Decimal('1.50'), path='a[0]')
    """
    try:
        return JsonValue(_loaded(text))
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise ConfigError(f"the history is no JSON at {place}", detail=error.msg) from None


def written(value: Any) -> str:
    """The value as JSON on one line; decimals with all their digits, doubles with enough.

    >>> written({"row": [Decimal("1.50"), None, True, "x"]})
    '{"row": [1.50, null, true, "x"]}'
    """
    if isinstance(value, Mapping):
        pairs = [f"{json.dumps(key, ensure_ascii=False)}: {written(v)}" for key, v in value.items()]
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return "[" + ", ".join(map(written, value)) + "]"
    if type(value) is Decimal and value.is_finite():
        return format(value, "f")
    if type(value) in (float, Fraction) and isfinite(value):
        return repr(float(value))
    if value is None or type(value) in (int, bool, str):
        return json.dumps(value, ensure_ascii=False)
    raise DefiniteError(
        f"a history cannot hold {value!r}",
        detail="values are whole numbers, decimals, texts, truths and NULL",
    )


def shown(value: Any) -> str:
    """The value for an error message, cut where it is long."""
    text = written(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _loaded(text: str) -> Any:
    """The value; JSONDecodeError if there is none, also for what the reader gives no place for."""
    try:
        # NaN and Infinity are no int: a ValueError like the others
        return json.loads(text, parse_float=Decimal, parse_constant=int, object_pairs_hook=_once)
    except json.JSONDecodeError:
        raise
    except RecursionError:
        raise first_fault(text, too_deep=True) from None
    except (ValueError, ArithmeticError):
        raise first_fault(text) from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is given twice")
    return found
