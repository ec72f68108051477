"""The change of several nodes over one join, computed by one statement."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from steadyview.changes import arrow_type
from steadyview.engine.block_inputs import BlockInputs
from steadyview.plans.shared_join import MEMBER, SharedJoin
from steadyview.warehouse.node_statement import Computed, NodeStatement


class SharedStatement:
    """Nodes of one batch and one window. `statements` are the members' own."""

    def __init__(
        self,
        shared: SharedJoin,
        read: BlockInputs,
        statements: Sequence[NodeStatement],
    ) -> None:
        self._shared = shared
        self._read = read
        self._statements = statements

    def changes(self, after: int, upto: int) -> list[Computed] | None:
        """What each member's tables take for (after, upto]; None if they are too large for it."""
        if not all(s.small for s in self._statements):
            return None
        state = self._state(after, upto)
        if state is None:
            return None
        rendering = self._read.over(self._shared.block, after, upto)
        sql = self._shared.statement(rendering, state)
        found = self._read.frames.collected(sql)
        return [s.computed(self._part(found, i)) for i, s in enumerate(self._statements)]

    def _part(self, found: pa.Table, member: int) -> pa.Table:
        """One member's rows, as its own statement would give them."""
        names = self._shared.columns_of(member)
        rows = found.filter(pc.equal(found[MEMBER], member)).select(list(names))
        rows = rows.rename_columns(list(names.values()))
        if self._shared.members[member].fold is None:
            rows = rows.filter(pc.not_equal(rows["_count"], 0))
        return rows

    def _state(self, after: int, upto: int) -> str | None:
        """The state's rows of all members, under the names of the slots."""
        columns = self._shared.state_columns
        schema = pa.schema([(name, arrow_type(type_)) for name, type_ in columns])
        parts = [schema.empty_table()]
        for i, (node, own) in enumerate(zip(self._shared.members, self._statements, strict=True)):
            if node.fold is None:
                continue
            rows = own.state_rows(node.fold, after, upto)
            if rows is None:
                return None
            parts.append(self._wide(rows.select(list(node.fold.state_names)), i, schema))
        return self._read.frames.few("state", pa.concat_tables(parts), columns, self._read.folder)

    def _wide(self, rows: pa.Table, member: int, schema: pa.Schema) -> pa.Table:
        slots = (*self._shared.keys.of(member), *self._shared.sums.of(member))
        own = dict(zip(slots, rows.columns, strict=True))
        number = pa.array([member] * rows.num_rows, schema.field(MEMBER).type)
        columns = [
            number
            if field.name == MEMBER
            else own[field.name].cast(field.type)
            if field.name in own
            else pa.nulls(rows.num_rows, field.type)
            for field in schema
        ]
        return pa.table(columns, schema=schema)
