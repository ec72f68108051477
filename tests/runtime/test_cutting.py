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
    size.took(10, seconds=0.1)
    assert size.rows == WARM
    size.took(WARM, seconds=pieces.QUICK / 2)
    assert size.rows == 2 * WARM
    size.took(2 * WARM, seconds=(pieces.QUICK + pieces.SLOW) / 2)
    assert size.rows == 2 * WARM
    size.took(2 * WARM, seconds=pieces.SLOW + 1)
    assert size.rows == WARM


def test_the_first_piece_is_slow_for_spark_is_cold():
    size = PieceSize()
    size.took(COLD, seconds=pieces.SLOW + 1)
    assert size.rows == COLD
    size.took(COLD, seconds=pieces.SLOW + 1)
    assert size.rows == COLD // 2


@pytest.mark.parametrize("seconds", [0.1, 60.0])
def test_a_piece_of_few_rows_says_nothing_of_large_ones(seconds):
    size = PieceSize()
    size.took(10, 1.0)
    size.took(10, seconds)
    assert size.rows == WARM


def test_pieces_do_not_shrink_for_ever():
    size = size_of(LEAST)
    for _ in range(2):
        size.took(LEAST, 60.0)
    assert size.rows == LEAST


def test_a_life_after_one_that_was_killed_in_its_first_piece_begins_with_a_smaller_one(
    tmp_path: Path,
) -> None:
    assert pieces.noted(tmp_path) is None
    for name, text in (("batch-1", "40000 0"), ("batch-2", "12000 0"), ("batch-3", "")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "piece").write_text(text)
    (tmp_path / "batch-4").mkdir()
    pieces.note(tmp_path / "batch-4", 8_000, 0)
    assert pieces.noted(tmp_path) == (8_000, 0)
    size = pieces.PieceSize()
    size.interrupted(8_000, 0)
    assert size.rows == 2_000
    for _ in range(2):
        size.took(2_000, 30.0)
    assert size.rows == 1_000
    size.interrupted(4, 0)
    assert size.rows == pieces.LEAST


def test_a_life_that_had_finished_a_piece_had_the_right_size(tmp_path: Path) -> None:
    (tmp_path / "batch-1").mkdir()
    pieces.note(tmp_path / "batch-1", 8_000, finished=1)
    size = pieces.PieceSize()
    size.interrupted(*pieces.noted(tmp_path))
    assert size.rows == 8_000
    size.took(8_000, 1.0)
    assert size.rows == 16_000


def test_a_small_piece_first_says_nothing_of_the_size_of_large_ones():
    """Each life begins with a batch of a few rows, and is killed in the piece behind it."""
    rows, sizes = COLD, []
    for _ in range(4):
        size = pieces.PieceSize()
        size.interrupted(rows, finished=0)
        size.took(50, 0.5)
        sizes.append(rows := size.rows)
        assert size.finished == 0
    assert sizes == [COLD // 4, COLD // 16, LEAST, LEAST]


def test_lives_that_work_off_a_piece_each_catch_up():
    """A life has time for one slow piece and three quick ones; then it is killed in the next."""
    rows, finished, worked = 1_000, 1, []
    for _ in range(8):
        size = pieces.PieceSize()
        size.interrupted(rows, finished)
        before = sum(worked)
        for seconds in (5.0, 1.5, 1.5, 1.5):
            worked.append(size.rows)
            size.took(size.rows, seconds)
        rows, finished = size.rows, size.finished
        assert sum(worked) - before >= 4_000
    assert rows > COLD // 2
