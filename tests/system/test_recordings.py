"""What a recording keeps of an algorithm's installs."""

from __future__ import annotations

import pyarrow as pa
import pytest

from steadyview.errors import ConfigError
from steadyview.papers import recording
from steadyview.papers.recording import Recording


def installs(*numbers: int) -> list[pa.Table]:
    return [pa.table({"c0": [n]}) for n in numbers]


def test_only_installs_that_became_durable_are_kept_when_an_object_is_forgotten():
    found = Recording("v")
    found.begins(3)
    for change in installs(1, 2, 3):
        found.installed(change)
    found.durable(waiting=1)
    assert found.states == installs(1, 2)
    found.begins(5)
    found.installed(installs(4)[0])
    found.durable(waiting=0)
    assert (found.start, found.states) == (3, installs(1, 2, 4))


def test_too_many_installs_are_told_at_the_end_and_not_in_the_middle_of_a_run(monkeypatch):
    monkeypatch.setattr(recording, "TRANSACTIONS", 2)
    found = Recording("v")
    found.begins(0)
    for change in installs(1, 2, 3):
        found.installed(change)
        found.durable(waiting=0)
    with pytest.raises(ConfigError, match="too large to be recorded"):
        _ = found.states


def test_installs_beyond_the_limit_that_never_became_durable_are_no_loss(monkeypatch):
    monkeypatch.setattr(recording, "TRANSACTIONS", 2)
    found = Recording("v")
    found.begins(0)
    found.installed(installs(1)[0])
    found.durable(waiting=0)
    for change in installs(2, 3):
        found.installed(change)
    found.begins(1)
    assert found.states == installs(1)
