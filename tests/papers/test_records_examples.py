"""The examples of Jacobsen et al., step by step, and the smallest histories of what is not theirs.

Every script in `records` claims its first lines. Run this module to write into the files what is
done now; then read the difference.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.papers.records_script import WAYS, Play, expected, read
from tests.simulation.records.culprits import BY_SCRIPT, CULPRITS

SCRIPTS = sorted((Path(__file__).parent / "records").glob("*.scn"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_every_step_of_the_example(path: Path) -> None:
    script = read(path)
    plays = {name: Play(script, WAYS[name]) for name in script.claims}
    for number, (event, lines) in enumerate(script.steps, 1):
        assert expected(plays, event) == lines, f"step {number}: {event}"
    assert {name: play.level for name, play in plays.items()} == script.claims


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_ours_is_strong_where_another_way_is_convicted(path: Path) -> None:
    claims = read(path).claims
    ours = {name for name in claims if "ours" in name or name.endswith("apply if unseen")}
    assert {claims[name] for name in ours} == {"strong"}
    assert "flow" in path.stem or set(claims.values()) > {"strong"}


def test_every_example_of_the_paper_has_a_script() -> None:
    places = {path.stem.split("_")[2] for path in SCRIPTS if "_example_" in path.stem}
    assert places == {"1", "2", "3", "min"}


def test_what_dice_do_not_find_has_a_script() -> None:
    rare = {culprit.name for culprit in CULPRITS if culprit.within == BY_SCRIPT}
    assert rare <= {name for path in SCRIPTS for name in read(path).claims}


if __name__ == "__main__":
    from tests.papers.records_script import written

    for script_path in SCRIPTS:
        script_path.write_text(written(script_path))
