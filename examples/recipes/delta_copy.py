"""A Delta table with a key that is always some state of a view: one MERGE for some commits.

    python -m examples.recipes.delta_copy PROJECT VIEW NAME FOLDER KEY [KEY...]

NAME is the subscription, KEY the columns that tell rows apart, such as those of GROUP BY. The
position is in the very commit that changes the rows, as an application's transaction version.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

import steadyview
from steadyview.runtime.subscribing import Delivery

OWN = ["_count", "_cn", "_time"]


def copy(project: str, view: str, name: str, folder: str, keys: list[str]) -> None:
    """Bring the table to the view's newest changes."""
    with steadyview.open(project) as warehouse, warehouse.subscribe(view, name) as reader:
        while (delivery := reader.next()) is not None:
            take(Path(folder), name, keys, delivery)
            reader.acknowledge()


def take(folder: Path, name: str, keys: list[str], delivery: Delivery) -> None:
    """Apply what the table does not hold yet, in one commit."""
    app = f"{name}:{delivery.epoch}"
    there = DeltaTable.is_deltatable(str(folder))
    last = DeltaTable(folder).transaction_version(app) if there else None
    if last is not None and last >= delivery.cn:
        return
    mark = CommitProperties(app_transactions=[Transaction(app, delivery.cn)])
    rows = pa.concat_tables(delivery.tables())
    if delivery.state:
        write_deltalake(
            folder,
            rows.drop_columns(OWN),
            mode="overwrite",
            schema_mode="overwrite",
            commit_properties=mark,
        )
        return
    rows = newest(rows.filter(pc.greater(rows["_cn"], -1 if last is None else last)), keys)
    same = " AND ".join(f"kept.{key} IS NOT DISTINCT FROM new.{key}" for key in keys)
    columns = [c for c in rows.column_names if c not in OWN]
    values = {column: f"new.{column}" for column in columns}
    (
        DeltaTable(folder)
        .merge(rows, same, source_alias="new", target_alias="kept", commit_properties=mark)
        .when_matched_delete("new._count < 0")
        .when_matched_update(values, predicate="new._count > 0")
        .when_not_matched_insert(values, predicate="new._count > 0")
        .execute()
    )


def newest(rows: pa.Table, keys: list[str]) -> pa.Table:
    """The last change of every key: deliveries are in the order of commits, going before coming."""
    others = [c for c in rows.column_names if c not in keys]
    last = pc.ScalarAggregateOptions(skip_nulls=False)
    found = rows.group_by(keys, use_threads=False).aggregate([(c, "last", last) for c in others])
    return found.rename_columns([*keys, *others])


if __name__ == "__main__":
    copy(*sys.argv[1:5], keys=sys.argv[5:])
