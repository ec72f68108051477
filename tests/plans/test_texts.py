"""SELECT texts of every construct, nested, from text to rows: right at every cn.

The texts are read by the product's reader and kept by the product's rules; SQLite runs both these
and the texts themselves. A failing text is made small before it is shown.
"""

from __future__ import annotations

import os

import pytest

from tests.plans.read_texts import Case, case, refused, shrunk, wrong

TEXTS = int(os.environ.get("STEADYVIEW_TEXTS", "250"))


def judge(tried: Case) -> None:
    try:
        found = wrong(tried)
    except Exception as error:
        small = shrunk(tried).text().spark
        raise AssertionError(f"seed {tried.seed}, depth {tried.depth}: {small}") from error
    if found is not None:
        pytest.fail(f"seed {tried.seed}, depth {tried.depth}: {wrong(shrunk(tried))}")


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_a_text_is_kept_right_at_every_cn(depth: int) -> None:
    tried = [case(10_000 * depth + seed, depth) for seed in range(TEXTS)]
    for each in tried:
        judge(each)
    assert sum(refused(each) for each in tried) < TEXTS / 20
