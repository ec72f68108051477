"""Histories of a few transactions and steps, made by hand or drawn; and the properties, naively.

The naive forms are written from the definitions with sets and quantifiers, and share nothing with
the predicates but the recorded history.
"""

from __future__ import annotations

from itertools import product

from hypothesis import strategies as st

from steadyview.checking.deferred import (
    ONE_DATABASE,
    PER_SOURCE,
    ApplyStep,
    DeferredHistory,
    DeferredTransaction,
)

VIEWS = ("v", "w")


def transaction(name, begin, commit, end=None, items="", **rows) -> DeferredTransaction:
    """`v=(1, 2)` are its rows in the delta of v."""
    return DeferredTransaction(name, begin, commit, end or commit, rows, frozenset(items))


def history(transactions, *steps, order=ONE_DATABASE) -> DeferredHistory:
    """Steps are (view, target, rows)."""
    return DeferredHistory(transactions, [ApplyStep(*step) for step in steps], order)


@st.composite
def histories(draw) -> DeferredHistory:
    """Any steps over transactions that locks could have let through; targets ascend per view."""
    order = draw(st.sampled_from((ONE_DATABASE, PER_SOURCE)))
    transactions, freed, seqs, row = [], {}, {}, 0
    time = 0
    for number in range(draw(st.integers(1, 4))):
        items = draw(st.frozensets(st.sampled_from("ab"), max_size=1))
        time = max([time, *(freed[i] + 1 for i in items if i in freed)])
        commit = time + draw(st.integers(0, 2))
        begin = max(0, commit - draw(st.integers(0, 4)))
        end = commit + draw(st.integers(0, 2))
        source = draw(st.sampled_from("st")) if order == PER_SOURCE else "s"
        rows = {}
        for view in VIEWS:
            count = draw(st.integers(0, 2))
            rows[view] = tuple(range(row, row + count))
            row += count
        seqs[source] = seqs.get(source, 0) + 1
        freed |= dict.fromkeys(items, end)
        x = DeferredTransaction(
            f"x{number}", begin, commit, end, rows, items, source, seqs[source]
        )
        transactions.append(x)
        time = commit
    return DeferredHistory(transactions, draw(steps(transactions, time)), order)


@st.composite
def steps(draw, transactions, last):
    """Mostly what is due, sometimes something else."""
    found, before = [], dict.fromkeys(VIEWS, -1)
    for _ in range(draw(st.integers(0, 4))):
        view = draw(st.sampled_from(VIEWS))
        target = before[view] + draw(st.integers(1, last + 2))
        due = [
            row
            for x in transactions
            if before[view] < x.commit_time <= target
            for row in x.rows[view]
        ]
        every = [row for x in transactions for row in x.rows[view]] + [99]
        if draw(st.booleans()):
            due = draw(st.lists(st.sampled_from(every), max_size=4))
        found.append(ApplyStep(view, target, tuple(due)))
        before[view] = target
    return found


def before(h, x, y) -> bool:
    if x.items & y.items and x.commit_time < y.commit_time:
        return True
    if h.order == PER_SOURCE:
        return x.source == y.source and x.seq < y.seq
    return x.end < y.begin


def so_far(h, i) -> list[int]:
    return [r for s in h.steps[: i + 1] if s.view == h.steps[i].view for r in s.rows]


def reached(h, i) -> set[str]:
    view = h.steps[i].view
    return {x.id for x in h.transactions if set(x.rows.get(view, ())) & set(so_far(h, i))}


def naive(h: DeferredHistory) -> set[str]:
    """The properties that the history breaks."""
    n = range(len(h.steps))
    affecting = {v: [x for x in h.transactions if x.rows.get(v)] for v in VIEWS}
    newest = max((x.commit_time for x in h.transactions), default=0)
    last = {h.steps[i].view: i for i in n}
    rows = {i: so_far(h, i) for i in n}
    due = {
        i: sorted(
            r
            for x in affecting[h.steps[i].view]
            if x.commit_time <= h.steps[i].target
            for r in x.rows[h.steps[i].view]
        )
        for i in n
    }
    found = {
        "lost": any(
            h.steps[i].target >= newest and not set(x.rows[v]) <= set(rows[i])
            for v, i in last.items()
            for x in affecting[v]
        ),
        "redundant": any(len(set(rows[i])) < len(rows[i]) for i in n),
        "not atomic in a view": any(
            _part(x.rows[h.steps[i].view], h.steps[i].rows)
            for i in n
            for x in affecting[h.steps[i].view]
        ),
        "not atomic across views": any(
            _across(h, i, j, affecting) for i, j in product(n, n)
        ),
        "reordered": any(
            before(h, x, y) and y.id in reached(h, i) and x.id not in reached(h, i)
            for i in n
            for x, y in product(affecting[h.steps[i].view], repeat=2)
        ),
        "real time": any(sorted(rows[i]) != due[i] for i in n),
    }
    return {name for name, broken in found.items() if broken}


def _part(rows, taken) -> bool:
    return 0 < len(set(rows) & set(taken)) < len(rows)


def _across(h, i, j, affecting) -> bool:
    first, second = h.steps[i], h.steps[j]
    if first.view == second.view:
        return False
    common = {x.id for x in affecting[first.view]} & {x.id for x in affecting[second.view]}
    here, there = reached(h, i) & common, reached(h, j) & common
    if first.target == second.target:
        return here != there
    return first.target < second.target and not here <= there
