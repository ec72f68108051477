"""What the algorithms are handed: an open warehouse, and a view as the papers know one."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pyspark.sql import SparkSession

from steadyview.catalog import Catalog
from steadyview.changes import RelationName, RelationSchema
from steadyview.maintenance.algorithms import Make
from steadyview.sources.contract import Source
from steadyview.update_log import UpdateLog
from steadyview.views.definition import Definition
from steadyview.views.join_tree import JoinTree
from steadyview.warehouse.view_store import Shape


class LiveWarehouse(Protocol):
    """An open warehouse, as far as an algorithm needs it."""

    @property
    def catalog(self) -> Catalog:
        """The order of transactions, and where views stand."""

    @property
    def log(self) -> UpdateLog:
        """What every transaction changed."""

    @property
    def sources(self) -> Mapping[str, Source]:
        """The databases."""

    @property
    def spark(self) -> SparkSession:
        """The session that carries the data."""

    @property
    def root(self) -> Path:
        """The warehouse's folder."""

    def work_folder(self, label: str) -> AbstractContextManager[Path]:
        """A folder that is gone afterwards."""


@dataclass(frozen=True)
class ShownView:
    """A view that is kept incrementally, whoever does it.

    `uses`: the names of the columns that it uses, per relation.
    """

    name: str
    select: str
    relations: tuple[RelationSchema, ...]
    uses: Mapping[RelationName, frozenset[str]]
    shape: Shape

    @property
    def sources(self) -> list[str]:
        """The names of the sources that it reads, in order."""
        return sorted({r.name.source for r in self.relations})

    def loses(self, relation: RelationName, column: str | None) -> bool:
        """Whether the view is concerned by the loss of the column; None: of the whole relation."""
        if column is None:
            return any(r.name == relation for r in self.relations)
        return column in self.uses.get(relation, frozenset())


@dataclass(frozen=True)
class ForcedPlan(ShownView):
    """A view that an algorithm of the papers keeps: one join of relations, without groups.

    `id`: of its row in the catalog. `make` makes the algorithm's object; `holds_view`: the object
    keeps the view's rows.
    """

    id: int
    definition: Definition
    tree: JoinTree
    make: Make
    holds_view: bool
