"""Where a view's table for other programs lies, and of which cn it is, without any library.

Every commit of such a table has a mark: JSON in `userMetadata` of its `commitInfo`. A newest commit
without one is somebody else's.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

TABLES, CHANGES = "views", "changes"
"""The folders of the warehouse that hold the tables of views, and those of their changes."""
_LONGEST = 200
"""Bytes of a name that every file system takes."""


@dataclass(frozen=True)
class TableMark:
    """The rows are those of `view` at `cn`, committed at `time` (ISO, None where forgotten).

    `id` is the view's in the catalog. A table of changes holds those after `base` up to `cn`.
    """

    view: str
    cn: int
    time: str | None
    id: int
    base: int | None = None

    def same(self, other: TableMark) -> bool:
        """Whether both say the same of the rows."""
        return (self.id, self.cn, self.base) == (other.id, other.cn, other.base)

    def metadata(self) -> dict[str, str]:
        """What a commit carries."""
        return {"userMetadata": json.dumps(asdict(self)), "cn": str(self.cn)}


def table_folder(root: Path, kind: str, view: str) -> Path:
    """Where the view's table of that kind is: under its name, as it is spelled."""
    name = view
    if len(view.encode()) > _LONGEST:
        from steadyview.delta.names import slug

        name = slug(view)
    return root / kind / name


def read_mark(folder: Path) -> TableMark | None:
    """The mark of the table's newest commit; None if there is no table, or it is not ours."""
    try:
        with _newest(folder / "_delta_log").open(encoding="utf-8") as file:
            found = json.loads(file.readline())["commitInfo"]["userMetadata"]
        return TableMark(**json.loads(found))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _newest(log: Path) -> Path:
    """The newest commit's file: a few steps behind the last checkpoint."""
    try:
        version = int(json.loads((log / "_last_checkpoint").read_text())["version"])
    except (OSError, ValueError, KeyError, TypeError):
        version = max((int(f.stem) for f in log.glob("*.json") if f.stem.isdigit()), default=0)
    while (log / f"{version + 1:020}.json").exists():
        version += 1
    return log / f"{version:020}.json"
