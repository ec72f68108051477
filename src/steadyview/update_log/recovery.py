"""After a crash: what the catalog does not know never happened.

For every table of the source and every flush v > known: its files leave the table's list and the
disk. Numbers are not used again, because a table remembers the last one it saw.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from steadyview.delta import Table, slug
from steadyview.delta.failures import told
from steadyview.update_log.layout import app_of, flush_of, tables_of


def recover(root: Path, source: str, known_flush: int) -> int:
    """Remove the flushes after `known_flush`; the next number to use. Idempotent.

    Only under the lease, and while nobody writes to this source's log.
    """
    used = known_flush
    for table in tables_of(root, source):
        _remove_unknown(table, source, known_flush)
        used = max(used, table.app_version(app_of(source)))
        _clean(table, source, known_flush)
    return used + 1


def _remove_unknown(table: Table, source: str, known_flush: int) -> None:
    numbered = ((flush_of(file, source), file.relative) for file in table.files())
    unknown = [path for number, path in numbered if number is not None and number > known_flush]
    if unknown:
        table.commit(f"recover:{source}", table.version() + 1, removes=unknown)


def _clean(table: Table, source: str, known_flush: int) -> None:
    """Delete the folders of unknown flushes: nobody lists their files any more."""
    pattern = re.compile(re.escape(slug(app_of(source))) + r"-(\d+)")
    with told(table.path):
        for folder in (table.path / "data").glob("*"):
            found = pattern.fullmatch(folder.name)
            if found and int(found[1]) > known_flush:
                shutil.rmtree(folder)
