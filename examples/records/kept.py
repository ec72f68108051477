"""What was measured, in a file: a long measurement may be interrupted and goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


class Kept:
    """Plain data by what it is of. Without a path only in memory."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._found: dict[str, Any] = {}
        lines = path.read_text().splitlines() if path is not None and path.exists() else []
        for line in lines:
            of, value = json.loads(line)
            self._found[json.dumps(of)] = value

    def __contains__(self, of: object) -> bool:
        return json.dumps(of) in self._found

    def __getitem__(self, of: object) -> Any:
        return self._found[json.dumps(of)]

    def add(self, of: object, value: Any) -> None:
        """At the end of the file."""
        self._found[json.dumps(of)] = value
        if self._path is not None:
            with self._path.open("a") as file:
                file.write(json.dumps([of, value]) + "\n")
