"""Each column holds values of one kind: numbers, texts or truths. NULL goes with all of them.

Python finds 1 and true equal, and a text never equal to a number where Spark would cast. In columns
of one kind, compared with columns of the same kind, Python and SQL agree.
"""

from __future__ import annotations

from decimal import Decimal

from steadyview.algebra import Value
from steadyview.checking.compiled_view import CompiledView
from steadyview.checking.json_text import JsonValue, shown
from steadyview.errors import ConfigError

_KINDS = {int: "numbers", Decimal: "numbers", str: "texts", bool: "truths"}


class Kinds:
    """The kind of every column, from the first value that was seen in it.

    A column belongs to a relation; those of the view itself, to the relation without a name.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], tuple[str, str]] = {}

    def value(self, node: JsonValue, relation: str, column: str) -> Value:
        """The value, which must be of its column's kind."""
        if node.value is None:
            return None
        kind = _KINDS.get(type(node.value))
        if kind is None:
            raise node.wrong(f"expected a value, found {shown(node.value)}")
        known, place = self._known.setdefault((relation, column), (kind, node.path))
        if known != kind:
            raise node.wrong(f"expected {known} as at {place}, found {shown(node.value)}")
        return node.value

    def check_view(self, program: CompiledView) -> None:
        """Compared columns must be of one kind; the view's columns have the kinds they show."""
        for e in program.definition.equalities:
            left = self._known.get(program.column(e.left, e.left_column))
            right = self._known.get(program.column(e.right, e.right_column))
            if left and right and left[0] != right[0]:
                raise ConfigError(
                    f"the view compares {left[0]} at {left[1]} with {right[0]} at {right[1]}",
                    detail="what a database does then depends on its casts",
                )
        for column in program.shown:
            address = column.column and program.column(*column.column)
            if address and address in self._known:
                self._known["", column.name] = self._known[address]
