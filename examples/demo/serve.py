"""Run the demo's PostgreSQL until Ctrl-C: `python -m examples.demo.serve FOLDER`."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from examples.embedded_postgres import EmbeddedPostgres


def main(folder: Path) -> None:
    """Start the server, wait for a signal, stop the server."""
    server = EmbeddedPostgres(folder)
    signals = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        server.start()
        print(f"PostgreSQL runs at {server.url('sales')}\nCtrl-C stops it", flush=True)
        signal.sigwait(signals)
    finally:
        server.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
