"""Whether Spark reads a text as we do: its own parser makes a plan of each, and the two are equal.

Plans are compared before names are resolved: as JSON, so that types of literals count, and as text,
which shows subqueries. The numbers that Spark gives to expressions do not count.
"""

from __future__ import annotations

import re
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from steadyview.views.dialect import bracketed
from steadyview.views.parse import ViewText
from steadyview.views.reading import read_query
from steadyview.views.readings import readings

_NUMBER = re.compile(
    r'\{"product-class":"org\.apache\.spark\.sql\.catalyst\.expressions\.ExprId"[^}]*\}'
    r"|\[B@[0-9a-f]+"
)
"""Numbers of expressions, and addresses of binary literals, which the plan's text shows in full."""
_MARK = re.compile(r"#\d+L?")
_CROSS = (("plans.Cross$", "plans.Inner$"), ("Join Cross", "Join Inner"))
"""A comma, CROSS JOIN and JOIN mean the same: the pairs that meet the condition, if any."""
_FIELDS = "spark.sql.debug.maxToStringFields"
"""Of longer lists, a plan's text shows the beginning only."""


def read_alike(spark: SparkSession, one: str, other: str) -> bool:
    """Whether Spark's parser makes the same plan of both; False where it cannot read one."""
    try:
        return _plan(spark, one) == _plan(spark, other)
    except PySparkException:
        return False


def check_reading(spark: SparkSession, view: ViewText) -> None:
    """ViewRefused with READING if Spark reads the view's SELECT otherwise than we do.

    What Spark cannot read at all is left to whoever asks Spark for the view's types.
    """
    whole, *parts = readings(view)
    wrong = [part[0] for part in parts if not _fits(spark, part[1], part[2])]
    other = bracketed(read_query(view.source()), values=True)
    if wrong or not any(_fits(spark, whole[1], ours) for ours in (whole[2], other)):
        fact = "has SQL that Spark reads otherwise than steadyview"
        raise view.source().refusal("READING", min(wrong, default=0), fact)


def _fits(spark: SparkSession, theirs: str, ours: str) -> bool:
    """Whether ours is read like theirs, or theirs cannot be read at all."""
    try:
        _plan(spark, theirs)
    except PySparkException:
        return True
    return read_alike(spark, theirs, ours)


def _plan(spark: SparkSession, sql: str) -> str:
    if spark.conf.get(_FIELDS) != "1000000":
        spark.conf.set(_FIELDS, "1000000")
    session: Any = spark._jsparkSession
    parsed = session.sessionState().sqlParser().parsePlan(sql)
    found = _NUMBER.sub("0", str(parsed.toJSON())) + _MARK.sub("#", str(parsed.toString()))
    for cross, inner in _CROSS:
        found = found.replace(cross, inner)
    return found
