"""Runs: the values the commit table is made of (pure)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class AdmittedRun:
    """Consecutive transactions of one source, admitted together."""

    cn_from: int
    source: str
    seq_from: int
    seq_to: int
    time_from: int

    @property
    def cn_to(self) -> int:
        """The cn of the run's last transaction."""
        return self.cn_from + self.seq_to - self.seq_from


def cut(run: AdmittedRun, cn_from: int, cn_to: int) -> AdmittedRun:
    """The part of the run within cn_from..cn_to, which it meets."""
    first, last = max(run.cn_from, cn_from), min(run.cn_to, cn_to)
    skip = first - run.cn_from
    start = run.seq_from + skip
    return AdmittedRun(first, run.source, start, start + last - first, run.time_from + skip)


def cut_seq(run: AdmittedRun, seq_from: int, seq_to: int) -> AdmittedRun:
    """The part of the run within seq_from..seq_to, which it meets."""
    shift = run.cn_from - run.seq_from
    return cut(run, seq_from + shift, seq_to + shift)
