"""`steadyview query --explain`: which view answers a query over tables, and why not the others."""

from __future__ import annotations

import json

from steadyview.cli.tables import show, table
from steadyview.runtime.routes import RoutePlan


def show_routes(plan: RoutePlan, *, as_json: bool) -> None:
    """Print the plan."""
    if as_json:
        print(json.dumps(plan.to_dict(), ensure_ascii=False, indent=2))
        return
    taken = plan.taken
    if taken is None:
        print(plan.why or "no view answers it: its tables are asked")
    else:
        print(f'answered from view "{taken.view}" ({taken.rule}; {taken.rows:,} rows are stored)')
        print(f"  {taken.sql}")
    others = [(o.view, o.rule, o.why_not) for o in plan.offers if o.why_not is not None]
    others += [(t.view, t.rule, t.why) for t in plan.turned]
    if others:
        show(table(["view", "rule", "why not"], others))
