"""Which rows of a group decide its least and its greatest value over a window: its ends.

Let R(c) be rows of groups and values, each there once or not at all, and L the rows that a log
around c says anything of. A row outside L is there all the time or never, so of these only the
least and the greatest of each group can ever be shown:

    ends(R(c), L)  =  { r in R(c) : its value is one of L's }
                      + the least and the greatest of the others, of each group

With the log this gives the extremes of the group at every cn that the log reaches, however many
values a group has. No count of what may go is needed: whatever goes is in the log.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from steadyview.plans.extreme import Extreme
from steadyview.plans.lineage import origin
from steadyview.plans.moves import CN
from steadyview.plans.operator import Operator, walk
from steadyview.plans.versions import Logged, Reply, versions


@dataclass(frozen=True)
class Ends:
    """The columns of an input, by number: what groups are made of, and the values."""

    keys: tuple[int, ...]
    value: int

    def of(self, rows: pa.Table, logged: pa.Table) -> pa.Table:
        """The ends of the rows, which have these columns alone.

        >>> rows = pa.table({"c0": [7, 7, 7, 7, 8], "c1": [1, 2, 3, 4, 5]})
        >>> Ends((0,), 1).of(rows, pa.table({"c1": [1]})).to_pydict()
        {'c0': [7, 7, 8, 7], 'c1': [1, 2, 5, 4]}
        """
        keys, value = [f"c{i}" for i in self.keys], f"c{self.value}"
        wanted = pc.is_in(rows[value], value_set=pc.unique(logged[value]))
        if pa.types.is_floating(rows[value].type):  # NaN is the greatest to Spark, none to Arrow
            wanted = pc.or_(wanted, pc.fill_null(pc.is_nan(rows[value]), False))
        others = rows.filter(pc.invert(wanted)).group_by(keys, use_threads=False)
        found = others.aggregate([(value, "min"), (value, "max")])
        more = found.filter(pc.not_equal(found[f"{value}_min"], found[f"{value}_max"]))
        parts = [
            part.select([*keys, f"{value}_{end}"]).rename_columns([*keys, value])
            for part, end in ((found, "min"), (more, "max"))
        ]
        parts = [rows.filter(wanted), *parts]
        return pa.concat_tables([part.select(rows.column_names) for part in parts])

    def at(self, window: tuple[int, int], reply: Reply, log: Logged) -> pa.Table:
        """The ends at the window's start of a reply from any moment.

        `log`: what changed between the reply's moment, the window's start and its end.
        """
        columns = reply.rows.column_names
        cn = log.rows[CN].to_numpy()
        near = replace(reply, rows=self.of(reply.rows, log.rows))
        start = versions(columns, log, [near], window[0], window[0]).select(columns)
        return self.of(start, log.rows.filter(pa.array((cn > window[0]) & (cn <= window[1]))))


def ends(block: Operator) -> dict[int, Ends]:
    """The scans of a block of which the ends are enough."""
    found = {}
    for operator in walk(block):
        if isinstance(operator, Extreme):
            (value,) = origin(operator.operand, operator.column) or ()
            keys = [place for key in operator.keys for place in origin(operator.operand, key) or ()]
            found[value.scan] = Ends(tuple(place.column for place in keys), value.column)
    return found
