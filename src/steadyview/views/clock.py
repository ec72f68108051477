"""Texts that Spark may read as the time of day: 'now', 'today' and the like."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlglot import exp

from steadyview.views.dialect import written
from steadyview.views.source_text import SourceText
from steadyview.views.trees import names, place

_TEXT = re.compile(r".*?['\"]\s*(now|today|tomorrow|yesterday)\b.*", re.IGNORECASE | re.DOTALL)
_TIME = re.compile(r".*(date|time)|.*\bg\d|.*\ba\d", re.IGNORECASE | re.DOTALL)


def check_clock(source: SourceText, bound: exp.Expression, types: Mapping[str, str]) -> None:
    """SESSION_FUNCTION where such a text stands beside something that is a date or time."""
    texts = clock_texts(bound)
    if not texts:
        return
    known = [types.get(name, "time") for name in names(bound)]
    without = written(bound.transform(_dulled))
    if any(
        _TIME.match(text)
        for text in (*known, without, *(str(t.this) for t in texts if not _bare(t)))
    ):
        text = str(texts[0].this)
        quote = min(text.find(q) for q in "'\"" if q in text)
        fact = f"uses {text[quote:]}, which depends on the clock"
        raise source.refusal("SESSION_FUNCTION", place(texts[0]) + quote, fact)


def clock_texts(node: exp.Expression) -> list[exp.Literal]:
    """The texts in it that Spark reads so where a date or time is wanted."""
    texts = (n for n in node.find_all(exp.Literal) if n.is_string)
    return [n for n in texts if _TEXT.fullmatch(str(n.this))]


def _bare(literal: exp.Literal) -> bool:
    return str(literal.this)[0] in "'\""


def _dulled(node: exp.Expression) -> exp.Expression:
    """Without names and texts."""
    if isinstance(node, exp.Column):
        return exp.Null()
    return exp.Null() if isinstance(node, exp.Literal) else node
