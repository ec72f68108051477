"""What the process that keeps the views does for other commands.

Queries are answered at once, beside the batches. What changes something is done between two
rounds; whoever asked waits for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from steadyview.errors import StorageUnavailable
from steadyview.runtime.compressing import CompressWanted
from steadyview.runtime.control import Answer, Stream, write_answer
from steadyview.runtime.keeping import Keeping
from steadyview.runtime.refreshing import CarryWanted, RefreshWanted
from steadyview.runtime.remote import AnswerFacts, Wanted

if TYPE_CHECKING:
    from steadyview.runtime.warehouse import Warehouse


class Wished:
    """A change that somebody waits for."""

    def __init__(self, change: Callable[[Keeping], Any]) -> None:
        self._change = change
        self._over = threading.Event()
        self._result: Any = None
        self._error: Exception | None = None

    def grant(self, keeping: Keeping) -> None:
        """Do it; see `keeping.Wish`."""
        try:
            self._result = self._change(keeping)
        except Exception as error:  # noqa: BLE001 - told to whoever wished for it
            self._error = error
        self._over.set()

    def give_up(self) -> None:
        """The keeping ends."""
        self._error = StorageUnavailable("the process that keeps the views ended", hint="try again")
        self._over.set()

    def result(self) -> Any:
        """What came of it, once it is done."""
        self._over.wait()
        if self._error is not None:
            raise self._error
        return self._result


class Attendant:
    """Answers the requests of other commands; see `control.Handler`."""

    def __init__(self, warehouse: Warehouse, keeping: Keeping) -> None:
        self._warehouse = warehouse
        self._keeping = keeping

    def __call__(self, request: dict[str, Any], stream: Stream) -> Answer | None:
        """The answer; rows of a query are written behind it."""
        kinds: dict[str, Callable[[], Answer | None]] = {
            "query": lambda: self._query(request, stream),
            "explain query": lambda: self._warehouse.routes(Wanted.of(request)).to_dict(),
            "resnapshot": lambda: self._wished(lambda k: k.resnapshot(request["name"])),
            "remove": lambda: self._wished(lambda k: k.remove(request["name"])),
            "drop": lambda: self._wished(
                lambda k: k.drop(request["name"], cascade=request["cascade"])
            ),
            "rename": lambda: self._wished(lambda k: _places(k, request)),
            "refresh": lambda: self._wished(lambda k: _refreshed(k, request)),
            "compress": lambda: self._wished(
                lambda k: k.compress(CompressWanted.of(request)).to_dict()
            ),
            "carry": lambda: self._wished(lambda k: k.carry(CarryWanted.of(request))),
            "rebuild": lambda: self._wished(lambda k: k.rebuild(request["name"])),
        }
        return kinds[request["do"]]()

    def _wished(self, change: Callable[[Keeping], Any]) -> Answer:
        wished = Wished(change)
        self._keeping.wish(wished)
        return {"done": wished.result()}

    def _query(self, request: dict[str, Any], stream: Stream) -> None:
        found = self._warehouse.answered(Wanted.of(request))
        with closing(found):
            rows = found.rows()
        write_answer(stream, AnswerFacts.of(found, cut=rows.cut).to_dict())
        with pa.ipc.new_stream(stream, rows.table.schema) as sink:
            sink.write_table(rows.table)


def _refreshed(keeping: Keeping, request: dict[str, Any]) -> dict[str, Any]:
    wanted = RefreshWanted(tuple(request["views"]), request["everything"], request["to"])
    return keeping.refresh(wanted).to_dict()


def _places(keeping: Keeping, request: dict[str, Any]) -> list[dict[str, Any]]:
    return [place.to_dict() for place in keeping.rename(request["name"], request["new"])]
