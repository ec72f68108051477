"""From view files to plans: maintained incrementally, recomputed, or refused with a reason."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from steadyview.changes import RelationName, RelationSchema
from steadyview.errors import ViewRefused
from steadyview.maintenance.algorithms import BATCHED, Kind
from steadyview.maintenance.fitting import fitted, promised
from steadyview.runtime.project import ViewFile
from steadyview.runtime.spark_types import SparkTypes
from steadyview.views.analyze import analyze
from steadyview.views.definition import Definition, Types
from steadyview.views.join_tree import JoinTree, join_tree
from steadyview.views.misreadings import texts_like_columns
from steadyview.views.parse import ViewText, parse_view, view_name
from steadyview.views.reasons import BY_CODE, NOT_CURED
from steadyview.views.rewrite import tables_of

if TYPE_CHECKING:
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
    def warnings(self) -> tuple[str, ...]:
        """What is SQL and probably not what was meant."""
        return tuple(texts_like_columns(self.text.source(), self.relations))

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
        # imported late: planning needs neither Spark nor Delta
        from steadyview.warehouse.view_store import Shape

        return Shape(self.definition, self.types)

    @property
    def sources(self) -> frozenset[str]:
        """The names of the sources it reads."""
        return frozenset(r.name.source for r in self.relations)

    def loses(self, relation: RelationName, column: str | None) -> bool:
        """Whether the view is concerned by the loss of the column; None: of the whole relation."""
        if column is None:
            return any(r.name == relation for r in self.relations)
        return column in self.uses(relation)

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
    spark_types: SparkTypes,
    files: Sequence[ViewFile],
    relations: Sequence[RelationSchema],
    unsupported: Unsupported,
) -> list[Planned | Refused]:
    """Every view file's plan; one refused view never stops the others."""
    plans: list[Planned | Refused] = []
    names = [view_name(f.name, f.text) for f in files]
    for file, name in zip(files, names, strict=True):
        try:
            plans.append(_plan(spark_types, file, relations, unsupported, {*names} - {name}))
        except ViewRefused as refusal:
            plans.append(Refused(name, file.path, refusal))
    return _unique(plans)


def _plan(
    spark_types: SparkTypes,
    file: ViewFile,
    relations: Sequence[RelationSchema],
    unsupported: Unsupported,
    others: set[str],
) -> Planned:
    if file.unreadable is not None:
        message = f'the file of view "{file.name}" cannot be read'
        hint = "save it in UTF-8, readable for the user that runs steadyview"
        raise ViewRefused("SYNTAX_ERROR", message, detail=file.unreadable, hint=hint)
    text = parse_view(file.name, file.text)
    try:
        definition = analyze(text, relations, unsupported, others)
        types = spark_types.of(definition)
        algorithm = text.algorithm and fitted(text, definition, text.algorithm)
    except ViewRefused as refusal:
        if refusal.code in NOT_CURED or (text.fallback != "recompute" and not _by_spark(refusal)):
            raise
        used = tuple(tables_of(text, relations, others))
        if text.fallback != "recompute":
            raise _in_own_words(spark_types, text, used, refusal) from None
        types = _recomputed_types(spark_types, text, used, refusal)
        return Planned(text, file.path, used, types, refusal=refusal)
    read = {o.relation.name: o.relation for o in definition.occurrences}
    return Planned(
        text,
        file.path,
        tuple(read.values()),
        types,
        definition,
        join_tree(definition),
        algorithm=algorithm or None,
    )


def _recomputed_types(
    spark_types: SparkTypes,
    text: ViewText,
    used: Sequence[RelationSchema],
    refusal: ViewRefused,
) -> Types:
    """The types of a view kept by recomputing its SQL text; refused if Spark cannot read it."""
    try:
        return spark_types.of_text(text, used)
    except ViewRefused as own:
        if own.code != "OUTWARD" and not BY_CODE[refusal.code].recompute:
            raise refusal from None
        raise


def _by_spark(refusal: ViewRefused) -> bool:
    """Whether Spark refused, asked about columns under our names for them."""
    return refusal.code == "TYPE_ERROR" and refusal.line is None


def _in_own_words(
    spark_types: SparkTypes, text: ViewText, used: Sequence[RelationSchema], refusal: ViewRefused
) -> ViewRefused:
    """The refusal, with what Spark says of the view's own text and not of our names for columns."""
    try:
        spark_types.of_text(text, used)
    except ViewRefused as own:
        return ViewRefused(refusal.code, own.message, detail=own.detail, hint=refusal.hint)
    return refusal


def _unique(plans: list[Planned | Refused]) -> list[Planned | Refused]:
    """A name may be taken once: the first file keeps it."""
    seen: dict[str, Path] = {}
    result: list[Planned | Refused] = []
    for plan in plans:
        if plan.name.lower() in seen:
            refusal = ViewRefused(
                "DUPLICATE_NAME",
                f'view "{plan.name}" is defined twice',
                detail=f'in "{seen[plan.name.lower()].name}", which counts, and in this file',
                hint="give one of the two another name, or delete its file",
            )
            result.append(Refused(plan.name, plan.path, refusal))
            continue
        seen[plan.name.lower()] = plan.path
        result.append(plan)
    return result
