"""The stories of Beyer et al., step by step: every script in `deferred` claims its first lines.

Run this module to write into the files what is done now; then read the difference.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.papers.deferred_script import Play, expected, read

SCRIPTS = sorted((Path(__file__).parent / "deferred").glob("*.scn"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_every_step_of_the_story(path: Path) -> None:
    script = read(path)
    plays = {name: Play(script, name) for name in script.claims}
    for number, (event, lines) in enumerate(script.steps, 1):
        assert expected(plays, event) == lines, f"step {number}: {event}"
    assert {name: play.broken for name, play in plays.items()} == script.claims


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_algorithm_2_is_clean_where_another_is_convicted(path: Path) -> None:
    claims = read(path).claims
    assert claims["algorithm 2"] == set()
    assert any(claims.values())


def test_every_story_of_section_4_and_the_example_of_section_6_has_a_script() -> None:
    places = {path.stem.split("_section_")[1][:3] for path in SCRIPTS}
    assert places == {"4_w", "4_1", "4_3", "4_4", "4_6", "4_8", "6_d"}


if __name__ == "__main__":
    from tests.papers.deferred_script import written

    for script_path in SCRIPTS:
        script_path.write_text(written(script_path))
