"""The clauses behind FROM, WHERE and GROUP BY, refused all at once.

Claim: whoever follows the hint is not told of the next clause behind the first. What only chooses
or orders rows of the result (HAVING, ORDER BY, LIMIT) can as well be written when the view is read,
unless it stands in a subquery, where it decides what the rest of the view sees.
"""

from __future__ import annotations

from steadyview.errors import ViewRefused
from steadyview.views.source_text import SourceText
from steadyview.views.words import SET_OPERATIONS, TRAILING, ends_expression

_WHEN_READ = frozenset({"HAVING", "ORDER_BY", "LIMIT"})
_SHOWN = {"LATERAL": "LATERAL VIEW"}


def refuse_trailing(source: SourceText, at: int, stop: int, *, inner: bool) -> ViewRefused:
    """The refusal of the clause at token `at` and of those behind it; `inner`: of a subquery."""
    words = trailing_words(source, at, stop)
    codes = [TRAILING[word] for word in words]
    fact = f"uses {joined([_SHOWN.get(word, word) for word in words])}"
    if not _WHEN_READ.issuperset(codes):
        return source.refuse_at(codes[0], at, fact)
    ordered = "ORDER_BY" in codes
    repeatable = "HAVING" in codes or ("LIMIT" in codes and ordered)
    instead = _for_subquery(codes) if inner else _for_view(source.view, words, codes)
    return source.refuse_at(
        codes[0], at, fact, instead=instead, recompute=repeatable or (inner and "LIMIT" in codes)
    )


def trailing_words(source: SourceText, at: int, stop: int) -> list[str]:
    """The words of the clauses from token `at` on, each once, up to the next SELECT."""
    found: list[str] = []
    while at < stop:
        word = source.word(at)
        if word in TRAILING and ends_expression(source, at):
            found.append(word)
            if word in SET_OPERATIONS:
                break
        at = source.partner.get(at, at) + 1
    return list(dict.fromkeys(found))


def _for_view(view: str, words: list[str], codes: list[str]) -> str:
    clauses = " ".join(f"{'WHERE' if word == 'HAVING' else word} ..." for word in words)
    reading = f'steadyview query "SELECT * FROM {view} {clauses}"'
    select = "select the aggregate, " if "HAVING" in codes else ""
    them = "them" if len(words) > 1 else "it"
    return f"{select}leave {joined(words)} out, and write {them} when you read the view: {reading}"


def _for_subquery(codes: list[str]) -> str:
    if "LIMIT" in codes:
        return "" if "ORDER_BY" in codes else "order the rows by a key before LIMIT"
    return "" if "HAVING" in codes else "leave it out: it means nothing in a subquery"


def joined(words: list[str]) -> str:
    """The words as a list in a sentence.

    >>> joined(["HAVING", "ORDER BY", "LIMIT"])
    'HAVING, ORDER BY and LIMIT'
    """
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
