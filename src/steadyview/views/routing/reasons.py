"""Why a view cannot answer a query."""

from __future__ import annotations


class CannotAnswer(Exception):
    """The view cannot answer the query: which rule says so, and what is missing, for people.

    Raised inside this room alone: whoever asks gets an `Unrouted`.
    """

    def __init__(self, rule: str, why: str) -> None:
        super().__init__(why)
        self.rule = rule
        self.why = why
