"""From rounds to the table: each figure is a list over the rounds, shown as median and range."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from statistics import median

from benchmarks.measuring import FURTHER, PLAIN, RECOMPUTE, Applied, Round
from benchmarks.site import SHORT, VIEWS
from benchmarks.sizes import Sizes

SECONDS, TIMES, MICROS, RATE, RATIO, CPU = "s", "x", "us", "/s", "of", "CPU-s"
MEGABYTES = "MB"

_FORMS = {
    SECONDS: "{:.3f} s",
    TIMES: "{:.1f}x",
    MICROS: "{:.1f} us",
    RATE: "{:,.0f}/s",
    RATIO: "{:.2f}",
    CPU: "{:.1f} CPU-s",
    MEGABYTES: "{:.2f} MB",
}


@dataclass(frozen=True)
class Finding:
    """One line of the table. `most`/`least` is the target, None where a figure is only reported."""

    what: str
    view: str
    unit: str
    values: Sequence[float]
    most: float | None = None
    least: float | None = None

    @property
    def median(self) -> float:
        """The middle one."""
        return median(self.values)

    @property
    def verdict(self) -> str:
        """Whether the median meets the target."""
        if self.most is None and self.least is None:
            return "-"
        met = self.median <= self.most if self.most is not None else self.median >= self.least
        return "met" if met else "missed"

    @property
    def target(self) -> str:
        """As text."""
        if self.most is not None:
            return f"<= {shown(self.most, self.unit)}"
        return f">= {shown(self.least, self.unit)}" if self.least is not None else "-"


def shown(value: float | None, unit: str) -> str:
    """A figure with its unit.

    >>> shown(0.7512, "s"), shown(41234.4, "/s"), shown(17.2, "us"), shown(5, "x")
    ('0.751 s', '41,234/s', '17.2 us', '5.0x')
    >>> shown(12.34, "s"), shown(0.446, "of"), shown(3.21, "CPU-s")
    ('12.3 s', '0.45', '3.2 CPU-s')
    """
    assert value is not None
    if unit == SECONDS and value >= 10:
        return f"{value:.1f} s"
    return _FORMS[unit].format(value)


def findings(
    rounds: Sequence[Round], applied: Mapping[str, Applied], exported: float, sizes: Sizes
) -> list[Finding]:
    """The whole table, targets first."""
    may_lack = {RECOMPUTE, PLAIN, *(FURTHER if sizes.brief else ())}

    def each(figure: Callable[[Round], float]) -> list[float]:
        return [value for r in rounds for value in _measured(figure, r, may_lack)]

    found: list[Finding] = []
    for view, short in SHORT.items():
        found += _anew(view, short, each, applied[view], exported)
        found += _targets(view, short, each, sizes)
    for view, short in SHORT.items():
        found += _beside(view, short, each, sizes)
        found += _applied(view, short, each, applied[view])
    found.append(Finding("export of the used columns to Parquet", "both", SECONDS, [exported]))
    both = each(lambda r: r.seconds["small, both views", "both"])
    found.append(Finding(f"{sizes.small:,} changes, both views in a batch", "both", SECONDS, both))
    for case, label in (("small", sizes.small), ("large", sizes.large)):
        took = each(lambda r, c=case: r.seconds[c, "capture"])
        what = f"{label:,} changes: captured and admitted after their last commit"
        found.append(Finding(what, "both", SECONDS, took))
    found = [finding for finding in found if finding.values]
    # the targets are for much data and for statements that Spark has compiled
    return [replace(f, most=None, least=None) for f in found] if sizes.brief else found


def _measured(figure: Callable[[Round], float], r: Round, may_lack: Set[str]) -> list[float]:
    """The figure; none where the round was free not to measure it."""
    try:
        return [figure(r)]
    except KeyError as missing:
        case, _ = missing.args[0]
        if case not in may_lack:
            raise
        return []


Each = Callable[[Callable[[Round], float]], list[float]]


def _anew(
    view: str, short: str, each: Each, applied: Applied, exported: float
) -> list[Finding]:
    """Computing the view anew against a refresh by 0.1 % with the apply that it causes."""

    def ratio(anew: str, more: float = 0) -> list[float]:
        kept = applied.amortised
        return each(lambda r: (r.seconds[anew, view] + more) / (r.seconds["share", view] + kept))

    what = "0.1 % of the rows changed:"
    return [
        Finding(f"{what} recompute / refresh + apply", short, TIMES, ratio(RECOMPUTE), least=5),
        Finding(f"{what} Spark alone from Parquet / refresh + apply", short, TIMES, ratio(PLAIN)),
        Finding(
            f"{what} export + Spark alone / refresh + apply",
            short,
            TIMES,
            ratio(PLAIN, exported),
        ),
    ]


def _applied(view: str, short: str, each: Each, applied: Applied) -> list[Finding]:
    kept = each(lambda r: r.seconds["share", view] + applied.amortised)
    many = len(applied.happened)
    return [
        Finding("0.1 %: refresh + apply, amortised", short, SECONDS, kept),
        Finding(f"apply as it happens, {many} x 0.1 %", short, SECONDS, applied.happened),
        Finding("apply of 0.1 % of the rows alone", short, SECONDS, applied.alone),
    ]


def _targets(view: str, short: str, each: Each, sizes: Sizes) -> list[Finding]:
    def ratio(case: str, other: str) -> list[float]:
        return each(lambda r: r.seconds[case, view] / r.seconds[other, view])

    def marginal(r: Round) -> float:
        more = r.changes["large"] - r.changes["small"]
        return (r.seconds["large", view] - r.seconds["small", view]) / more * 1_000_000

    scales = f"SF {sizes.smaller_scale:g} -> SF {sizes.scale:g}"
    small = each(lambda r: r.seconds["small", view])
    return [
        Finding(
            f"cost of a further change, {sizes.small:,} -> {sizes.large:,}",
            short,
            MICROS,
            each(marginal),
            most=25,
        ),
        Finding(f"small batch: {sizes.small:,} changes", short, SECONDS, small, most=1),
        Finding(
            f"hot row: {sizes.hot:,} transactions at one order / spread",
            short,
            TIMES,
            ratio("hot", "spread"),
            most=3,
        ),
        Finding(
            "hot row, a column of the view / spread",
            short,
            TIMES,
            ratio("hot, kept", "spread, kept"),
            most=3,
        ),
        Finding(
            f"same change, {scales}",
            short,
            TIMES,
            ratio("small", "small at smaller scale"),
            most=1.3,
        ),
    ]


def _beside(view: str, short: str, each: Each, sizes: Sizes) -> list[Finding]:
    def took(case: str) -> list[float]:
        return each(lambda r: r.seconds[case, view])

    rate = each(lambda r: r.changes["large"] / r.seconds["large", view])
    return [
        Finding(f"{sizes.large:,} changes in a batch", short, RATE, rate),
        Finding(f"{sizes.large:,} changes in a batch", short, SECONDS, took("large")),
        Finding(f"{sizes.tiny:,} changes", short, SECONDS, took("tiny")),
        Finding(f"0.1 %: refresh ({sizes.share:,} changes)", short, SECONDS, took("share")),
        Finding("0.1 %: recompute", short, SECONDS, took(RECOMPUTE)),
        Finding("0.1 %: Spark alone from Parquet", short, SECONDS, took(PLAIN)),
        Finding("hot row", short, SECONDS, took("hot")),
        Finding("hot row, a column of the view", short, SECONDS, took("hot, kept")),
    ]


def parts(rounds: Sequence[Round], case: str = "small") -> list[tuple[str, list[float]]]:
    """Median seconds of each part of a refresh, one column per view, largest first."""
    names = {name for r in rounds for v in VIEWS for name in r.parts[case, v]}
    table = [
        (name, [median(r.parts[case, v].get(name, 0.0) for r in rounds) for v in VIEWS])
        for name in names
    ]
    return sorted(table, key=lambda row: -sum(row[1]))
