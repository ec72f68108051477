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
from steadyview.maintenance.algorithms import Kind
from steadyview.maintenance.fitting import fitted, promised
from steadyview.plans.aggregates import Grouped
from steadyview.plans.draft import Draft, DraftInput, RelationInput
from steadyview.plans.operator import walk
from steadyview.plans.plan import FromNode, FromRelation, Origin, PlanNode, hidden_name
from steadyview.plans.project import Project
from steadyview.plans.scan import Scan
from steadyview.runtime.project import ViewFile
from steadyview.runtime.spark_types import Columns, SparkTypes
from steadyview.serving.layout import taken_names
from steadyview.views.analyze import analyze
from steadyview.views.definition import Definition
from steadyview.views.join_tree import JoinTree, join_tree
from steadyview.views.misreadings import texts_like_columns
from steadyview.views.parse import LEVELS, ViewText, parse_view, view_name
from steadyview.views.plan import plan_view, views_read
from steadyview.views.reasons import BY_CODE, NOT_CURED
from steadyview.views.rewrite import tables_of

if TYPE_CHECKING:
    from steadyview.warehouse.view_store import Shape

VERSIONS, RECOMPUTE = "versions", "recompute"
"""How a view is kept that no algorithm of the papers keeps: by its plan, or as a whole."""
RECOMPUTED_LEVEL = "strong"
"""That of a view that is recomputed: it has one state per batch."""
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
    averages: tuple[bool, ...] = ()
    """Per AVG that it keeps, whether it is one of whole numbers."""
    inherits: str = "complete"
    """The lowest level of the nodes that it reads."""
    over_every_state: bool = True
    """Whether each of these has a state at every cn."""
    serve_key: tuple[str, ...] = ()
    """The columns by which its records are found in a store; none: it is not served."""
    told: tuple[str, ...] | None = None
    """The warnings that were found when it was planned; None: it is planned now."""

    @property
    def hidden(self) -> bool:
        """Whether it is part of views and none itself."""
        return self.text is None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is SQL and probably not what was meant."""
        if self.text is None or self.told is not None:
            return self.told or ()
        return tuple(texts_like_columns(self.text.source(), self.relations))

    @property
    def forced(self) -> bool:
        """Whether the view is kept by an algorithm of the papers, transaction by transaction."""
        return self.algorithm is not None and self.algorithm.make is not None

    @property
    def algorithm_name(self) -> str:
        """How it is kept: by an algorithm of the papers, by its plan over versions, as a whole."""
        if self.node is None:
            return RECOMPUTE
        return self.algorithm.name if self.algorithm is not None and self.forced else VERSIONS

    @property
    def level(self) -> str:
        """What it promises: what the file asks for, or as much as its algorithm and inputs do."""
        if self.algorithm is not None and self.forced:
            return promised(self.algorithm)
        return (self.text and self.text.asked_level) or self.highest

    @property
    def highest(self) -> str:
        """The highest level that the file may ask for."""
        return self.inherits if self.node is not None else RECOMPUTED_LEVEL

    @property
    def every_state(self) -> bool:
        """Whether it has a state at every cn."""
        if self.algorithm is not None and self.forced:
            return promised(self.algorithm) == "complete"
        return self.node is not None and self.over_every_state

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
        """Changes whenever the view's meaning, kind, or the types it rests on change.

        Its level is a promise over the same rows.
        """
        facts: list[object] = [self.kind, self.columns]
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


def all_sources(plan: Planned, plans: Mapping[str, Planned]) -> frozenset[str]:
    """The sources that a node reads, itself or over others."""
    below = (all_sources(plans[name], plans) for name in plan.parents if name in plans)
    return plan.sources.union(*below)


def with_algorithm(plans: Sequence[Planned | Refused], name: str) -> list[Planned | Refused]:
    """The same plans with one algorithm for all, whatever their files say.

    ViewRefused for the first view that it does not fit: what is kept of that view is left alone.
    Recomputed views stay what they are.
    """
    known: dict[str, Planned] = {}
    found: list[Planned | Refused] = []
    for plan in plans:
        made = plan
        if isinstance(made, Planned):
            if made.definition is not None and made.text is not None:
                kind = fitted(made.text, made.definition, name, forced=True)
                made = replace(made, algorithm=kind)
            made = known[made.name] = _inheriting(made, known)
        found.append(made)
    return found


def _inheriting(plan: Planned, known: Mapping[str, Planned]) -> Planned:
    """The plan with what it inherits of the nodes that it reads."""
    parents = [known[name] for name in plan.parents]
    lowest = min((p.level for p in parents), key=rank, default="complete")
    every = all(p.every_state for p in parents)
    return replace(plan, inherits=lowest, over_every_state=every)


def rank(level: str) -> int:
    """Higher for a level that promises more."""
    return LEVELS.index(level) if level in LEVELS else -1


def _check_level(plan: Planned) -> Planned:
    """The plan; refused if the file asks for a level that what it reads does not have."""
    text = plan.text
    asked = None if text is None or plan.forced else text.asked_level
    if text is None or asked is None or rank(asked) <= rank(plan.highest):
        return plan
    line, column = text.level_at
    why = "it is recomputed" if plan.node is None else f"what it reads is {plan.highest}"
    raise ViewRefused(
        "LEVEL",
        f'view "{plan.name}" asks for level "{asked}", but {why}',
        detail=f"line {line}, column {column}: the highest level it can have is {plan.highest}",
        hint=BY_CODE["LEVEL"].hint,
        line=line,
        column=column,
    )


def with_serve_key(plan: Planned, grouped: Grouped | None) -> Planned:
    """The plan with the key of its records, if it is to be served; SERVE_KEY if it has none.

    `grouped`: what it is grouped by, for a view whose file names no key.
    """
    text = plan.text
    if text is None or text.serve is None:
        return plan
    names = {name.lower(): name for name, _ in plan.columns}
    unknown = [name for name in text.serve_key if name.lower() not in names]
    key = tuple(names[n.lower()] for n in text.serve_key if n.lower() in names)
    if not key and not unknown and grouped is not None:
        key = _group_columns(plan, grouped)
    types = dict(plan.columns)
    fact = None
    if unknown:
        fact = f'has no column "{unknown[0]}" for the key of its records'
    elif not key or len(set(key)) < len(key):
        fact = "is to be served from a store, and no key of its records is known"
    elif inexact := [name for name in key if types[name] in ("FLOAT", "DOUBLE")]:
        fact = f'cannot have its records found by "{inexact[0]}": {types[inexact[0]]} is not exact'
    elif taken := taken_names(plan.columns):
        fact = f'has a column called "{taken[0]}", a name that stores need for themselves'
    if fact is None:
        return replace(plan, serve_key=key)
    line, column = text.serve_at
    hint = BY_CODE["SERVE_KEY"].hint
    found = f'view "{plan.name}" {fact}'
    raise ViewRefused("SERVE_KEY", found, line=line, column=column, hint=hint)


def _group_columns(plan: Planned, grouped: Grouped) -> tuple[str, ...]:
    """The columns that show what the view is grouped by; none, unless all of it is shown."""
    shown = {sql: place for place, (_, sql) in reversed([*enumerate(grouped.outputs)])}
    keys = [name for name, _ in grouped.keys]
    if not all(name in shown for name in keys):
        return ()
    return tuple(plan.columns[shown[name]][0] for name in keys)


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
        self._found: list[Planned | Refused] = []
        self._seen: set[str] = set()

    def all(self) -> list[Planned | Refused]:
        """The plans of all files."""
        files = dict(zip(map(str.lower, reversed(self._names)), reversed(self._files), strict=True))
        for file, name in zip(self._files, self._names, strict=True):
            if files[name.lower()] is file:
                self._plan(file, name, files, ())
            else:
                self._found.append(Refused(name, file.path, _twice(name, files[name.lower()].path)))
        return self._found

    def _plan(
        self, file: ViewFile, name: str, files: Mapping[str, ViewFile], behind: tuple[str, ...]
    ) -> None:
        """Plan a view behind those that it reads; `behind` are views that wait for it."""
        if name in self._seen:
            return
        try:
            if file.unreadable is not None:
                message = f'the file of view "{file.name}" cannot be read'
                hint = "save it in UTF-8, readable for the user that runs steadyview"
                raise ViewRefused("SYNTAX_ERROR", message, detail=file.unreadable, hint=hint)
            text = parse_view(file.name, file.text)
            for other in views_read(text, self._names):
                if other in (*behind, name):
                    raise _cycle([*behind, name], other)
                self._plan(files[other.lower()], other, files, (*behind, name))
            if name in self._seen:
                return
            self._seen.add(name)
            self._found += self._view(text, file.path, name)
        except ViewRefused as refusal:
            self._seen.add(name)
            self._found.append(Refused(name, file.path, refusal))

    def _view(self, text: ViewText, path: Path, name: str) -> list[Planned]:
        """The view, behind the hidden nodes that are new with it."""
        relations, others = list(self._relations.values()), {*self._names} - {name}
        if text.policy == "snapshot":
            return [self._snapshot(text, path, tuple(tables_of(text, relations, others)))]
        try:
            return self._kept(text, path)
        except ViewRefused as refusal:
            if refusal.code in NOT_CURED or (
                text.fallback != "recompute" and not _by_spark(refusal)
            ):
                raise
            if parents := views_read(text, self._names):
                if text.fallback != "recompute":
                    raise
                raise _recomputed_over(text.name, parents[0], refusal) from None
            used = tuple(tables_of(text, relations, others))
            if text.fallback != "recompute":
                raise _in_own_words(self._types, text, used, refusal) from None
            columns = _recomputed_types(self._types, text, used, refusal)
            found = Planned(text.name, columns, used, None, text, path, refusal=refusal)
            found = with_serve_key(found, None)
            self._plans[text.name] = _check_level(found)
            return [found]

    def _snapshot(
        self, text: ViewText, path: Path, used: tuple[RelationSchema, ...]
    ) -> Planned:
        """A view that is recomputed at each refresh, whatever its text is."""
        if parents := views_read(text, self._names):
            fact = f'snapshot view "{text.name}" reads view "{parents[0]}"'
            hint = "a snapshot reads tables of sources alone: read those, or ask for 'dpda'"
            raise ViewRefused("PARENT", fact, hint=hint)
        found = Planned(text.name, self._types.of_text(text, used), used, None, text, path)
        found = with_serve_key(found, None)
        self._plans[text.name] = _check_level(found)
        return found

    def _kept(self, text: ViewText, path: Path) -> list[Planned]:
        self._check_parents(text)
        relations = list(self._relations.values())
        views = {p.name: p.columns for p in self._plans.values() if not p.hidden and p.node}
        draft = plan_view(text, relations, self._unsupported, views)
        self._types.check_reading(text)
        averages: list[bool] = []
        nodes: list[PlanNode] = []
        hidden: list[Planned] = []
        for one in draft.drafts:
            origins, types = self._inputs(one, nodes)
            made = self._types.nodes(text.name, one, origins, types)
            nodes.append(made[-1])
            averages += _of_whole_numbers(one, made[-1])
            for kept in made:
                hidden.append(self._hidden(kept, hidden))
        node = nodes[-1]
        names = zip(draft.names, node.columns, strict=True)
        columns = tuple((name, type_) for name, (_, type_) in names)
        definition = self._definition(text)
        algorithm = text.algorithm and fitted(text, definition, text.algorithm)
        view = Planned(
            text.name,
            columns,
            self._read(node),
            node,
            text,
            path,
            definition,
            None if definition is None else join_tree(definition),
            algorithm=algorithm or None,
            averages=tuple(averages),
        )
        new = [h for h in hidden[:-1] if h.name not in self._plans]
        view = _check_level(_inheriting(view, {**self._plans, **{h.name: h for h in new}}))
        view = with_serve_key(view, draft.drafts[-1].grouped)
        self._plans.update({p.name: p for p in [*new, view]})
        return [*dict.fromkeys(new), view]

    def _definition(self, text: ViewText) -> Definition | None:
        """The view for the algorithms of the papers, if it is one for them."""
        try:
            return analyze(text, list(self._relations.values()), self._unsupported)
        except ViewRefused:
            return None

    def _check_parents(self, text: ViewText) -> None:
        """Refuse a view that reads one that is refused, or recomputed."""
        for name in views_read(text, self._names):
            parent = self._plans.get(name)
            if parent is None or parent.node is None:
                word = "refused" if parent is None else "recomputed, and so has no changes"
                fact = f'view "{text.name}" reads view "{name}", which is {word}'
                raise ViewRefused("PARENT", fact, hint=BY_CODE["PARENT"].hint)

    def _hidden(self, node: PlanNode, new: Sequence[Planned] = ()) -> Planned:
        """A hidden node; `new` are those of the same view."""
        name = hidden_name(node)
        if name in self._plans:
            return self._plans[name]
        plan = Planned(name, node.columns, self._read(node), node)
        return _inheriting(plan, {**{h.name: h for h in new}, **self._plans})

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
                node, name = nodes[read.place], hidden_name(nodes[read.place])
            else:
                parent = self._plans[read.view]
                assert parent.node is not None
                node, name = parent.node, parent.name
            types.append({i: node.columns[i][1] for i in used})
            origins.append(FromNode(name, node.digest, tuple(types[-1].items())))
        return origins, types


def _of_whole_numbers(draft: Draft, node: PlanNode) -> list[bool]:
    """Per AVG of the draft, whether it is kept as DOUBLE: only that of whole numbers is."""
    outputs = dict(node.fold.values) if node.fold else {}
    for operator in walk(node.node.block):
        if isinstance(operator, Project):
            outputs |= {n: sql for n, sql in operator.outputs if n not in outputs}
    wanted = draft.grouped.aggregates if draft.grouped else ()
    return ["AS DOUBLE)" in outputs[a.name] for a in wanted if a.function == "avg"]


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


def _recomputed_over(view: str, parent: str, refusal: ViewRefused) -> ViewRefused:
    """A view that would have to be recomputed reads another view."""
    return ViewRefused(
        "PARENT",
        f'view "{view}" reads view "{parent}", and cannot be kept incrementally: {refusal.message}',
        hint="a recomputed view reads tables of sources alone: read those that the view reads",
    )


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


def _twice(name: str, first: Path) -> ViewRefused:
    """A name may be taken once: the first file keeps it."""
    return ViewRefused(
        "DUPLICATE_NAME",
        f'view "{name}" is defined twice',
        detail=f'in "{first.name}", which counts, and in this file',
        hint="give one of the two another name, or delete its file",
    )


def _cycle(behind: Sequence[str], again: str) -> ViewRefused:
    path = " -> ".join([*behind[list(behind).index(again) :], again])
    fact = f'view "{behind[-1]}" reads itself: {path}'
    return ViewRefused("CYCLE", fact, hint=BY_CODE["CYCLE"].hint)
