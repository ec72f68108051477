"""Spark's plans as plain Python values: parsed, or analysed, and whole.

A walk over a plan through Py4J costs a call per step, and the usual ways (`children`,
`expressions`) leave parts out, such as named windows. So the plan is written as JSON inside the
JVM, by `PlanTree.java`, in one call of a few milliseconds.

A node is `SparkNode(kind, parts)`; collections are lists.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, SparkSession

from steadyview.engine.java import compiled

_functions: WeakKeyDictionary[Any, dict[str, str]] = WeakKeyDictionary()


@dataclass(frozen=True)
class SparkNode:
    """A part of a plan: its class, and all that it was made of.

    `tree`: whether it is a plan or an expression, not a mere value inside one.
    """

    kind: str
    parts: list[Any]
    tree: bool

    @property
    def name(self) -> str:
        """The class without its package.

        >>> SparkNode("org.apache.spark.sql.catalyst.plans.logical.Project", [], True).name
        'Project'
        """
        return self.kind.rpartition(".")[2]


def parse(spark: SparkSession, sql: str) -> Any:
    """Spark's unresolved plan of the text; nothing is looked up, opened or run."""
    return _helper(spark).parsed(spark._jsparkSession, sql)


def tree(spark: SparkSession, plan: Any) -> Any:
    """The plan as a `SparkNode`."""
    return json.loads(_helper(spark).json(plan), object_hook=_node)


def functions(spark: SparkSession) -> dict[str, str]:
    """The functions that Spark knows, and the class each one becomes in a plan."""
    gateway: Any = spark.sparkContext._gateway
    if gateway not in _functions:
        _functions[gateway] = json.loads(_helper(spark).functions(spark._jsparkSession))
    return _functions[gateway]


def frame_of(spark: SparkSession, plan: Any) -> DataFrame:
    """The rows of exactly this plan; analysed now, computed when asked for."""
    jvm: Any = spark._jvm
    module = getattr(jvm.org.apache.spark.sql.classic, "Dataset$")
    return DataFrame(getattr(module, "MODULE$").ofRows(spark._jsparkSession, plan), spark)


def _node(found: dict[str, Any]) -> SparkNode:
    return SparkNode(found.get("class") or found["other"], found["parts"], "class" in found)


def _helper(spark: SparkSession) -> Any:
    """The class behind all this."""
    return compiled(spark.sparkContext._gateway, "PlanTree")
