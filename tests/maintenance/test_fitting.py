"""Which algorithms fit a view: the Strobe family needs keys, and keys that hold at every moment."""

from __future__ import annotations

import pytest

from steadyview.changes import Column, RelationName, RelationSchema
from steadyview.errors import ViewRefused
from steadyview.maintenance.fitting import fitted, keys_shown
from steadyview.views.analyze import analyze
from steadyview.views.parse import parse_view

TEXT = parse_view("v", "SELECT id, x FROM s.t")


def definition(key: tuple[str, ...], primary: tuple[str, ...]):
    columns = (Column("id", "BIGINT"), Column("x", "BIGINT"))
    relation = RelationSchema(RelationName("s", ("t",)), columns, key, primary=primary)
    return analyze(TEXT, [relation])


def test_a_shown_key_is_enough():
    view = definition(("id",), ("id",))
    assert fitted(TEXT, view, "strobe").name == "strobe"
    assert keys_shown(view) == (((0, 0),),)


@pytest.mark.parametrize(
    ("primary", "fact"),
    [((), "has no primary key\n"), (("id",), "no primary key that is neither nullable nor defer")],
)
def test_a_primary_key_that_is_no_key_is_refused_and_told_apart_from_none(primary, fact):
    view = definition((), primary)
    assert keys_shown(view) is None
    with pytest.raises(ViewRefused, match=fact) as refused:
        fitted(TEXT, view, "strobe")
    assert refused.value.code == "ALGORITHM_KEYS"
    assert fitted(TEXT, view, "sweep").name == "sweep"
