"""Clauses of a query that are not maintained, refused at their places.

Claim: whoever follows the hint is not told of the next clause behind the first. What only orders or
chooses rows of the result can as well be written when the view is read, unless it stands in a
subquery, where it decides what the rest of the view sees.
"""

from __future__ import annotations

from sqlglot import exp

from steadyview.errors import ViewRefused
from steadyview.views.source_text import SourceText
from steadyview.views.trees import place

_CLAUSES = {
    "order": ("ORDER BY", "ORDER_BY"),
    "sort": ("SORT BY", "ORDER_BY"),
    "cluster": ("CLUSTER BY", "ORDER_BY"),
    "distribute": ("DISTRIBUTE BY", "ORDER_BY"),
    "limit": ("LIMIT", "LIMIT"),
    "offset": ("OFFSET", "LIMIT"),
    "windows": ("WINDOW", "WINDOW"),
    "qualify": ("QUALIFY", "WINDOW"),
    "laterals": ("LATERAL VIEW", "LATERAL_VIEW"),
}
_UNREAD = ("kind", "into", "match", "prewhere", "connect", "locks", "sample", "settings") + (
    ("format", "exclude", "operation_modifiers", "options", "for_")
)
_DISTINCT_ON = (
    "Spark has no DISTINCT ON: leave it out, and keep one row of each group when you read the view"
)
_NO_KEYS = "leave GROUP BY () out: aggregates without GROUP BY are over all rows"


def check_query(source: SourceText, query: exp.Expression) -> None:
    """ViewRefused for the first clause of the query itself that cannot be kept."""
    clause = query.args.get("with_")
    if clause is not None and clause.args.get("recursive"):
        at = source.text.upper().find("RECURSIVE", place(clause))
        raise source.refusal("RECURSIVE", at, "uses a recursive WITH")
    distinct = query.args.get("distinct")
    if isinstance(distinct, exp.Distinct) and distinct.args.get("on"):
        at = max(source.text.upper().find("DISTINCT", place(query)), place(query))
        raise source.refusal(
            "UNSUPPORTED_SYNTAX",
            at,
            "uses SELECT DISTINCT ON",
            instead=_DISTINCT_ON,
            recompute=False,
        )
    if query.args.get("by_name") or query.args.get("side") or query.args.get("on"):
        raise source.refusal(
            "SET_OPERATION", place(query), "combines queries by the names of columns"
        )
    _check_clauses(source, query)
    for key in _UNREAD:
        if query.args.get(key):
            raise source.refusal(
                "UNSUPPORTED_SYNTAX", place(query), "has a clause that is not read"
            )
    for join in query.find_all(exp.Join):
        _check_join(source, join)
    for table in _tables(query):
        check_table(source, table)
    _check_group(source, query.args.get("group"))


def _check_clauses(source: SourceText, query: exp.Expression) -> None:
    found = []
    for key, (word, code) in _CLAUSES.items():
        value = query.args.get(key)
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, exp.Expression):
                at = place(node)
                if key == "windows":
                    at = source.text.upper().rfind("WINDOW", 0, at)
                found.append((at, word, code))
    if found:
        raise _trailing(source, sorted(found), inner=_is_inner(query))


def _is_inner(query: exp.Expression) -> bool:
    node = query
    while isinstance(node.parent, (exp.Subquery, exp.Paren)) and not node.parent.args.get("alias"):
        node = node.parent
    return node.parent is not None


def _trailing(source: SourceText, found: list[tuple[int, str, str]], *, inner: bool) -> ViewRefused:
    words = list(dict.fromkeys(word for _, word, _ in found))
    codes = [code for _, _, code in found]
    fact = f"uses {listed(words)}"
    if not {"ORDER_BY", "LIMIT"}.issuperset(codes):
        first = next(f for f in found if f[2] not in ("ORDER_BY", "LIMIT"))
        return source.refusal(first[2], first[0], fact)
    ordered, limited = "ORDER_BY" in codes, "LIMIT" in codes
    instead = _for_subquery(ordered, limited) if inner else _for_view(source.view, words)
    recompute = limited and (ordered or inner)
    return source.refusal(codes[0], found[0][0], fact, instead=instead, recompute=recompute)


def _for_view(view: str, words: list[str]) -> str:
    reading = f'steadyview query "SELECT * FROM {view} {" ".join(f"{w} ..." for w in words)}"'
    them = "them" if len(words) > 1 else "it"
    return f"leave {listed(words)} out, and write {them} when you read the view: {reading}"


def _for_subquery(ordered: bool, limited: bool) -> str:
    if limited:
        return "" if ordered else "order the rows by a key before LIMIT"
    return "leave it out: it means nothing in a subquery"


def _tables(query: exp.Expression) -> list[exp.Expression]:
    clause = query.args.get("from_")
    found = [clause.this] if clause is not None else []
    found += [join.this for join in query.args.get("joins") or ()]
    for node in list(found):
        inner = node.this if isinstance(node, exp.Subquery) else None
        if isinstance(inner, (exp.Table, exp.Subquery)):
            found.append(inner)
        found += [j.this for j in (inner.args.get("joins") if inner is not None else None) or ()]
    return found


def _check_join(source: SourceText, join: exp.Join) -> None:
    method = join.method.upper()
    if method in ("NATURAL", "ASOF"):
        outer = bool(join.side)
        words = " ".join(filter(None, [method, join.side.upper(), "JOIN"]))
        raise source.refusal(
            f"{method}_JOIN",
            place(join),
            f"uses {words}",
            instead="" if outer else None,
            recompute=True if outer else None,
        )


def check_table(source: SourceText, node: exp.Expression) -> None:
    """ViewRefused for what stands behind a table's name."""
    sample = node.args.get("sample")
    if sample is not None:
        raise source.refusal("TABLESAMPLE", place(sample), "uses TABLESAMPLE")
    version = node.args.get("version") or node.args.get("when")
    if version is not None:
        raise source.refusal("TIME_TRAVEL", place(version), "reads a table as of another time")
    for pivot in node.args.get("pivots") or ():
        word = "UNPIVOT" if pivot.args.get("unpivot") else "PIVOT"
        raise source.refusal("PIVOT", place(pivot), f"uses {word}")
    for lateral in node.args.get("laterals") or ():
        raise source.refusal("LATERAL_VIEW", place(lateral), "uses LATERAL VIEW")


def _check_group(source: SourceText, group: exp.Expression | None) -> None:
    if group is None:
        return
    kinds = (exp.Cube, exp.Rollup, exp.GroupingSets)
    nodes = [n for n in group.walk() if isinstance(n, kinds)]
    if nodes:
        at = min(map(place, nodes))
        before = source.text[:at].rstrip()
        if before.upper().endswith("WITH"):
            at = len(before) - 4
        word = " ".join(source.text[at:].split()[:2]).partition("(")[0].strip()
        raise source.refusal("GROUPING_SETS", at, f"groups by {word.upper()}")
    for key in group.expressions:
        if isinstance(key, exp.Tuple) and not key.expressions:
            raise source.refusal(
                "GROUPING_SETS", place(key), "groups by ()", instead=_NO_KEYS, recompute=False
            )


def listed(words: list[str]) -> str:
    """The words as a list in a sentence.

    >>> listed(["SORT BY", "ORDER BY", "LIMIT"])
    'SORT BY, ORDER BY and LIMIT'
    """
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
