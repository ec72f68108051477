"""Beginning with a source anew, while what its views show stays readable.

A view that reads the source is marked stopped with the reason, keeps its states, and is built anew
beside them; when its new first state is there, it takes the old one's place in one step.
"""

from __future__ import annotations

from steadyview.catalog import Catalog, ViewRow
from steadyview.errors import ConfigError
from steadyview.nearest import nearest_or_all
from steadyview.runtime.kept import inputs_of, plan_of
from steadyview.runtime.parts import Parts
from steadyview.runtime.schemas import Recorded, record_relations
from steadyview.sources.contract import Source
from steadyview.views.mentions import mentions_source


def begin_anew(parts: Parts, source: Source) -> tuple[list[str], Recorded]:
    """Set the source up again, forget its log, have its views built anew; what was done and found.

    Its capture has ended. Killed in between, it is done again: a source without a position begins
    at its present, and a stopped view that has a replacement is being built.
    """
    renew_readers(parts.catalog, source.name)
    if source.name in {s.name for s in parts.catalog.sources.states()}:
        parts.catalog.sources.forget(source.name)
    parts.log.forget(source.name)
    done = source.remove()
    found = record_relations(parts, parts.reopen(source.name))
    return [*done, f'set up source "{source.name}" anew'], found


def rebuild(catalog: Catalog, name: str) -> str:
    """Have a view built anew beside what it shows; one that has no state is built again. Its name.

    What reads it is built anew with it, once that is planned.
    """
    row = next((r for r in catalog.views.all() if r.name.lower() == name.lower()), None)
    if row is None:
        raise ConfigError(
            f'there is no view "{name}" in the warehouse',
            hint=nearest_or_all(name, [r.name for r in catalog.views.all()])
            or "steadyview run builds the project's views",
        )
    if row.paused is not None:
        raise ConfigError(
            f'the file of view "{row.name}" is gone: it cannot be built anew',
            hint=f"put its file back, or run: steadyview view drop {row.name}",
        )
    if row.state == "refused":
        raise ConfigError(
            f'view "{row.name}" is refused: building it anew cannot help',
            detail=row.error,
            hint=f"correct its file; steadyview check says what is wrong with {row.name}",
        )
    if row.cn is not None:
        catalog.views.replace(row.name)
    elif row.state == "stopped":
        catalog.views.build_again(row.name)
    return row.name


def renew_readers(catalog: Catalog, source: str) -> None:
    """Stop the views that read the source, and have each built anew beside what it shows."""
    for row in readers(catalog, source):
        if row.cn is None:
            continue
        text = f'source "{source}" is being read anew; these rows are from before'
        catalog.views.stop(row.name, text, row.cn + 1)
        catalog.views.replace(row.name)


def readers(catalog: Catalog, source: str) -> list[ViewRow]:
    """The views and hidden nodes that read the source, themselves or over others."""
    rows = catalog.views.all()
    found = {row.name for row in rows if _reads(row, source)}
    while True:
        more = {r.name for r in rows if not found.isdisjoint(inputs_of(r))} - found
        if not more:
            return [row for row in rows if row.name in found]
        found |= more


def _reads(row: ViewRow, source: str) -> bool:
    plan = plan_of(row)
    if plan is None:
        return mentions_source(row.sql, source)
    return any(name.source == source for name in plan.used())
