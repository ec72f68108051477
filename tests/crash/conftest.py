"""What the tests here share: a small shop."""

from tests.crash.shop import begun

__all__ = ["begun"]
