"""Does a view equal its SQL text? Recompute, compare as bags, show examples."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame

from steadyview.engine.frames import Frames

_EXAMPLES = 5


@dataclass(frozen=True)
class Verification:
    """What verification found at one cn.

    `view`: also the name of a hidden node; `part`: "rows", or the "state" kept beside them.
    `missing`: rows (copies counted) that the SQL text gives and the view lacks; `extra`: the other
    way. `compensated`: log rows that took the sources from now back to the cn.
    """

    view: str
    cn: int
    equal: bool
    missing: int
    extra: int
    compensated: int
    seconds: float
    examples: list[dict[str, Any]] = field(default_factory=list)
    error: str | None = None
    """Why the view could not be compared; it counts as different then."""
    part: str = "rows"
    no_state: bool = False
    """Whether `error` is that it has no state at the cn: nothing was compared, nothing is wrong."""

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Difference:
    """How two bags differ: copies missing in and extra to the first, with some rows as examples."""

    missing: int
    extra: int
    examples: list[dict[str, Any]]


def difference(frames: Frames, view: DataFrame, recomputed: DataFrame) -> Difference:
    """Compare as bags, exactly: equal rows are counted, not matched up; NULL equals NULL."""
    names = [f"x{i}" for i in range(len(view.columns))]
    parts = []
    for frame, sign in ((view, "-1L"), (recomputed, "1L")):
        rows = frames.frame("compared", frame.toDF(*names))
        parts.append(f"SELECT *, {sign} AS n FROM {rows}")
    listed = ", ".join(names)
    spark = frames.spark
    unequal = frames.frame(
        "unequal",
        spark.sql(
            f"SELECT {listed}, SUM(n) AS n FROM ({' UNION ALL '.join(parts)}) "
            f"GROUP BY {listed} HAVING SUM(n) <> 0"
        ).persist(),
    )
    totals = spark.sql(
        "SELECT COALESCE(SUM(IF(n > 0, n, 0)), 0) AS missing, "
        f"COALESCE(SUM(IF(n < 0, -n, 0)), 0) AS extra FROM {unequal}"
    ).first()
    assert totals is not None
    found = Difference(int(totals["missing"]), int(totals["extra"]), [])
    if found.missing or found.extra:
        worst = spark.sql(
            f"SELECT * FROM {unequal} ORDER BY ABS(n) DESC, {listed} LIMIT {_EXAMPLES}"
        )
        examples = [_example(view.columns, row.asDict()) for row in worst.collect()]
        found = replace(found, examples=examples)
    spark.table(unequal).unpersist()
    return found


def _example(columns: list[str], row: dict[str, Any]) -> dict[str, Any]:
    n = row.pop("n")
    shown = dict(zip(columns, row.values(), strict=True))
    return {"missing" if n > 0 else "extra": abs(int(n)), "row": shown}
