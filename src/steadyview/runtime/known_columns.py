"""What is known of the columns that a node's scans read: can they be compared, and looked up?"""

from __future__ import annotations

from collections.abc import Sequence

from steadyview.changes import RelationSchema
from steadyview.plans.lineage import Place
from steadyview.plans.plan import FromRelation, PlanNode
from steadyview.views.join_tree import comparable


class KnownColumns:
    """The columns of one node's inputs. A node's own rows are looked up by any column."""

    def __init__(self, node: PlanNode, relations: Sequence[RelationSchema]) -> None:
        self._relations: dict[int, RelationSchema] = {}
        known = {r.name: r for r in relations}
        for number, origin in enumerate(node.inputs):
            if isinstance(origin, FromRelation) and origin.relation in known:
                self._relations[number] = known[origin.relation]
        self._types = node.input_types

    def comparable(self, left: Place, right: Place) -> bool:
        """Whether `=` between the two is plain equality of their values, without a cast."""
        return comparable(self._type(left), self._type(right))

    def findable(self, place: Place) -> bool:
        """Whether a lookup by values of the column finds at least every row that `=` does."""
        relation = self._relations.get(place.scan)
        return relation is None or relation.columns[place.column].keyable

    def indexed(self, place: Place) -> bool:
        """Whether such a lookup is cheap."""
        relation = self._relations.get(place.scan)
        if relation is None:
            return True
        return relation.columns[place.column].name in {*relation.indexes, *relation.key[:1]}

    def _type(self, place: Place) -> str:
        return self._types[place.scan][place.column]
