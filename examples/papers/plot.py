"""A line chart as SVG, both axes logarithmic: small enough that no library is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import floor, log10

Points = Sequence[tuple[float, float]]
_WIDTH, _HEIGHT = 640, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 170, 40, 50
_COLOURS = ("#1b6ca8", "#c0392b", "#2e8b57", "#8e44ad", "#d68910", "#555555", "#16a0a0", "#b03a70")


@dataclass(frozen=True)
class Chart:
    """What a chart shows; x values are the ticks of their axis."""

    title: str
    across: str
    up: str
    lines: Mapping[str, Points]

    def svg(self) -> str:
        """The file's text."""
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
            'font-family="sans-serif" font-size="12">',
            f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
            _text(_LEFT, 22, self.title, size=14),
            *self._axes(),
        ]
        labels = self._labels()
        for (name, points), colour in zip(self.lines.items(), _COLOURS, strict=False):
            path = " ".join(f"{self._x(x):.1f},{self._y(y):.1f}" for x, y in points)
            parts.append(
                f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
            )
            x = _WIDTH - _RIGHT + 8
            parts.append(_text(x, labels[name], name, colour=colour))
        return "\n".join([*parts, "</svg>"]) + "\n"

    def _axes(self) -> list[str]:
        right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
        parts = [
            f'<path d="M{_LEFT} {_TOP}V{bottom}H{right}" fill="none" stroke="black"/>',
            _text((_LEFT + right) / 2, _HEIGHT - 12, self.across, anchor="middle"),
            _text(_LEFT, 36, self.up, size=11, anchor="start"),
        ]
        for x in self._xs():
            parts.append(_text(self._x(x), bottom + 18, f"{x:g}", anchor="middle"))
        for y in self._rungs():
            at = self._y(y)
            parts.append(f'<path d="M{_LEFT} {at:.1f}H{right}" stroke="#dddddd"/>')
            parts.append(_text(_LEFT - 6, at + 4, f"{y:g}", anchor="end"))
        return parts

    def _xs(self) -> list[float]:
        return sorted({x for points in self.lines.values() for x, _ in points})

    def _rungs(self) -> list[float]:
        low, high = self._span()
        steps = [m * 10.0**e for e in range(floor(log10(low)), 4) for m in (1, 2, 5)]
        return [y for y in steps if low <= y <= high]

    def _span(self) -> tuple[float, float]:
        values = [y for points in self.lines.values() for _, y in points]
        return min(values) * 0.9, max(values) * 1.1

    def _x(self, x: float) -> float:
        xs = self._xs()
        share = (log10(x) - log10(xs[0])) / (log10(xs[-1]) - log10(xs[0]))
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def _y(self, y: float) -> float:
        low, high = map(log10, self._span())
        return _HEIGHT - _BOTTOM - (log10(y) - low) / (high - low) * (_HEIGHT - _TOP - _BOTTOM)

    def _labels(self) -> dict[str, float]:
        """Where the names stand: beside the ends of their lines, not on each other."""
        found: dict[str, float] = {}
        last = 0.0
        for name, points in sorted(self.lines.items(), key=lambda line: self._y(line[1][-1][1])):
            last = max(self._y(points[-1][1]) + 4, last + 14)
            found[name] = last
        return found


def _text(
    x: float, y: float, text: str, *, anchor: str = "start", size: int = 12, colour: str = "black"
) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {place} font-size="{size}" fill="{colour}">{escape(text)}</text>'
