"""Where a backlog is cut, and how large the next piece is. No Spark."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from steadyview.runtime import pieces
from steadyview.runtime.pieces import COLD, LEAST, WARM, PieceSize, Steps


def steps(*rows: int) -> Steps:
    return Steps(np.arange(1, len(rows) + 1), np.array(rows))


def size_of(rows: int) -> PieceSize:
    size = PieceSize()
    size.rows = rows
    return size


def cuts(size: PieceSize, left: Steps, upto: int) -> list[int]:
    found = [size.end(left, upto)]
    while found[-1] < upto:
        found.append(size.end(left.after(found[-1]), upto))
    return found


def test_a_small_batch_is_one_piece():
    assert size_of(10).fits(15)
    assert cuts(size_of(10), steps(5, 5, 5), 7) == [7]
    assert cuts(size_of(10), steps(), 7) == [7]


def test_a_backlog_is_cut_between_transactions_at_about_the_size():
    assert cuts(size_of(10), steps(*[3] * 12), 20) == [3, 6, 9, 20]


def test_a_transaction_larger_than_a_piece_is_a_piece():
    assert cuts(size_of(10), steps(100, 1, 100, 100, 1, 1), 6) == [1, 2, 3, 4, 6]


def test_pieces_of_a_huge_backlog_are_a_share_of_it():
    huge = steps(*[1] * 3200)
    assert size_of(10).end(huge, 3200) == 100


def test_a_quick_piece_is_followed_by_a_larger_one_and_a_slow_one_by_a_smaller():
    size = PieceSize()
    assert size.rows == COLD
    size.took(COLD, seconds=pieces.SLOW + 1)
    assert size.rows == COLD // 2
    size.took(10, seconds=0.1)
    assert size.rows == WARM
    size.took(WARM, seconds=pieces.QUICK / 2)
    assert size.rows == 2 * WARM
    size.took(2 * WARM, seconds=(pieces.QUICK + pieces.SLOW) / 2)
    assert size.rows == 2 * WARM


@pytest.mark.parametrize("seconds", [0.1, 60.0])
def test_a_piece_of_few_rows_says_nothing_of_large_ones(seconds):
    size = PieceSize()
    size.took(10, 1.0)
    size.took(10, seconds)
    assert size.rows == WARM


def test_pieces_do_not_shrink_for_ever():
    size = size_of(LEAST)
    size.took(LEAST, 60.0)
    assert size.rows == LEAST


def test_a_life_after_one_that_was_killed_in_a_piece_begins_with_a_smaller_one(
    tmp_path: Path,
) -> None:
    assert pieces.noted(tmp_path) is None
    for name, text in (("batch-1", "40000"), ("batch-2", "12000"), ("batch-3", "")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "piece").write_text(text)
    (tmp_path / "batch-4").mkdir()
    pieces.note(tmp_path / "batch-4", 8_000)
    assert pieces.noted(tmp_path) == 8_000
    size = pieces.PieceSize()
    size.interrupted(8_000)
    assert size.rows == 2_000
    size.took(2_000, 30.0)
    assert size.rows == 1_000
    size.interrupted(4)
    assert size.rows == pieces.LEAST
