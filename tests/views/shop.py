"""The watched tables that the tests of this folder speak of."""

from __future__ import annotations

from pathlib import Path

from steadyview.changes import Column, RelationName, RelationSchema
from steadyview.maintenance.fitting import fitted
from steadyview.plans.draft import PlanDraft
from steadyview.views.analyze import analyze
from steadyview.views.definition import Definition
from steadyview.views.parse import ViewText, parse_view
from steadyview.views.plan import plan_view

HERE = Path(__file__).parent


def relation(
    source: str, path: tuple[str, ...], columns: str, indexes: tuple[str, ...] = ()
) -> RelationSchema:
    """Columns are given as `name TYPE, ...`; those whose type ends in `!` are not keyable."""
    pairs = [part.strip().rsplit(" ", 1) for part in columns.split(";")]
    described = tuple(Column(n, t.rstrip("!"), keyable=not t.endswith("!")) for n, t in pairs)
    return RelationSchema(RelationName(source, path), described, (), indexes)


ORDERS = relation(
    "sales",
    ("public", "orders"),
    "id BIGINT; customer_id BIGINT; placed DATE; note STRING!",
    ("id", "customer_id"),
)
LINES = relation(
    "sales",
    ("public", "order_lines"),
    "order_id BIGINT; price DECIMAL(12,2); quantity INT",
    ("order_id",),
)
CUSTOMERS = relation("crm", ("customers",), "id BIGINT; region STRING!", ("id",))
PLACES = relation("sales", ("public", "places"), "id INT; name STRING!")
ODD = relation(
    "Odd Source", ("My Schema", "Ta`ble"), "Key One INT; select INT; día STRING!; t0 INT"
)
RELATIONS = (
    ORDERS,
    LINES,
    CUSTOMERS,
    PLACES,
    ODD,
    relation("twice", ("a", "item"), "id INT"),
    relation("twice", ("b", "item"), "id INT"),
    relation("twice", ("B", "Item"), "id INT"),
    relation("audit", ("public", "orders"), "id INT; audited BOOLEAN"),
    relation("audit", ("old", "orders"), "id INT"),
)
UNSUPPORTED = {PLACES.name: {"shape": "geometry"}}
OTHER_VIEWS = {"other_view": (("id", "BIGINT"), ("n", "INT"))}


def view(text: str) -> ViewText:
    """The view in a file called v.sql."""
    return parse_view("v", text)


def plan(text: str) -> PlanDraft:
    """The plan of the view in a file called v.sql; of a forced algorithm, if it fits."""
    parsed = view(text)
    if parsed.algorithm is not None:
        define(text)
    return plan_view(parsed, RELATIONS, UNSUPPORTED, OTHER_VIEWS)


def define(text: str) -> Definition:
    """The definition of the view in a file called v.sql."""
    parsed = view(text)
    definition = analyze(parsed, RELATIONS, UNSUPPORTED, OTHER_VIEWS)
    if parsed.algorithm is not None:
        fitted(parsed, definition, parsed.algorithm)
    return definition
