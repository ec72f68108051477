"""A condition as its AND-ed parts.

Only an AND that surely joins two conditions is cut: outside brackets and CASE, not that of BETWEEN,
and with no OR beside it. Cutting less is always right, cutting more never.
"""

from __future__ import annotations

from steadyview.views.source_text import SourceText, Span


def conjuncts(source: SourceText, span: Span) -> list[Span]:
    """The parts of the condition in `span`, left to right; brackets around parts are opened.

    >>> text = SourceText("(a = 1 AND b BETWEEN 2 AND 3) AND c", view="v")
    >>> [text.slice(part) for part in conjuncts(text, Span(0, 13))]
    ['a = 1', 'b BETWEEN 2 AND 3', 'c']
    """
    if source.partner.get(span.start) == span.stop - 1:
        return (
            conjuncts(source, Span(span.start + 1, span.stop - 1))
            if span.stop - span.start > 2
            else [span]
        )
    cuts = _cuts(source, span)
    if not cuts:
        return [span]
    bounds = [span.start - 1, *cuts, span.stop]
    parts = [Span(a + 1, b) for a, b in zip(bounds, bounds[1:], strict=False)]
    return [c for part in parts for c in conjuncts(source, part)]


def _cuts(source: SourceText, span: Span) -> list[int]:
    cuts: list[int] = []
    cases = betweens = 0
    at = span.start
    while at < span.stop:
        word = source.word(at) if source.word(at - 1) != "." else ""
        cases += (word == "CASE") - (word == "END" and cases > 0)
        if cases == 0:
            if word in {"OR", "->"}:
                return []
            betweens += word == "BETWEEN"
            if word == "AND":
                cuts += [] if betweens else [at]
                betweens -= betweens > 0
        at = source.partner.get(at, at) + 1
    return cuts
