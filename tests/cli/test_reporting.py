"""How a command ends badly: exit codes, three-part messages, JSON for scripts."""

from __future__ import annotations

import json

import pytest
import typer

from steadyview.cli.reporting import reporting
from steadyview.errors import (
    ColumnLost,
    ConfigError,
    SourceUnavailable,
    StorageUnavailable,
    ViewRefused,
    WarehouseHeld,
)


def code_of(error: BaseException, **options: bool) -> int:
    with pytest.raises(typer.Exit) as caught, reporting(**options):
        raise error
    return caught.value.exit_code


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("x"), 2),
        (ViewRefused("SV001", "x"), 2),
        (WarehouseHeld("x"), 2),
        (SourceUnavailable("x"), 3),
        (StorageUnavailable("x"), 3),
        (ValueError("x"), 70),
        (KeyboardInterrupt(), 130),
    ],
)
def test_the_exit_code_says_whether_trying_again_can_help(error, code):
    assert code_of(error) == code


def test_an_error_is_told_as_fact_detail_and_hint(capsys):
    code_of(ConfigError('"a" is wrong', detail="found [b]", hint="run: c"))
    out, err = capsys.readouterr()
    assert out == ""
    assert err == '"a" is wrong\ndetail: found [b]\nhint: run: c\n'


def test_an_error_for_a_script_is_one_json_object(capsys):
    code_of(ColumnLost("gone", relation="sales.orders", column="Ä", hint="run: c"), as_json=True)
    assert json.loads(capsys.readouterr().err) == {
        "error": {
            "kind": "ColumnLost",
            "transient": False,
            "message": "gone",
            "detail": None,
            "hint": "run: c",
            "relation": "sales.orders",
            "column": "Ä",
        }
    }


def test_a_traceback_is_shown_only_when_asked_for(capsys):
    code_of(ConfigError("x"))
    assert "Traceback" not in capsys.readouterr().err
    code_of(ConfigError("x"), debug=True)
    assert "Traceback" in capsys.readouterr().err


def test_a_fault_of_our_own_is_not_dressed_up_as_the_users(capsys):
    code_of(KeyError("x"))
    assert "a fault of its own" in capsys.readouterr().err
