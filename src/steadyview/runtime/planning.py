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
from steadyview.plans.draft import Draft, DraftInput, RelationInput
from steadyview.plans.operator import walk
from steadyview.plans.plan import FromNode, FromRelation, Origin, PlanNode
from steadyview.plans.scan import Scan
from steadyview.runtime.drafting import drafted
from steadyview.runtime.project import ViewFile
from steadyview.runtime.spark_types import Columns, SparkTypes
from steadyview.views.analyze import analyze
from steadyview.views.definition import Definition
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
    """A view, or a hidden node, that can be kept.

    `node` is None for a recomputed view; `columns` are named as people know them. `relations` are
    those of sources that it reads itself. A hidden node has neither text nor file; its name begins
    with "~". `definition` and `tree` are for the algorithms of the papers: None where the view is
    not a flat one.
    """

    name: str
    columns: Columns
    relations: tuple[RelationSchema, ...]
    node: PlanNode | None = None
    text: ViewText | None = None
    path: Path | None = None
    definition: Definition | None = None
    tree: JoinTree | None = None
    refusal: ViewRefused | None = None
    algorithm: Kind | None = None
    """The algorithm that somebody forced; None: the default."""

    @property
    def hidden(self) -> bool:
        """Whether it is part of views and none itself."""
        return self.text is None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is SQL and probably not what was meant."""
        if self.text is None:
            return ()
        return tuple(texts_like_columns(self.text.source(), self.relations))

    @property
    def forced(self) -> bool:
        """Whether the view is kept by an algorithm of the papers, transaction by transaction."""
        return self.algorithm is not None and self.algorithm.make is not None

    @property
    def algorithm_name(self) -> str:
        """The name of the algorithm that keeps it."""
        if self.node is None:
            return "recompute"
        return BATCHED if self.algorithm is None else self.algorithm.name

    @property
    def level(self) -> str:
        """What it is kept at: that of the file, or what the forced algorithm promises."""
        if self.algorithm is not None:
            return promised(self.algorithm)
        return self.text.level if self.text is not None else "complete"

    @property
    def kind(self) -> str:
        """How the view is kept."""
        return "recomputed" if self.node is None else "incremental"

    @property
    def shape(self) -> Shape:
        """Its stored columns."""
        # imported late: planning needs neither Spark nor Delta
        from steadyview.warehouse.view_store import Shape

        fold = None if self.node is None or self.forced else self.node.fold
        keys = () if fold is None else tuple((k.name, k.type) for k in fold.keys)
        sums = () if fold is None else tuple((s.name, s.type) for s in fold.all_sums)
        return Shape(self.columns, keys, sums, incremental=self.node is not None)

    @property
    def sources(self) -> frozenset[str]:
        """The names of the sources it reads itself."""
        return frozenset(r.name.source for r in self.relations)

    @property
    def parents(self) -> tuple[str, ...]:
        """The names of the nodes it reads."""
        return () if self.node is None else self.node.nodes()

    def loses(self, relation: RelationName, column: str | None) -> bool:
        """Whether the view is concerned by the loss of the column; None: of the whole relation."""
        if column is None:
            return any(r.name == relation for r in self.relations)
        return column in self.uses(relation)

    def uses(self, relation: RelationName) -> frozenset[str]:
        """The names of the relation's columns that the view uses; all of them if recomputed."""
        found = next((r for r in self.relations if r.name == relation), None)
        if found is None:
            return frozenset()
        if self.node is None:
            return frozenset(c.name for c in found.columns)
        return frozenset(found.columns[i].name for i in self.node.used()[relation])

    def fingerprint(self) -> str:
        """Changes whenever the view's meaning, kind, or the types it rests on change."""
        facts = [self.kind, self.columns, None if self.text is None else self.text.level]
        if self.node is not None:
            facts.append(self.node.digest)
        else:
            assert self.text is not None
            types = [[str(r.name), [(c.name, c.type) for c in r.columns]] for r in self.relations]
            facts += [self.text.select, types]
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
        if isinstance(p, Planned) and p.definition is not None and p.text is not None
        else p
        for p in plans
    ]


def plan_views(
    spark_types: SparkTypes,
    files: Sequence[ViewFile],
    relations: Sequence[RelationSchema],
    unsupported: Unsupported,
) -> list[Planned | Refused]:
    """Every view file's plan; one refused view never stops the others.

    In an order in which every plan stands behind those that it reads.
    """
    return _Planning(spark_types, files, relations, unsupported).all()


class _Planning:
    """Plans the views of a project, each behind those that it reads."""

    def __init__(
        self,
        spark_types: SparkTypes,
        files: Sequence[ViewFile],
        relations: Sequence[RelationSchema],
        unsupported: Unsupported,
    ) -> None:
        self._types = spark_types
        self._files = files
        self._relations = {r.name: r for r in relations}
        self._unsupported = unsupported
        self._names = [view_name(f.name, f.text) for f in files]
        self._plans: dict[str, Planned] = {}

    def all(self) -> list[Planned | Refused]:
        plans: list[Planned | Refused] = []
        for file, name in zip(self._files, self._names, strict=True):
            try:
                plans += self._view(file, name)
            except ViewRefused as refusal:
                plans.append(Refused(name, file.path, refusal))
        return _unique(plans)

    def _view(self, file: ViewFile, name: str) -> list[Planned]:
        """The view, behind the hidden nodes that are new with it."""
        if file.unreadable is not None:
            message = f'the file of view "{file.name}" cannot be read'
            hint = "save it in UTF-8, readable for the user that runs steadyview"
            raise ViewRefused("SYNTAX_ERROR", message, detail=file.unreadable, hint=hint)
        text = parse_view(file.name, file.text)
        relations, others = list(self._relations.values()), {*self._names} - {name}
        try:
            return self._kept(text, file.path, others)
        except ViewRefused as refusal:
            if refusal.code in NOT_CURED or (
                text.fallback != "recompute" and not _by_spark(refusal)
            ):
                raise
            used = tuple(tables_of(text, relations, others))
            if text.fallback != "recompute":
                raise _in_own_words(self._types, text, used, refusal) from None
            columns = _recomputed_types(self._types, text, used, refusal)
            return [Planned(text.name, columns, used, None, text, file.path, refusal=refusal)]

    def _kept(self, text: ViewText, path: Path, others: set[str]) -> list[Planned]:
        relations = list(self._relations.values())
        definition = analyze(text, relations, self._unsupported, others)
        draft = drafted(definition)
        nodes, hidden = [], []
        for place, one in enumerate(draft.drafts):
            last = place == len(draft.drafts) - 1
            origins, types = self._inputs(one, nodes)
            node = self._types.node(text.name, one, origins, types)
            nodes.append(node)
            if not last:
                hidden.append(self._hidden(node))
        algorithm = text.algorithm and fitted(text, definition, text.algorithm)
        names = zip(draft.names, node.columns, strict=True)
        columns = tuple((name, type_) for name, (_, type_) in names)
        view = Planned(
            text.name,
            columns,
            self._read(node),
            node,
            text,
            path,
            definition,
            join_tree(definition),
            algorithm=algorithm or None,
        )
        new = [h for h in hidden if h.name not in self._plans]
        self._plans.update({p.name: p for p in [*new, view]})
        return [*new, view]

    def _hidden(self, node: PlanNode) -> Planned:
        name = f"~{node.digest[:12]}"
        return self._plans.get(name) or Planned(name, node.columns, self._read(node), node)

    def _read(self, node: PlanNode) -> tuple[RelationSchema, ...]:
        return tuple(self._relations[name] for name in node.used())

    def _inputs(
        self, draft: Draft, nodes: Sequence[PlanNode]
    ) -> tuple[list[Origin], list[dict[int, str]]]:
        """What the scans of a draft read, and the types of the columns that they use."""
        origins: list[Origin] = []
        types: list[dict[int, str]] = []
        scans = {o.number: o for o in walk(draft.block) if isinstance(o, Scan)}
        for number, read in enumerate(draft.inputs):
            used = scans[number].used or (0,)
            if isinstance(read, RelationInput):
                columns = self._relations[read.relation].columns
                types.append({i: columns[i].type for i in used})
                origins.append(FromRelation(read.relation, tuple(types[-1].items())))
                continue
            if isinstance(read, DraftInput):
                node, name = nodes[read.place], self._hidden(nodes[read.place]).name
            else:
                parent = self._plans[read.view]
                assert parent.node is not None
                node, name = parent.node, parent.name
            types.append({i: node.columns[i][1] for i in used})
            origins.append(FromNode(name, node.digest, tuple(types[-1].items())))
        return origins, types


def _recomputed_types(
    spark_types: SparkTypes,
    text: ViewText,
    used: Sequence[RelationSchema],
    refusal: ViewRefused,
) -> Columns:
    """The columns of a view kept by recomputing its SQL text; refused if Spark cannot read it."""
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
