"""A relation's recorded columns and its present ones, merged without renumbering (pure)."""

from __future__ import annotations

from dataclasses import replace

from steadyview.changes import Column, RelationSchema


def merge_schema(recorded: RelationSchema, current: RelationSchema) -> RelationSchema:
    """What is recorded, with the source's new columns appended.

    Recorded columns keep their number and type, also when the source dropped or retyped them (their
    log rows are of the recorded type), and so does the evidence, by which the source knows them
    again. Key and indexes are the present ones.
    """
    if recorded.name != current.name:
        raise ValueError(f"{recorded.name} is not {current.name}")
    present = {c.name: c for c in current.columns}
    kept = tuple(_kept(c, present.get(c.name)) for c in recorded.columns)
    known = {c.name for c in recorded.columns}
    added = tuple(c for c in current.columns if c.name not in known)
    evidence = recorded.evidence or current.evidence
    return replace(current, columns=kept + added, evidence=evidence)


def _kept(recorded: Column, present: Column | None) -> Column:
    """Only what does not change stored values follows the source: can it be looked up by?"""
    if present is None or present.type != recorded.type:
        return replace(recorded, keyable=False)
    return present
