"""A node that only sums or projects the rows of another one, as a node over what that one reads.

    V(fold(project(J)))  is a fold of J, with the projection's expressions in the place of its names

Both then stand over one join J, and one statement computes the changes of both (`shared_join.py`):
the reader need not wait until the other's change is there. What the reader keeps and shows is the
same, so a batch may take either way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from steadyview.plans.fold import Fold
from steadyview.plans.node import Node
from steadyview.plans.plan import PlanNode
from steadyview.plans.project import Project
from steadyview.plans.renaming import renamed
from steadyview.plans.scan import Scan, column


def inlined(reader: PlanNode, read: PlanNode) -> PlanNode | None:
    """The reader over the inputs of `read`, the one node that it reads; None where it is more."""
    block, shown = reader.node.block, read.node.block
    if read.fold is not None or not isinstance(shown, Project) or len(reader.scans) != 1:
        return None
    scan = block.operand if isinstance(block, Project) else block
    if not isinstance(scan, Scan) or (reader.fold is None) != isinstance(block, Project):
        return None
    if any("->" in text for text in _texts(reader)):
        # a lambda's own names must not be renamed
        return None
    names = {
        column(scan.number, i): sql if _plain(sql) else f"CAST({sql} AS {type_})"
        for i, ((_, sql), (_, type_)) in enumerate(zip(shown.outputs, read.columns, strict=True))
    }
    keys = reader.fold.keys if reader.fold is not None else ()
    if any(k.sql in names and not _plain(names[k.sql]) for k in keys):
        # the keys that change stand in the other's change, but in no column below it
        return None
    return replace(reader, node=_over(reader.node, shown, names), inputs=read.inputs)


def _plain(sql: str) -> bool:
    """Whether it is a column as it is."""
    return sql.isidentifier()


def _over(node: Node, shown: Project, names: Mapping[str, str]) -> Node:
    """The node with other texts for the columns of its scan."""
    if node.fold is not None:
        return Node(shown.operand, _named(node.fold, names))
    assert isinstance(node.block, Project)
    outputs = tuple((name, renamed(sql, names)) for name, sql in node.block.outputs)
    return Node(Project(shown.operand, outputs))


def _named(fold: Fold, names: Mapping[str, str]) -> Fold:
    """Keys and sums speak of the block's columns; all else of keys and sums."""
    return replace(
        fold,
        keys=tuple(replace(k, sql=renamed(k.sql, names)) for k in fold.keys),
        sums=tuple(replace(s, sql=renamed(s.sql, names)) for s in fold.sums),
    )


def _texts(node: PlanNode) -> Iterator[str]:
    if node.fold is not None:
        yield from (key.sql for key in node.fold.keys)
        yield from (each.sql for each in node.fold.sums)
    elif isinstance(node.node.block, Project):
        yield from (sql for _, sql in node.node.block.outputs)
