"""What Spark says about a view's types, asked of Spark itself over empty relations."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import DataType, DecimalType

from steadyview.changes import arrow_type
from steadyview.engine.failures import reason as reason
from steadyview.engine.guard import guarded
from steadyview.errors import QueryRefused, ViewRefused
from steadyview.views.definition import Definition, Grouping, Occurrence, Types
from steadyview.views.reasons import BY_CODE

_INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")


def typed(spark: SparkSession, definition: Definition) -> Types:
    """The view's types; ViewRefused with TYPE_ERROR, FLOAT_SUM or UNSUPPORTED_TYPE."""
    _schema(spark, _select(definition, ["1"]))
    if definition.grouping is None:
        found = _schema(spark, _select(definition, [o.sql for o in definition.outputs]))
        return Types(_outputs(definition, found))
    return _grouped(spark, definition, definition.grouping)


def _grouped(spark: SparkSession, definition: Definition, grouping: Grouping) -> Types:
    keys = _schema(spark, _select(definition, list(grouping.keys)))
    arguments = _schema(spark, _select(definition, [a.sql for a in grouping.arguments]))
    states = tuple(
        _state(definition, a.sql, t) if a.summed else None
        for a, t in zip(grouping.arguments, arguments, strict=True)
    )
    sums = _aggregates(spark, definition, grouping, "SUM")
    averages = _aggregates(spark, definition, grouping, "AVG")
    types = Types((), tuple(keys), sums, averages, states)
    outputs = _schema(spark, _visible(definition, types))
    _outputs(definition, keys, names=[f"group key {k}" for k in grouping.keys])
    return Types(_outputs(definition, outputs), tuple(keys), sums, averages, states)


def output_types(
    spark: SparkSession, view: str, sql: str, empty: Mapping[str, Sequence[tuple[str, str]]]
) -> tuple[tuple[str, str], ...]:
    """Names and types of a query's columns over empty relations.

    ViewRefused if Spark rejects the query, or where its columns cannot be stored.
    `empty`: the names by which the query reads them, each with its columns and their types.
    """
    for name, columns in empty.items():
        nulls = ", ".join(f"CAST(NULL AS {t}) AS `{c.replace('`', '``')}`" for c, t in columns)
        spark.sql(f"SELECT {nulls} WHERE FALSE").createOrReplaceTempView(name)
    try:
        fields = guarded(spark, sql, empty).schema.fields
    except QueryRefused as error:
        fact = f'view "{view}" does more than read its tables: {error.message}'
        hint = BY_CODE["OUTWARD"].hint
        raise ViewRefused("OUTWARD", fact, detail=error.detail, hint=hint) from error
    except PySparkException as error:
        fact = f'Spark rejects view "{view}"'
        hint = "correct the SQL as Spark says"
        raise ViewRefused("TYPE_ERROR", fact, detail=reason(error), hint=hint) from error
    finally:
        for name in empty:
            spark.catalog.dropTempView(name)
    names = [f.name for f in fields]
    twice = next((n for n, c in Counter(map(str.lower, names)).items() if c > 1), None)
    if twice is not None:
        fact = f'view "{view}" has two columns called "{twice}"'
        raise ViewRefused("DUPLICATE_NAME", fact, hint=BY_CODE["DUPLICATE_NAME"].hint)
    return _stored(view, names, [type_name(f.dataType) for f in fields])


def _aggregates(
    spark: SparkSession, definition: Definition, grouping: Grouping, function: str
) -> tuple[str | None, ...]:
    calls = [f"{function}({a.sql})" for a in grouping.arguments if a.summed]
    found = iter(_schema(spark, _select(definition, calls)))
    return tuple(next(found) if a.summed else None for a in grouping.arguments)


def _state(definition: Definition, sql: str, type_: str) -> str:
    """The type that keeps a running sum of the argument exactly."""
    if type_ in _INTEGERS:
        return "DECIMAL(38,0)"
    decimal = re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", type_)
    if decimal:
        return f"DECIMAL(38,{decimal[2]})"
    if type_ in ("FLOAT", "DOUBLE"):
        raise ViewRefused(
            "FLOAT_SUM",
            f'view "{definition.name}" sums a {type_}, which cannot be kept exactly',
            hint=BY_CODE["FLOAT_SUM"].hint,
        )
    raise ViewRefused(
        "TYPE_ERROR",
        f'view "{definition.name}" sums a {type_}',
        hint="cast the argument to a number",
    )


def _visible(definition: Definition, types: Types) -> str:
    """The outputs over a typed, empty state row."""
    columns = [f"CAST(NULL AS {t}) AS _g{i}" for i, t in enumerate(types.keys)]
    columns.append("CAST(NULL AS BIGINT) AS _count")
    for a, state in enumerate(types.states):
        columns.append(f"CAST(NULL AS BIGINT) AS _nonnull_{a}")
        if state:
            columns.append(f"CAST(NULL AS {types.sums[a]}) AS _visible_sum_{a}")
            columns.append(f"CAST(NULL AS {types.averages[a]}) AS _visible_avg_{a}")
    outputs = ", ".join(f"{o.sql} AS x{i}" for i, o in enumerate(definition.outputs))
    return f"SELECT {outputs} FROM (SELECT {', '.join(columns)})"


def _select(definition: Definition, expressions: list[str]) -> str:
    relations = " CROSS JOIN ".join(_empty(o) for o in definition.occurrences)
    conditions = [o.filter for o in definition.occurrences if o.filter]
    conditions += [r.sql for r in definition.residuals]
    conditions += [
        f"t{e.left}.c{e.left_column} = t{e.right}.c{e.right_column}" for e in definition.equalities
    ]
    where = " AND ".join(f"({c})" for c in conditions) or "TRUE"
    listed = ", ".join(f"{e} AS x{i}" for i, e in enumerate(expressions)) or "1 AS nothing"
    return f"SELECT {listed} FROM {relations} WHERE {where}"


def _empty(occurrence: Occurrence) -> str:
    columns = ", ".join(
        f"CAST(NULL AS {occurrence.relation.columns[i].type}) AS c{i}" for i in occurrence.columns
    )
    return f"(SELECT {columns or '1 AS nothing'} WHERE FALSE) {occurrence.name}"


def _schema(spark: SparkSession, sql: str) -> list[str]:
    try:
        fields = guarded(spark, sql, ()).schema.fields
    except QueryRefused as error:
        raise ViewRefused("OUTWARD", error.message, detail=error.detail) from error
    except PySparkException as error:
        raise ViewRefused(
            "TYPE_ERROR",
            "Spark rejects an expression of the view",
            detail=reason(error),
            hint=BY_CODE["TYPE_ERROR"].hint,
        ) from error
    return [type_name(f.dataType) for f in fields if f.name != "nothing"]


def type_name(type_: DataType) -> str:
    """Spark's type as sources and tables spell it: `DECIMAL(10,2)`, `TIMESTAMP_NTZ`."""
    if isinstance(type_, DecimalType):
        return f"DECIMAL({type_.precision},{type_.scale})"
    return type_.simpleString().upper()


def _outputs(
    definition: Definition, types: list[str], names: list[str] | None = None
) -> tuple[tuple[str, str], ...]:
    names = [o.name for o in definition.outputs] if names is None else names
    return _stored(definition.name, names, types)


def _stored(view: str, names: list[str], types: list[str]) -> tuple[tuple[str, str], ...]:
    """The columns, all of types that a table of the warehouse can have."""
    for name, type_ in zip(names, types, strict=True):
        if not _storable(type_):
            raise ViewRefused(
                "UNSUPPORTED_TYPE",
                f'view "{view}" has a column "{name}" of type {type_}',
                hint="cast it to a type of docs/types.md, such as STRING: to_json(x)",
            )
    return tuple(zip(names, types, strict=True))


def _storable(type_: str) -> bool:
    try:
        arrow_type(type_)
    except KeyError:
        return False
    return True
