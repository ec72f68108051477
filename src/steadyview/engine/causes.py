"""The chain of causes behind an error of Spark's, each with its class, condition and SQLSTATE.

Spark hands its exceptions over as Java objects, which are asked. A task's error may have come to
the driver as mere text, in the message of the innermost cause: then its lines are read for the same
things, and this is the only place where that is done.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError

_TOLD = re.compile(
    r"^(?:Caused by: |.*\): )?((?:[a-z]\w*\.)+[A-Z][\w$]*)"
    r"(?:: ((?:\[([A-Z][A-Z0-9_.]*)\])?.*))?$",
    re.MULTILINE,
)
"""The head of a stack trace: class, message, and the condition in it."""
_STATE = re.compile(r"SQLSTATE: (\w{5})")


@dataclass(frozen=True)
class Cause:
    """One error of the chain: its Java class; condition and SQLSTATE only if it is Spark's own."""

    kind: str
    condition: str
    state: str
    message: str

    @property
    def of_spark(self) -> bool:
        """Whether it is Spark's own, told in Spark's words."""
        return self.kind.startswith("org.apache.spark.")

    @property
    def line(self) -> str:
        """The class and the first line of the message."""
        first = (self.message.splitlines() or [""])[0]
        return f"{self.kind}: {first}" if first else self.kind


def causes(error: BaseException) -> list[Cause]:
    """All of them, outermost first; none for an error that is not Spark's."""
    java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    found: list[Cause] = []
    # Spark may be gone: what is known by then has to do
    with suppress(Py4JError, OSError):
        while java is not None:
            found.append(_cause(java))
            java = java.getCause()
    return found + told_in(found[-1].message if found else str(error))


def told_in(text: str) -> list[Cause]:
    """The causes that a text of stack traces names.

    >>> task = "Lost task (TID 1): org.apache.spark.SparkException: [BY_ZERO] No. SQLSTATE: 22012"
    >>> [(c.kind, c.condition, c.state) for c in told_in(task)]
    [('org.apache.spark.SparkException', 'BY_ZERO', '22012')]
    >>> told_in("    at org.apache.spark.Task.run(Task.scala:147)")
    []
    """
    return [
        Cause(kind, condition, state[1] if (state := _STATE.search(said)) else "", said)
        for kind, said, condition in _TOLD.findall(text)
    ]


def _cause(java: Any) -> Cause:
    kind, message = str(java.getClass().getName()), str(java.getMessage() or "")
    condition = state = None
    # any error of Java has a class and a message, only Spark's have the others
    with suppress(Py4JError):
        condition, state = java.getCondition(), java.getSqlState()
    return Cause(kind, condition or "", state or "", message)
