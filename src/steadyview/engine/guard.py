"""A query reads the relations it was given, and nothing else.

Claim: a text that passes is one query (or EXPLAIN of one, or DESCRIBE of a relation) over relations
that the caller names; it opens no file or address, changes nothing, and learns nothing of the
machine. Judged are Spark's own plans, part by part, against lists of what is allowed: kinds of plan
nodes, expressions, functions. What is on no list is refused, whatever future versions of Spark make
of it.

Two verdicts. `read` judges the parsed plan, before anything is looked up: naming ``text.`/etc/x` ``
or calling a function in VALUES would open and run things while Spark analyses. `Statement.frame`
judges the analysed plan: a bare `current_user` looks like a column until then. What is computed
afterwards is the judged plan itself, not the text read once more.

Not promised: that an allowed query is cheap; callers set limits of rows and time.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, regexp_replace

from steadyview.engine.plan_tree import SparkNode, frame_of, functions, parse, tree
from steadyview.errors import QueryRefused
from steadyview.views.functions import QUERY, SESSION_WORDS

_SPARK = "org.apache.spark.sql."


def _of(package: str, names: str) -> frozenset[str]:
    return frozenset(f"{_SPARK}{package}.{name}" for name in names.split())


_RELATIONS = _of(
    "catalyst.plans.logical",
    """Aggregate CTERelationDef CTERelationRef Distinct Except Expand Filter Generate GlobalLimit
    Intersect Join LateralJoin LimitAll LocalLimit LocalRelation Offset OneRowRelation Pivot Project
    RebalancePartitions Repartition RepartitionByExpression ResolvedHint Sample Sort SubqueryAlias
    Union UnionLoop UnionLoopRef Unpivot UnresolvedHint UnresolvedWith View Window WithCTE
    WithWindowDefinition""",
)
_UNRESOLVED = _of(
    "catalyst.analysis",
    """MultiAlias ResolvedInlineTable UnresolvedAlias UnresolvedAttribute UnresolvedExtractValue
    UnresolvedFunction UnresolvedGenerator UnresolvedHaving UnresolvedInlineTable UnresolvedOrdinal
    UnresolvedQualify UnresolvedRelation UnresolvedStar UnresolvedStarExceptOrReplace
    UnresolvedSubqueryColumnAliases UnresolvedTVFAliases UnresolvedTableValuedFunction""",
)
_EXPRESSIONS = _of(
    "catalyst.expressions",
    # what SQL's own syntax becomes
    """Alias AttributeReference Cast Collate CommonExpressionDef CommonExpressionRef Cube
    CurrentRow$ Exists GetArrayItem GetArrayStructFields GetMapValue GetStructField GroupingSets
    InSubquery LambdaFunction LateralSubquery LikeAll LikeAny ListQuery Literal
    NamedArgumentExpression NamedLambdaVariable NotLikeAll NotLikeAny OuterReference
    PipeExpression PipeOperator
    ResolvedCollation Rollup ScalarSubquery SemiStructuredExtract SortOrder SpecifiedWindowFrame
    TimestampAdd TimestampDiff UnboundedFollowing$ UnboundedPreceding$ UnresolvedCollation
    UnresolvedNamedLambdaVariable UnresolvedWindowExpression UnspecifiedFrame$ WindowExpression
    WindowSpecDefinition With"""
    # what allowed functions and operators become
    """ BinaryPad BinaryPredicate Ceil Contains DateAddInterval DateAddYMInterval DatetimeSub
    DivideDTInterval DivideInterval DivideYMInterval EndsWith Explode ExtractANSIIntervalDays
    ExtractANSIIntervalHours ExtractANSIIntervalMinutes ExtractANSIIntervalMonths
    ExtractANSIIntervalSeconds ExtractANSIIntervalYears Floor Hour Inline KnownNotNull
    KnownNullable MakeTimestamp MakeTimestampFromDateTime MakeTimestampNTZ Mask Minute
    MultiplyDTInterval MultiplyInterval MultiplyYMInterval PosExplode PreciseTimestampConversion
    RaiseError RoundCeil RoundFloor Second SecondWithFraction StartsWith StringDecode StringLPad
    StringRPad SubtractDates SubtractTimestamps TimeBucket TimestampAddInterval
    TimestampAddYMInterval ToCharacter TryEval TryMakeTimestamp TryMakeTimestampFromDateTime
    TupleUnionDouble TupleUnionInteger TupleUnionThetaDouble TupleUnionThetaInteger
    TypedNullLiteral variant.ParseJson variant.VariantExplode variant.VariantGet"""
    """ aggregate.AggregateExpression aggregate.CountMinSketchAgg aggregate.MaxBy
    aggregate.MaxMinByK aggregate.MinBy aggregate.Mode aggregate.PercentileCont
    aggregate.PercentileDisc aggregate.PivotFirst aggregate.TupleSketchAggDouble
    aggregate.TupleSketchAggInteger aggregate.TupleUnionAggDouble aggregate.TupleUnionAggInteger""",
)
_ALLOWED = _RELATIONS | _UNRESOLVED | _EXPRESSIONS
_CALLS = _of(
    "catalyst.analysis", "UnresolvedFunction UnresolvedGenerator UnresolvedTableValuedFunction"
)
_DESCRIBE = _of("catalyst.plans.logical", "DescribeColumn DescribeRelation")
_EXPLAIN = f"{_SPARK}execution.command.ExplainCommand"
_ELSEWHERE = (
    "use SQL's own functions; what they cannot do, do with the rows of the answer "
    "(--format csv or json; from Python: steadyview.open(...).query(...))"
)
_PLACES = (
    (r"(?m)(Location:? )[^\n]*?(?=, PartitionFilters|, ReadSchema|\n|$)", "$1(files)"),
    (r"\b[a-z0-9]+:/[^\s,\]\)]*", "(file)"),
)
"""What EXPLAIN tells of files, and what stands there instead."""
_HINT = "write one SELECT (or WITH, VALUES, EXPLAIN, DESCRIBE) over the project's views"


@dataclass(frozen=True)
class Statement:
    """A query whose parsed plan was allowed. `relations`: the names it reads, as written.

    `tables`: those of several parts, which no frame can be made over; see `check_views_only`.
    """

    spark: SparkSession
    plan: Any
    relations: frozenset[str]
    _kind: str
    tables: frozenset[tuple[str, ...]] = frozenset()

    def check_views_only(self) -> None:
        """QueryRefused for a name of several parts."""
        for name in sorted(self.tables):
            raise _no_view(name)

    @property
    def plain(self) -> bool:
        """Whether it is the query itself, no EXPLAIN of one."""
        return self._kind != _EXPLAIN

    def frame(self, allowed: Collection[str]) -> DataFrame:
        """Its rows; QueryRefused if the analysed plan reads anything but the allowed relations."""
        if self._kind in _DESCRIBE:
            return frame_of(self.spark, self.plan)
        query = self.plan.logicalPlan() if self._kind == _EXPLAIN else self.plan
        found = frame_of(self.spark, query)
        judge = _Judge(self.spark, allowed)
        judge.judge(_tree(self.spark, found._jdf.queryExecution().analyzed()))
        return _without_places(frame_of(self.spark, self.plan)) if self._kind == _EXPLAIN else found


def read(spark: SparkSession, sql: str) -> Statement:
    """The text as one statement that may be run, once its relations are known to be allowed.

    QueryRefused if it may not; Spark's own error if it is no SQL. Nothing is looked up or opened.
    """
    plan = parse(spark, sql)
    found = _tree(spark, plan)
    judge = _Judge(spark)
    if found.kind in _DESCRIBE:
        judge.described(found)
    elif found.kind == _EXPLAIN:
        judge.query(found.parts[0], sql)
    else:
        judge.query(found, sql)
    relations, tables = frozenset(judge.relations), frozenset(judge.tables)
    return Statement(spark, plan, relations, found.kind, tables)


def guarded(spark: SparkSession, sql: str, relations: Collection[str]) -> DataFrame:
    """The rows of a query that reads at most these temporary views of the session."""
    statement = read(spark, sql)
    statement.check_views_only()
    known = {name.lower() for name in relations}
    for name in sorted(statement.relations):
        if name.lower() not in known:
            raise QueryRefused(f'there is no relation "{name}" to read')
    return statement.frame(relations)


class _Judge:
    """Walks a plan; `relations` are the names read that are no WITH query of their place.

    `tables`: names of several parts, such as `source.table`.
    """

    def __init__(self, spark: SparkSession, views: Collection[str] = ()) -> None:
        self.relations: set[str] = set()
        self.tables: set[tuple[str, ...]] = set()
        self._views = {view.lower() for view in views}
        self._functions = functions(spark)
        self._classes = _ALLOWED | {c for f, c in self._functions.items() if f in QUERY}

    def query(self, found: SparkNode, sql: str) -> None:
        """Judge a whole query; what is no query at all is named by its first word."""
        if found.kind not in self._classes:
            raise QueryRefused(
                "only queries over views are allowed",
                detail=f"this is {_first_word(sql)} ({found.name})",
                hint=_HINT,
            )
        self.judge(found)

    def described(self, found: SparkNode) -> None:
        """Judge DESCRIBE: the relation alone; a partition would be no relation of ours."""
        relation = found.parts[0]
        if not isinstance(relation, SparkNode) or relation.name != "UnresolvedTableOrView":
            raise _refused("DESCRIBE of anything but a view", found)
        if len(relation.parts[0]) != 1:
            raise _no_view(relation.parts[0])
        self._relation(relation.parts[0], frozenset())

    def judge(self, found: SparkNode) -> None:
        """Judge every part of a plan."""
        waiting: list[tuple[Any, frozenset[str]]] = [(found, frozenset())]
        while waiting:
            part, scope = waiting.pop()
            if isinstance(part, list):
                waiting.extend((inner, scope) for inner in part)
            elif isinstance(part, SparkNode):
                waiting.extend(self._node(part, scope))

    def _node(self, node: SparkNode, scope: frozenset[str]) -> Iterator[tuple[Any, frozenset[str]]]:
        """Judge one node; the parts still to be judged, each with the WITH queries it can see."""
        if node.kind in _CALLS:
            self._call(node)
        elif node.tree and node.kind not in self._classes:
            raise self._foreign(node)
        if node.name == "UnresolvedRelation":
            self._read(node, scope)
        elif node.name == "View":
            self._view(node)
        elif node.name == "UnresolvedWith":
            yield from _with(node, scope)
            return
        yield from ((part, scope) for part in node.parts)

    def _read(self, node: SparkNode, scope: frozenset[str]) -> None:
        name, options, streaming = node.parts
        if options or streaming:
            raise _refused("options or streaming of a relation", node)
        self._relation(name, scope)

    def _relation(self, name: list[str], scope: frozenset[str]) -> None:
        if len(name) != 1:
            self.tables.add(tuple(name))
        elif name[0].lower() not in scope:
            self.relations.add(name[0])

    def _view(self, node: SparkNode) -> None:
        name, temporary = node.parts
        if not temporary or name.lower() not in self._views:
            raise _refused(f'the relation "{name}"', node)

    def _call(self, node: SparkNode) -> None:
        name = _function(node.parts[0])
        if name in QUERY and name in self._functions:
            return
        if name in self._functions:
            raise QueryRefused(
                f'the function "{name}" is not allowed in a query',
                detail="it can reach beyond the views: files, the machine, or the session",
                hint=_instead(name),
            )
        close = difflib.get_close_matches(name, QUERY & self._functions.keys(), n=1)
        raise QueryRefused(
            f'there is no function "{name}"',
            detail="Spark's own functions can be used, by their plain names",
            hint=f'did you mean "{close[0]}"?' if close else _ELSEWHERE,
        )

    def _foreign(self, node: SparkNode) -> QueryRefused:
        names = sorted(f'"{name}"' for name, kind in self._functions.items() if kind == node.kind)
        return _refused(" or ".join(names) or _words(node.name), node)


def _no_view(name: Sequence[str]) -> QueryRefused:
    return QueryRefused(
        f'"{".".join(name)}" is not a view',
        detail="a view is named by one word; files, tables and other catalogs are not read",
        hint=_HINT,
    )


def _instead(name: str) -> str:
    """What to write in place of a function that is not allowed.

    >>> _instead("current_user")
    'write the value itself, as a text or a number'
    """
    if name in (*SESSION_WORDS, "current_path", "version"):
        return "write the value itself, as a text or a number"
    if "xml" in name or name.startswith("xpath"):
        return "take the text apart where the answer is read, or keep it as JSON (from_json)"
    return _ELSEWHERE


def _with(node: SparkNode, scope: frozenset[str]) -> Iterator[tuple[Any, frozenset[str]]]:
    """A WITH query sees those before it, and itself if recursive; the main query sees all."""
    main, queries, recursive = node.parts
    for name, query, *_ in queries:
        inner = scope | {name.lower()}
        yield query, inner if recursive else scope
        scope = inner
    yield main, scope


def _without_places(explained: DataFrame) -> DataFrame:
    """EXPLAIN's text, in whichever form, without the files' places on this machine."""
    (text,) = explained.columns
    shown = col(text)
    for pattern, instead in _PLACES:
        shown = regexp_replace(shown, pattern, instead)
    return explained.select(shown.alias(text))


def _tree(spark: SparkSession, plan: Any) -> Any:
    try:
        return tree(spark, plan)
    except RecursionError:
        raise QueryRefused("the query is nested too deeply", hint="split it") from None


def _function(name: Any) -> str:
    """The name of a call, lower case, all its parts (a generator's comes as an identifier)."""
    parts = name.parts[:1] if isinstance(name, SparkNode) else name
    return ".".join(parts).lower()


def _refused(what: str, node: SparkNode) -> QueryRefused:
    return QueryRefused(
        f"a query cannot use {what}", detail=f"Spark reads it as {node.name}", hint=_HINT
    )


def _words(name: str) -> str:
    """A class's name as words.

    >>> _words("RelationTimeTravel")
    'relation time travel'
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name.strip("$")).lower()


def _first_word(sql: str) -> str:
    """What the text starts with, in upper case.

    >>> _first_word("/* x */ insert into t")
    'INSERT'
    """
    text = re.sub(r"/\*.*?\*/|--[^\n]*", " ", sql, flags=re.S)
    found = re.search(r"\w+", text)
    return found[0].upper() if found else "nothing"
