"""The views of a project, kept by whichever steadyview is on the path, batch by batch, as told.

    python -P keeper.py FOLDER

A program of its own that imports nothing of this package and only such parts of the product as an
older version has too. It builds the first states and says so; then it reads words from standard
input and answers each by a line of JSON:

    capture   wait until everything that is committed is captured
    refresh   one batch, then apply as `run` does it: {"refresh": seconds, "apply": seconds}
    rows      {view: [rows, checksum]}, to see that two versions show the same
"""

from __future__ import annotations

import json
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import steadyview
from steadyview.runtime.keeping import Keeping
from steadyview.runtime.maintainer import Maintainer

_CHECKSUM = "CAST(BIT_XOR(XXHASH64(*)) AS STRING)"


class Keeper:
    """An open warehouse whose batches are called one by one."""

    def __init__(self, warehouse: Any, keeping: Keeping) -> None:
        self._warehouse, self._captures = warehouse, keeping.captures
        self._parts = warehouse._parts
        self._plans = warehouse._plans(keeping._relations)
        self._maintainer = Maintainer(self._parts, self._plans, keeping.captures.wait_for)
        self._maintainer.reconcile()
        self._sources = frozenset(self._parts.sources)
        self._captures.start()
        self._maintainer.cycle(self._sources, building=True)

    def capture(self) -> dict[str, Any]:
        """Until everything committed is captured."""
        for name, source in self._parts.sources.items():
            with closing(source.snapshot()) as snapshot:
                self._captures.wait_for(name, snapshot.horizon)
        return {}

    def refresh(self) -> dict[str, Any]:
        """From freezing the sources to publication; then bases, if they are due."""
        started = time.perf_counter()
        self._maintainer.cycle(self._sources, building=False)
        published = time.perf_counter()
        self._maintainer.apply()
        last = self._parts.catalog.commits.last_cn()
        behind = [r.name for r in self._parts.catalog.views.all() if r.cn != last]
        assert not behind, behind
        return {"refresh": published - started, "apply": time.perf_counter() - published}

    def rows(self) -> dict[str, Any]:
        """How many rows every view shows, and a checksum of them."""
        shown = {p.name: self._warehouse.view(p.name).read() for p in self._plans}
        return {
            name: list(frame.selectExpr("COUNT(*)", _CHECKSUM).first())
            for name, frame in shown.items()
        }


def main() -> None:
    """Build, then do as told until standard input ends."""
    with steadyview.open(Path(sys.argv[1])) as warehouse:
        # as `run` does, where the version knows the difference
        warehouse._lasting = True
        with_plans = Keeping(warehouse._parts, warehouse._plans)
        try:
            keeper = Keeper(warehouse, with_plans)
            _answer({"from": steadyview.__file__})
            for line in sys.stdin:
                _answer(getattr(keeper, line.strip())())
        finally:
            with_plans.stop()


def _answer(found: dict[str, Any]) -> None:
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
