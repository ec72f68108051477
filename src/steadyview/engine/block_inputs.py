"""What the scans of a block read in a batch, ready for its statement.

Before a statement runs, the pairs that its joins would make are counted by key; where most of many
would be pairs of unchanged rows, the statement leaves those out (`plans/hot_keys.py`, `flags.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from steadyview.engine.frames import Frames
from steadyview.engine.window_input import WindowInput, as_key
from steadyview.plans.asking import Reached
from steadyview.plans.dialect import Spark
from steadyview.plans.flags import Reach, flags
from steadyview.plans.hot_keys import hot_joins
from steadyview.plans.lineage import Place
from steadyview.plans.operator import Flags, Operator, Rendering, walk
from steadyview.plans.scan import Scan, scans


@dataclass(frozen=True)
class BlockInputs:
    """`inputs[n]` is what scan n reads; `reached`: what was asked of the sides of the joins."""

    frames: Frames
    folder: Path
    inputs: Mapping[int, WindowInput]
    reached: Sequence[Reached[pa.Array]] = ()

    def at(self, block: Operator, cn: int) -> Rendering:
        """For the block's rows at cn."""
        return Rendering(Spark(), self._versions(block, cn, cn))

    def over(
        self, block: Operator, after: int, upto: int, *, compensated: bool = True
    ) -> Rendering:
        """For the block's change over (after, upto]."""
        versions = self._versions(block, after, upto, compensated=compensated)
        return Rendering(Spark(), versions, flags=self.flags(block, after, upto))

    def flags(self, block: Operator, after: int, upto: int) -> Flags:
        """Of the joins that would make too many pairs for nothing."""
        used = {s.number: s.used or (0,) for s in _scans(block)}

        def counts(scan: int, columns: tuple[int, ...]) -> pa.Table:
            return self.inputs[scan].key_counts(used[scan], columns, after, upto)

        hot = hot_joins(block, counts)
        entering = [r for r in self.reached if any(scans(join) <= r.side.scans for join in hot)]
        return flags(hot, block, [self.reach(reached) for reached in entering])

    def _versions(
        self, block: Operator, after: int, upto: int, *, compensated: bool = True
    ) -> dict[int, str]:
        return {
            scan.number: self.inputs[scan.number].versions(
                scan.used or (0,), after, upto, compensated=compensated
            )
            for scan in _scans(block)
        }

    def reach(self, reached: Reached[pa.Array]) -> Reach:
        """An end of a direction, its keys as views."""
        if reached.keys is None or reached.side.keys is None:
            return Reach(reached.side.scans, None)
        keys = tuple((place, self._keys(place, reached.keys)) for place in reached.side.keys)
        return Reach(reached.side.scans, keys)

    def _keys(self, place: Place, keys: pa.Array) -> str:
        """A view of the keys, in the type of the column that they were asked in."""
        type_ = self.inputs[place.scan].types[place.column]
        rows = pa.table({"k": as_key(keys, type_)})
        return self.frames.few("reach", rows, [("k", type_)], self.folder)


def _scans(block: Operator) -> list[Scan]:
    return [o for o in walk(block) if isinstance(o, Scan)]
