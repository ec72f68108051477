"""How a command ends badly: what is printed on standard error, and the exit code.

0    done
1    done, and the answer is "no": `verify` found a difference, `check` refused a view, `run --once`
     left a view refused or stopped
2    wrong usage, or a definite error: somebody has to change something first
3    a transient error: a source or the disk does not answer; the same command may work later
70   a fault of steadyview itself
130  interrupted (Ctrl-C)
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

import typer
from rich.console import Console
from rich.text import Text

from steadyview.errors import DefiniteError, SteadyviewError, TransientError


class ExitCode(IntEnum):
    """What the shell is told."""

    DONE = 0
    ANSWER_IS_NO = 1
    DEFINITE = 2
    TRANSIENT = 3
    FAULT = 70
    INTERRUPTED = 130


@contextmanager
def reporting(*, as_json: bool = False, debug: bool = False) -> Iterator[None]:
    """Turn what is raised inside into a report and an exit code.

    If `debug`, with a traceback, and Spark says what it has to say as well.
    """
    logger = logging.getLogger("steadyview")
    level = logger.level
    logger.setLevel(logging.DEBUG if debug else level)
    try:
        yield
    except (typer.Exit, typer.Abort, typer.BadParameter, BrokenPipeError):
        raise
    except KeyboardInterrupt:
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    except Exception as error:  # noqa: BLE001  the last stop before a person
        if debug:
            traceback.print_exc()
        report = _described(error)
        _print_report(report, error, as_json=as_json)
        raise typer.Exit(_exit_code(report)) from None
    finally:
        logger.setLevel(level)


def _described(error: Exception) -> SteadyviewError:
    if isinstance(error, SteadyviewError):
        return error
    # PySpark takes a second that `--help` should not cost; without it nothing is Spark's
    if "pyspark.errors" in sys.modules:
        from steadyview.engine.failures import described

        if (spark := described(error)) is not None:
            return spark
    return SteadyviewError(
        "steadyview met a fault of its own",
        detail=f"{type(error).__name__}: {error}",
        hint="run the command again with --debug and report what it prints",
    )


def _exit_code(report: SteadyviewError) -> ExitCode:
    if isinstance(report, TransientError):
        return ExitCode.TRANSIENT
    return ExitCode.DEFINITE if isinstance(report, DefiniteError) else ExitCode.FAULT


def _print_report(report: SteadyviewError, error: Exception, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"error": _as_dict(report, error)}, ensure_ascii=False), file=sys.stderr)
        return
    console = Console(stderr=True, soft_wrap=True, highlight=False)
    console.print(Text(report.message, style="bold red"))
    for word, text in (("detail", report.detail), ("hint", report.hint)):
        if text:
            console.print(Text.assemble((f"{word}: ", "bold"), text))


def _as_dict(report: SteadyviewError, error: Exception) -> dict[str, object]:
    facts = {
        "kind": type(error if type(report) is SteadyviewError else report).__name__,
        "transient": isinstance(report, TransientError),
        "message": report.message,
        "detail": report.detail,
        "hint": report.hint,
    }
    for extra in ("code", "line", "column", "relation"):
        if hasattr(report, extra):
            facts[extra] = getattr(report, extra)
    return facts
