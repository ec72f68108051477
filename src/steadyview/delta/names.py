"""File names for names of any kind."""

from __future__ import annotations

import hashlib
import re

_PLAIN = re.compile(r"[a-z0-9_]{1,40}")


def slug(name: str) -> str:
    """A safe file name that differs for different names, also where case does not count.

    Plain names stay as they are; others keep what is readable and get a hash.

    >>> slug("orders")
    'orders'
    >>> slug("log:sales")
    'log-sales-0842400b'
    """
    if _PLAIN.fullmatch(name):
        return name
    readable = re.sub(r"[^A-Za-z0-9_]+", "-", name).strip("-").lower()[:40]
    # The dash keeps these apart from plain names.
    return f"{readable or 'x'}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
