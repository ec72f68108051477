"""Sizes of files as people write them."""

from __future__ import annotations

import re

_UNITS = ("B", "kB", "MB", "GB", "TB")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(B|kB|MB|GB|TB)", re.IGNORECASE)


def bytes_said(size: int) -> str:
    """A size as a person says it.

    >>> bytes_said(512), bytes_said(2_048_000)
    ('512 B', '2.0 MB')
    """
    value, units = float(size), list(_UNITS)
    while value >= 1000 and len(units) > 1:
        value, units = value / 1000, units[1:]
    return f"{size} B" if units[0] == "B" else f"{value:.1f} {units[0]}"


def parse_size(text: str) -> int:
    """So many bytes; ValueError for what is no size.

    >>> parse_size("20 GB"), parse_size("1.5 kB")
    (20000000000, 1500)
    """
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise ValueError(text)
    power = [unit.lower() for unit in _UNITS].index(found[2].lower())
    return int(float(found[1]) * 1000**power)
