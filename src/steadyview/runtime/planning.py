"""From view files to plans: maintained incrementally, recomputed, or refused with a reason."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from steadyview.changes import RelationName, RelationSchema
from steadyview.engine.analysis import reason, type_name, typed
from steadyview.engine.guard import guarded
from steadyview.engine.statements import Types
from steadyview.errors import QueryRefused, ViewRefused
from steadyview.maintenance.algorithms import BATCHED, Kind
from steadyview.maintenance.fitting import fitted, promised
from steadyview.runtime.project import ViewFile
from steadyview.views.analyze import analyze
from steadyview.views.definition import Definition
from steadyview.views.join_tree import JoinTree, join_tree
from steadyview.views.parse import ViewText, parse_view
from steadyview.views.reasons import BY_CODE
from steadyview.views.rewrite import tables_of, with_tables
from steadyview.warehouse.view_store import Shape

Unsupported = Mapping[RelationName, Mapping[str, str]]


@dataclass(frozen=True)
class Planned:
    """A view that can be kept. `definition` and `tree` are None for a recomputed view."""

    text: ViewText
    path: Path
    relations: tuple[RelationSchema, ...]
    types: Types
    definition: Definition | None = None
    tree: JoinTree | None = None
    refusal: ViewRefused | None = None
    algorithm: Kind | None = None
    """The algorithm that somebody forced; None: the default."""

    @property
    def forced(self) -> bool:
        """Whether the view is kept by an algorithm of the papers, transaction by transaction."""
        return self.algorithm is not None and self.algorithm.make is not None

    @property
    def algorithm_name(self) -> str:
        """The name of the algorithm that keeps it."""
        if self.definition is None:
            return "recompute"
        return BATCHED if self.algorithm is None else self.algorithm.name

    @property
    def level(self) -> str:
        """What it is kept at: that of the file, or what the forced algorithm promises."""
        return self.text.level if self.algorithm is None else promised(self.algorithm)

    @property
    def name(self) -> str:
        """The view's name."""
        return self.text.name

    @property
    def kind(self) -> str:
        """How the view is kept."""
        return "recomputed" if self.definition is None else "incremental"

    @property
    def shape(self) -> Shape:
        """Its stored columns."""
        return Shape(self.definition, self.types)

    @property
    def sources(self) -> frozenset[str]:
        """The names of the sources it reads."""
        return frozenset(r.name.source for r in self.relations)

    def uses(self, relation: RelationName) -> frozenset[str]:
        """The names of the relation's columns that the view uses; all of them if recomputed."""
        if self.definition is None:
            return frozenset(
                c.name for r in self.relations if r.name == relation for c in r.columns
            )
        return frozenset(
            o.relation.columns[i].name
            for o in self.definition.occurrences
            if o.relation.name == relation
            for i in o.columns
        )

    def fingerprint(self) -> str:
        """Changes whenever the view's text, kind, or the types it rests on change."""
        facts = [
            self.text.select,
            self.kind,
            self.text.level,
            [list(o) for o in self.types.outputs],
            [
                [str(r.name), [(c.name, c.type) for c in r.columns if c.name in self.uses(r.name)]]
                for r in self.relations
            ],
        ]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Refused:
    """A view that cannot be kept as it is written."""

    name: str
    path: Path
    refusal: ViewRefused


def with_algorithm(plans: Sequence[Planned | Refused], name: str) -> list[Planned | Refused]:
    """The same plans with one algorithm for all, whatever their files say.

    ViewRefused for the first view that it does not fit: what is kept of that view is left alone.
    Recomputed views stay what they are.
    """
    return [
        replace(p, algorithm=fitted(p.text, p.definition, name, forced=True))
        if isinstance(p, Planned) and p.definition is not None
        else p
        for p in plans
    ]


def plan_views(
    spark: SparkSession,
    files: Sequence[ViewFile],
    relations: Sequence[RelationSchema],
    unsupported: Unsupported,
) -> list[Planned | Refused]:
    """Every view file's plan; one refused view never stops the others."""
    plans = []
    names = {f.name for f in files}
    for file in files:
        try:
            plans.append(_plan(spark, file, relations, unsupported, names - {file.name}))
        except ViewRefused as refusal:
            plans.append(Refused(file.name, file.path, refusal))
    return _unique(plans)


def _plan(
    spark: SparkSession,
    file: ViewFile,
    relations: Sequence[RelationSchema],
    unsupported: Unsupported,
    others: set[str],
) -> Planned:
    if file.unreadable is not None:
        message = f'the file of view "{file.name}" cannot be read'
        raise ViewRefused("SYNTAX_ERROR", message, detail=file.unreadable, hint="write it in UTF-8")
    text = parse_view(file.name, file.text)
    try:
        definition = analyze(text, relations, unsupported, others)
        types = typed(spark, definition)
        algorithm = text.algorithm and fitted(text, definition, text.algorithm)
    except ViewRefused as refusal:
        if text.fallback != "recompute":
            raise
        return _recomputed(spark, text, file, relations, refusal)
    used = {o.relation.name: o.relation for o in definition.occurrences}
    return Planned(
        text,
        file.path,
        tuple(used.values()),
        types,
        definition,
        join_tree(definition),
        algorithm=algorithm or None,
    )


def _recomputed(
    spark: SparkSession,
    text: ViewText,
    file: ViewFile,
    relations: Sequence[RelationSchema],
    refusal: ViewRefused,
) -> Planned:
    """A view kept by recomputing its SQL text; refused still if Spark cannot read it."""
    used = tables_of(text, relations)
    names = {r.name: f"sv_empty_{i}" for i, r in enumerate(used)}
    for relation in used:
        columns = ", ".join(
            f"CAST(NULL AS {c.type}) AS `{c.name.replace('`', '``')}`" for c in relation.columns
        )
        spark.sql(f"SELECT {columns} WHERE FALSE").createOrReplaceTempView(names[relation.name])
    try:
        sql = with_tables(text, names, relations)
        fields = guarded(spark, sql, names.values()).schema.fields
    except QueryRefused as error:
        raise _outward(text, error) from error
    except PySparkException as error:
        raise ViewRefused(
            "TYPE_ERROR", f'Spark rejects view "{text.name}"', detail=reason(error)
        ) from error
    finally:
        for name in names.values():
            spark.catalog.dropTempView(name)
    types = Types(tuple((f.name, type_name(f.dataType)) for f in fields))
    return Planned(text, file.path, tuple(used), types, refusal=refusal)


def _outward(text: ViewText, error: QueryRefused) -> ViewRefused:
    fact = f'view "{text.name}" does more than read its tables: {error.message}'
    return ViewRefused("OUTWARD", fact, detail=error.detail, hint=BY_CODE["OUTWARD"].hint)


def _unique(plans: list[Planned | Refused]) -> list[Planned | Refused]:
    """A name may be taken once: the first file keeps it."""
    seen: dict[str, Path] = {}
    result: list[Planned | Refused] = []
    for plan in plans:
        if plan.name.lower() in seen:
            refusal = ViewRefused(
                "DUPLICATE_NAME",
                f'view "{plan.name}" is defined twice',
                detail=f"also in {seen[plan.name.lower()].name}",
                hint="rename one of them",
            )
            result.append(Refused(plan.name, plan.path, refusal))
            continue
        seen[plan.name.lower()] = plan.path
        result.append(plan)
    return result
