"""What Spark says about a view's types, asked of Spark itself over empty relations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import DataType, DecimalType

from steadyview.changes import arrow_type
from steadyview.engine.failures import reason
from steadyview.engine.guard import guarded
from steadyview.errors import QueryRefused, ViewRefused
from steadyview.views.reasons import BY_CODE


def output_types(
    spark: SparkSession, view: str, sql: str, empty: Mapping[str, Sequence[tuple[str, str]]]
) -> tuple[tuple[str, str], ...]:
    """Names and types of a query's columns over empty relations.

    ViewRefused if Spark rejects the query, or where its columns cannot be stored.
    `empty`: the names by which the query reads them, each with its columns and their types.
    """
    try:
        names, types = columns_of(spark, sql, empty)
    except QueryRefused as error:
        fact = f'view "{view}" does more than read its tables: {error.message}'
        hint = BY_CODE["OUTWARD"].hint
        raise ViewRefused("OUTWARD", fact, detail=error.detail, hint=hint) from error
    except PySparkException as error:
        fact = f'Spark rejects view "{view}"'
        hint = "correct the SQL as Spark says"
        raise ViewRefused("TYPE_ERROR", fact, detail=reason(error), hint=hint) from error
    twice = next((n for n, c in Counter(map(str.lower, names)).items() if c > 1), None)
    if twice is not None:
        fact = f'view "{view}" has two columns called "{twice}"'
        raise ViewRefused("DUPLICATE_NAME", fact, hint=BY_CODE["DUPLICATE_NAME"].hint)
    return _stored(view, names, types)


def columns_of(
    spark: SparkSession, sql: str, empty: Mapping[str, Sequence[tuple[str, str]]]
) -> tuple[list[str], list[str]]:
    """The same, names and types apart, of any query that may be run; the caller's errors."""
    for name, columns in empty.items():
        nulls = ", ".join(f"CAST(NULL AS {t}) AS `{c.replace('`', '``')}`" for c, t in columns)
        spark.sql(f"SELECT {nulls} WHERE FALSE").createOrReplaceTempView(name)
    try:
        fields = guarded(spark, sql, empty).schema.fields
    finally:
        for name in empty:
            spark.catalog.dropTempView(name)
    return [f.name for f in fields], [type_name(f.dataType) for f in fields]


def type_name(type_: DataType) -> str:
    """Spark's type as sources and tables spell it: `DECIMAL(10,2)`, `TIMESTAMP_NTZ`."""
    if isinstance(type_, DecimalType):
        return f"DECIMAL({type_.precision},{type_.scale})"
    return type_.simpleString().upper()


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
