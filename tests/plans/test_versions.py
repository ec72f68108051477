"""Versions of the used columns: a row that stays is one, whatever else of it changes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from steadyview.plans.moves import FOREVER
from steadyview.plans.versions import Logged, Reply, versions


def test_updates_of_other_columns_leave_one_version() -> None:
    cns = np.repeat(np.arange(1, 1_501), 2)
    log = pa.table({"c0": [7] * 3_000, "_count": [-1, 1] * 1_500, "_cn": cns})
    answer = Reply(pa.table({"c0": [7]}), np.zeros(3_000, dtype=bool))
    found = versions(["c0"], Logged(log), [answer], 0, 1_500)
    assert found.to_pylist() == [{"c0": 7, "_n": 1, "_from": 0, "_to": FOREVER}]


def test_a_row_that_goes_and_comes_back_has_two_versions() -> None:
    log = pa.table({"c0": [7, 7], "_count": [-1, 1], "_cn": [1, 3]})
    answer = Reply(pa.table({"c0": [7]}), np.zeros(2, dtype=bool))
    found = versions(["c0"], Logged(log), [answer], 0, 5).sort_by("_from")
    assert [(r["_from"], r["_to"]) for r in found.to_pylist()] == [(0, 1), (3, FOREVER)]
