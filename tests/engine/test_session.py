"""Settings that would change what a view's rows mean are refused before Spark starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from steadyview.engine.session import open_session
from steadyview.errors import ConfigError


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.sql.session.timeZone", "Europe/Rome"),
        ("spark.sql.ansi.enabled", "false"),
        ("spark.sql.variable.substitute", "true"),
    ],
)
def test_a_setting_that_decides_what_rows_are_is_refused(key: str, value: str) -> None:
    with pytest.raises(ConfigError, match=key) as refused:
        open_session("test", {key: value}, Path("unused"))
    assert refused.value.hint == f'remove "{key}" from [spark]'
