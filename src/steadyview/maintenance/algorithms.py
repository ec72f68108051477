"""Every algorithm by name: how it is made, what it needs, what it promises.

The order is that of the papers. `batched-sweep` is the product's own way, the default: plans over
versions, on Spark, and in the simulator on messages. It is not made here; its promise is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from steadyview.errors import ConfigError
from steadyview.maintenance.c_strobe import CStrobe
from steadyview.maintenance.c_t_strobe import CTStrobe
from steadyview.maintenance.conventional import Conventional
from steadyview.maintenance.eca import Eca
from steadyview.maintenance.eca_key import EcaKey
from steadyview.maintenance.events import Algorithm
from steadyview.maintenance.g_strobe import GStrobe
from steadyview.maintenance.nested_sweep import NestedSweep
from steadyview.maintenance.recompute import Recompute
from steadyview.maintenance.strobe import Strobe
from steadyview.maintenance.sweep import Sweep
from steadyview.maintenance.t_strobe import TStrobe
from steadyview.nearest import nearest_or_all

SINGLE, LOCAL, GLOBAL = "single", "source-local", "global"
_EVERYWHERE = frozenset({SINGLE, LOCAL, GLOBAL})
BATCHED = "batched-sweep"
Make = Callable[..., Algorithm[Any]]
"""From positions, algebra, the view's rows and whether it holds every key.

Of `plans`: from the view's plan, its relations and what is kept of it.
"""


@dataclass(frozen=True)
class Kind:
    """One algorithm.

    `holds_view`: its object is made with the view's rows and keeps them, so that they are needed
    once; the others know only changes.
    `promises`: the level per scenario; a scenario that is missing is none it is made for.
    `parameter`: what a number behind the name means (`c-t-strobe:3`). `whole`: states follow the
    order of admission rather than that of arrival, and `Install.upto` counts admitted transactions.
    `survives`: the scenarios in which the promise is kept also where the warehouse loses everything
    but the view as of its last whole install, and the updates that its `upto` does not cover are
    delivered to a new object. An algorithm that promises nothing claims no such thing.
    `plans`: views are plans over versions (`plans`): they may show groups, and an answer may
    reflect any set of its source's transactions. The others take FIFO channels for granted.
    """

    name: str
    make: Make | None
    promises: Mapping[str, str]
    keys: bool = False
    holds_view: bool = False
    one_source: bool = False
    quiescence: bool = False
    whole: bool = False
    plans: bool = False
    survives: frozenset[str] = frozenset()
    messages: str = "n - 1"
    parameter: str | None = None
    file: str = ""
    with_parameter: Callable[[int], Kind] | None = field(default=None, compare=False)


def _every(level: str, last: str | None = None) -> dict[str, str]:
    return {SINGLE: level, LOCAL: level, GLOBAL: last or level}


def _c_t_strobe(k: int) -> Kind:
    return Kind(
        "c-t-strobe" if k == 1 else f"c-t-strobe:{k}",
        lambda p, a, mv, _: CTStrobe(p, a, mv, k=k),
        _every("complete" if k == 1 else "strong", "weak"),
        keys=True,
        holds_view=True,
        survives=_EVERYWHERE,
        messages="up to (n - 1)! and more, per unit of k transactions",
        parameter="k: act after every k transactions",
        file="c_t_strobe.py",
        with_parameter=_c_t_strobe,
    )


def _nested_sweep(most: int | None = None) -> Kind:
    return Kind(
        f"nested-sweep:{most}" if most else "nested-sweep",
        lambda p, a, _mv, _: NestedSweep(p, a, most=most),
        _every("strong", "weak"),
        survives=_EVERYWHERE,
        messages="at most n - 1, shared by the updates absorbed",
        parameter="end after so many absorbed updates",
        file="nested_sweep.py",
        with_parameter=_nested_sweep,
    )


def _sweep(name: str, **options: bool) -> Kind:
    return Kind(
        name,
        lambda p, a, _mv, _: Sweep(p, a, **options),
        _every("complete", "complete" if options.get("whole") else "weak"),
        whole=options.get("whole", False),
        survives=_EVERYWHERE,
        file="sweep.py",
    )


_KINDS = (
    Kind(
        "conventional",
        lambda p, a, mv, keyed: Conventional(p, a, mv, keyed=keyed),
        _every("none"),
        holds_view=True,
        messages="n - 1 per insertion",
        file="conventional.py",
    ),
    Kind(
        "recompute",
        lambda p, a, mv, _: Recompute(p, a, mv),
        _every("strong", "weak"),
        holds_view=True,
        survives=_EVERYWHERE,
        messages="one per source and round",
        file="recompute.py",
    ),
    Kind(
        "eca",
        lambda p, a, _mv, _: Eca(p, a),
        {SINGLE: "strong", LOCAL: "strong"},
        one_source=True,
        quiescence=True,
        survives=frozenset({SINGLE, LOCAL}),
        messages="1, of quadratic size",
        file="eca.py",
    ),
    Kind(
        "eca-key",
        lambda p, a, mv, _: EcaKey(p, a, mv),
        {SINGLE: "none", LOCAL: "none"},
        keys=True,
        holds_view=True,
        one_source=True,
        quiescence=True,
        messages="1 per insertion",
        file="eca_key.py",
    ),
    Kind(
        "strobe",
        lambda p, a, mv, _: Strobe(p, a, mv),
        {SINGLE: "strong", LOCAL: "convergent", GLOBAL: "convergent"},
        keys=True,
        holds_view=True,
        quiescence=True,
        survives=_EVERYWHERE,
        messages="n - 1 per insertion, 0 per deletion",
        file="strobe.py",
    ),
    Kind(
        "t-strobe",
        lambda p, a, mv, _: TStrobe(p, a, mv),
        _every("strong", "weak"),
        keys=True,
        holds_view=True,
        quiescence=True,
        survives=_EVERYWHERE,
        messages="n - 1 per relation with insertions",
        file="t_strobe.py",
    ),
    Kind(
        "g-strobe",
        lambda p, a, mv, _: GStrobe(p, a, mv),
        _every("strong"),
        keys=True,
        holds_view=True,
        quiescence=True,
        survives=_EVERYWHERE,
        messages="n - 1 per relation with insertions",
        file="g_strobe.py",
    ),
    Kind(
        "c-strobe",
        lambda p, a, mv, _: CStrobe(p, a, mv),
        {SINGLE: "complete", LOCAL: "convergent", GLOBAL: "convergent"},
        keys=True,
        holds_view=True,
        survives=_EVERYWHERE,
        messages="up to (n - 1)! and more queries per insertion, 0 per deletion",
        file="c_strobe.py",
    ),
    _c_t_strobe(1),
    _sweep("sweep"),
    _sweep("sweep-parallel", parallel=True),
    _sweep("sweep-pipelined", pipelined=True),
    _sweep("sweep-whole", whole=True),
    _nested_sweep(),
    Kind(
        BATCHED,
        None,
        _every("complete"),
        whole=True,
        plans=True,
        survives=_EVERYWHERE,
        messages="2 (n - 1) per batch of any size",
        file="../plans/asking.py",
    ),
)
KINDS: Mapping[str, Kind] = {kind.name: kind for kind in _KINDS}


def kind_of(name: str) -> Kind:
    """The algorithm of that name; ConfigError if there is none.

    >>> kind_of("c-t-strobe:3").promises["single"]
    'strong'
    """
    plain, _, number = name.partition(":")
    found = KINDS.get(plain)
    if found is None:
        raise ConfigError(
            f'there is no algorithm "{name}"', hint=nearest_or_all(plain, KINDS)
        )
    if not number:
        return found
    if found.with_parameter is None or not number.isdecimal() or int(number) < 1:
        raise ConfigError(
            f'algorithm "{plain}" takes no number "{number}"',
            hint=f"write: {plain}" + (f":NUMBER ({found.parameter})" if found.parameter else ""),
        )
    return replace(found.with_parameter(int(number)), name=name)
