"""The papers' examples, step by step: every `.scn` file in `examples` claims its first lines.

Run this module to write into the files what the algorithms do now; then read the difference.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from steadyview.checking import judge
from tests.papers.script import Play, read, written

SCRIPTS = sorted((Path(__file__).parent / "examples").glob("*.scn"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_every_step_of_the_example(path: Path) -> None:
    script = read(path)
    play = Play(script)
    for number, step in enumerate(script.steps, 1):
        assert play.happens(step.event) == step.expected, f"step {number}: {step.event}"
    assert play.lookups == script.lookups
    assert judge(play.history()).level == script.level


def test_every_example_of_the_strobe_paper_has_a_script() -> None:
    examples = {path.stem.split("_")[2] for path in SCRIPTS if "000_example" in path.stem}
    assert examples == set("1234567")


def test_a_wrong_step_is_found() -> None:
    """Example 1's ending is not what Strobe does in the same run."""
    script = read(next(path for path in SCRIPTS if "example_1_" in path.stem))
    script.algorithm = "strobe"
    play = Play(script)
    last = [play.happens(step.event) for step in script.steps][-1]
    assert "install: {(1,2,3,4)}" in script.steps[-1].expected
    assert "install: {(1,2,3,4)}" not in last


if __name__ == "__main__":
    for script_path in SCRIPTS:
        script_path.write_text(written(script_path))
