"""How a view's text was read, written down for Spark to say whether it reads it so too."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from steadyview.views.dialect import bracketed
from steadyview.views.parse import ViewText
from steadyview.views.reading import read_query

_HINT = re.compile(r"/\*\+.*?\*/", re.DOTALL)


def readings(view: ViewText) -> Iterator[tuple[int, str, str]]:
    """(offset, the text, the text as we read it): the whole SELECT, then its lists' elements.

    The second has brackets around every operation. The two mean the same if Spark makes the same
    plan of both; of VALUES, whose cells a plan does not show, each cell counts by itself.
    """
    source = view.source()
    tree = read_query(source)
    text = _HINT.sub(lambda hint: " " * len(hint[0]), source.text)
    yield 0, text, bracketed(tree)
    for list_ in tree.find_all(exp.Select, exp.Tuple, exp.Values):
        for item in list_.expressions:
            start, stop = item.meta.get("span", (0, 0))
            if stop > start:
                yield start, f"SELECT {text[start:stop]}", f"SELECT {bracketed(item)}"
