"""The types of a node, as Spark gives them to its own statement over inputs without rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from steadyview.changes import arrow_type
from steadyview.engine.analysis import type_name
from steadyview.engine.failures import reason
from steadyview.engine.guard import guarded
from steadyview.errors import QueryRefused, ViewRefused
from steadyview.plans.aggregates import ArgumentTypes, Grouped, GroupedTypes, exact
from steadyview.plans.dialect import Spark
from steadyview.plans.draft import Draft
from steadyview.plans.extremes import extremes, values_of
from steadyview.plans.node import Node
from steadyview.plans.operator import Operator, Rendering
from steadyview.plans.plan import FromNode, Origin, PlanNode, hidden_name
from steadyview.views.reasons import BY_CODE

InputTypes = Mapping[int, str]
"""The types of an input's columns that are read, by number."""


def typed(
    spark: SparkSession,
    view: str,
    draft: Draft,
    origins: Sequence[Origin],
    types: Sequence[InputTypes],
) -> list[PlanNode]:
    """The draft with its types; ViewRefused with TYPE_ERROR, FLOAT_SUM or UNSUPPORTED_TYPE.

    One node, or several where extremes are wanted: the last reads the others, under their digests.
    """
    asking = _Asking(spark, view, {n: _empty(t) for n, t in enumerate(types)})
    node = Node(draft.block)
    if draft.grouped is None:
        return [asking.made(node, origins, draft.says)]
    grouped = asking.grouped(draft.block, draft.grouped)
    role, words = draft.grouped.role, draft.grouped.words(grouped)
    if not draft.grouped.extremes:
        node = Node(draft.block, draft.grouped.fold(grouped))
        return [replace(asking.made(node, origins, draft.says), role=role, words=words)]
    values = asking.types_of(draft.block, values_of(draft.grouped))
    found = extremes(draft.grouped, grouped, values, Spark())
    below = [
        replace(asking.made(Node(draft.block, fold), origins, f"values of {draft.says}"), role=role)
        for fold in found.folds
    ]
    if found.totals is not None:
        totals = f"totals of {draft.says}"
        below[0] = replace(below[0], role="totals", words=words, says=totals)
    read = [below[place] for place in found.reads]
    above = _Asking(spark, view, {n: _empty(_read(node)) for n, node in enumerate(read)})
    outer = above.made(Node(found.block), [_origin(node) for node in read], draft.says)
    shown = {a.name for a in draft.grouped.aggregates}
    return [*below, replace(outer, words=tuple(w for w in words if w[0] in shown))]


def _read(node: PlanNode) -> dict[int, str]:
    """The types of all columns that a node shows, by number."""
    return dict(enumerate(type_ for _, type_ in node.columns))


def _origin(node: PlanNode) -> FromNode:
    return FromNode(hidden_name(node), node.digest, tuple(_read(node).items()))


class _Asking:
    """Asks Spark about one node."""

    def __init__(self, spark: SparkSession, view: str, inputs: Mapping[int, str]) -> None:
        self._spark = spark
        self._view = view
        self._inputs = inputs

    def made(self, node: Node, origins: Sequence[Origin], says: str) -> PlanNode:
        """The node with the types of what it shows."""
        return PlanNode(node, tuple(origins), tuple(self.shown(node).items()), says)

    def shown(self, node: Node) -> dict[str, str]:
        """The columns that the node shows."""
        beginning = node.fold is not None
        sql = node.statement(Rendering(Spark(), self._inputs), beginning=beginning)
        found = self._schema(sql)
        prefix = "_new_" if node.fold is not None else ""
        shown = {name: found[prefix + name] for name in node.shown}
        self._check_stored(shown)
        return shown

    def grouped(self, block: Operator, grouped: Grouped) -> GroupedTypes:
        """Of keys and of summed arguments."""
        keys = self.types_of(block, [sql for _, sql in grouped.keys])
        named = zip(grouped.keys, keys, strict=True)
        self._check_stored({f"group key {name}": type_ for (name, _), type_ in named})
        arguments = self.types_of(block, list(grouped.arguments))
        for type_ in arguments:
            self._check_summed(type_)
        sums = self.types_of(block, [f"SUM({x})" for x in grouped.arguments])
        averages = self.types_of(block, [f"AVG({x})" for x in grouped.arguments])
        types = zip(arguments, sums, averages, strict=True)
        return GroupedTypes(tuple(keys), tuple(ArgumentTypes(*t) for t in types))

    def types_of(self, block: Operator, expressions: Sequence[str]) -> list[str]:
        """Of expressions over the block's columns."""
        if not expressions:
            return []
        rendering = Rendering(Spark(), self._inputs)
        rows = rendering.part(block.versions(rendering))
        listed = ", ".join(f"{sql} AS x{i}" for i, sql in enumerate(expressions))
        return list(self._schema(rendering.statement(f"SELECT {listed} FROM {rows}")).values())

    def _schema(self, sql: str) -> dict[str, str]:
        try:
            found = guarded(self._spark, sql, ()).schema.fields
        except QueryRefused as error:
            raise ViewRefused("OUTWARD", error.message, detail=error.detail) from error
        except PySparkException as error:
            raise ViewRefused(
                "TYPE_ERROR",
                f'Spark rejects an expression of view "{self._view}"',
                detail=reason(error),
                hint=BY_CODE["TYPE_ERROR"].hint,
            ) from error
        return {f.name: type_name(f.dataType) for f in found}

    def _check_summed(self, type_: str) -> None:
        if exact(type_) is not None:
            return
        if type_ in ("FLOAT", "DOUBLE"):
            fact = f'view "{self._view}" sums a {type_}, which cannot be kept exactly'
            raise ViewRefused("FLOAT_SUM", fact, hint=BY_CODE["FLOAT_SUM"].hint)
        hint = "cast the argument to a number"
        raise ViewRefused("TYPE_ERROR", f'view "{self._view}" sums a {type_}', hint=hint)

    def _check_stored(self, columns: Mapping[str, str]) -> None:
        for name, type_ in columns.items():
            try:
                arrow_type(type_)
            except KeyError:
                fact = f'view "{self._view}" has a column "{name}" of type {type_}'
                hint = "cast it to a type of docs/types.md, such as STRING: to_json(x)"
                raise ViewRefused("UNSUPPORTED_TYPE", fact, hint=hint) from None


def _empty(types: InputTypes) -> str:
    """An input without rows: its columns, and what makes them versions."""
    columns = [f"CAST(NULL AS {type_}) AS c{i}" for i, type_ in types.items()]
    listed = ", ".join([*columns, "1L AS _n", "0L AS _from", "1L AS _to"])
    return f"(SELECT {listed} WHERE FALSE)"
