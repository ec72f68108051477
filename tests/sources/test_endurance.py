"""Killed readers, concurrent writers, huge transactions: on real databases of each family."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

from tests.sources.world import Bag, Watch, World, Writer, answer

ROOT = Path(__file__).parents[2]


def started(watch: Watch, position: str, seq: int, mode: str) -> tuple[subprocess.Popen[str], Path]:
    """A reader process, from a position on."""
    state = watch.world.folder / "reader.json"
    described = {
        "settings": watch.world.settings,
        "tables": [r.name.path[-1] for r in watch.relations],
        "folder": str(watch.world.folder),
        "warehouse": watch.world.owner.warehouse,
        "position": position,
        "seq": seq,
        "proof": watch.proofs.get(position, ""),
    }
    state.write_text(json.dumps(described))
    command = [sys.executable, "-W", "ignore", "-m", "tests.sources.reader", str(state), mode]
    environment = {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "PATH": "/usr/bin:/bin"}
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=ROOT,
    )
    return process, state.with_name("reader.json.log")


def durable(log: Path) -> list[dict[str, Any]]:
    """The chunks whose lines were written whole."""
    if not log.exists():
        return []
    whole = log.read_text().rpartition("\n")[0]
    log.write_text(whole + "\n" if whole else "")
    chunks = [json.loads(line) for line in whole.splitlines()]
    while chunks and chunks[-1]["open"]:
        chunks.pop()
    return chunks


def test_a_killed_reader_resumes_with_nothing_lost_and_nothing_twice(world: World) -> None:
    world.table("items", "id INTEGER PRIMARY KEY, name TEXT")
    watch = world.watch("items")
    watch.monitor.close()
    dice = random.Random(7)
    stop = threading.Event()
    writing = threading.Thread(target=keep_writing, args=(world.writer(), random.Random(1), stop))
    writing.start()
    position, seq = str(watch.start), 1
    try:
        for _ in range(3):
            process, log = started(watch, position, seq, "log")
            for _ in range(dice.randint(3, 12)):
                assert process.stdout is not None
                assert process.stdout.readline(), process.stderr and process.stderr.read()
            process.kill()
            process.communicate()
            chunks = durable(log)
            position = chunks[-1]["position"]
            watch.proofs[position] = chunks[-1]["proof"]
            seq = 1 + sum(len(c["seqs"]) for c in chunks)
    finally:
        stop.set()
        writing.join()
    world.reopen(watch, watch.source.position(position), seq)
    watch.drain()
    seqs = [s for c in chunks for s in c["seqs"]] + [t.seq for t in watch.transactions]
    assert seqs == list(range(1, len(seqs) + 1))
    total: Bag = Counter()
    for _, row in (r for c in chunks for r in c["rows"]):
        total[row["c0"], row["c1"]] += row["_count"]
    for row, count in watch.replay(watch.relations[0]).items():
        total[row] += count
    present = Counter(world.writer().execute("SELECT id, name FROM items"))
    assert Counter({r: n for r, n in total.items() if n}) == present


def keep_writing(writer: Writer, dice: random.Random, stop: threading.Event) -> None:
    number = 0
    while not stop.is_set():
        number += 1
        writer.execute("BEGIN")
        writer.execute("INSERT INTO items (id, name) VALUES (?, 'new')", number)
        writer.execute(
            "UPDATE items SET name = ? WHERE id = ?", f"v{number}", dice.randint(1, number)
        )
        if number % 3 == 0:
            writer.execute("DELETE FROM items WHERE id = ?", dice.randint(1, number))
        writer.execute("COMMIT")


def test_every_answer_is_the_replay_of_what_it_reflects_under_concurrent_writers(
    world: World,
) -> None:
    world.table("accounts", "id INTEGER PRIMARY KEY, owner TEXT, balance INTEGER")
    world.table("moves", "account INTEGER, amount INTEGER")
    watch = world.watch("accounts", "moves")
    writers = [
        threading.Thread(target=change_accounts, args=(world.writer(), random.Random(seed), seed))
        for seed in range(3)
    ]
    for thread in writers:
        thread.start()
    taken = []
    while any(t.is_alive() for t in writers):
        snapshot = watch.source.snapshot()
        answers = [answer(snapshot, r) for r in watch.relations]
        snapshot.close()
        taken.append((snapshot, answers))
        chunk = watch.monitor.poll(0.001)
        if chunk is not None:
            watch.chunks.append(chunk)
    watch.drain()
    assert len(taken) > 5
    for snapshot, answers in taken:
        reflected = [t.seq for t in watch.transactions if snapshot.reflects(t)]
        assert [watch.replay(r, reflected) for r in watch.relations] == answers
    assert any(answers[0] for _, answers in taken)


def change_accounts(writer: Writer, dice: random.Random, seed: int) -> None:
    """Transactions over two tables: accounts come, go, change keys; some change their mind."""
    numbers = [seed + 3 * n for n in range(8)]
    for _ in range(100):
        writer.execute("BEGIN")
        number = dice.choice(numbers)
        writer.execute("DELETE FROM accounts WHERE id = ?", number)
        writer.execute("INSERT INTO accounts VALUES (?, 'w', ?)", number, dice.randint(0, 5))
        writer.execute("INSERT INTO moves VALUES (?, ?)", number, dice.randint(0, 3))
        writer.execute("SAVEPOINT s")
        writer.execute(
            "UPDATE accounts SET balance = balance + 1, id = id + 1000 WHERE id = ?", number
        )
        writer.execute(dice.choice(["ROLLBACK TO SAVEPOINT s", "RELEASE SAVEPOINT s"]))
        writer.execute("DELETE FROM accounts WHERE id = ?", number + 1000)
        if dice.random() < 0.3:
            writer.execute("DELETE FROM moves WHERE account = ?", number)
        writer.execute("ROLLBACK" if dice.random() < 0.15 else "COMMIT")


def test_a_transaction_of_a_million_rows_passes_within_600_mb(world: World) -> None:
    world.table("items", "id INTEGER PRIMARY KEY, name TEXT, price DECIMAL(10,2)")
    watch = world.watch("items")
    watch.monitor.close()
    world.writer().execute(
        "INSERT INTO items WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
        " WHERE i < 1000000) SELECT i, 'name ' || i, i FROM n"
    )
    process, _ = started(watch, str(watch.start), 1, "measure")
    out, err = process.communicate()
    assert process.returncode == 0, err
    found = json.loads(out)
    assert found["images"] == 1_000_000
    assert found["ended"] == 1
    assert found["open"] >= 1
    assert found["largest"] < 600_000
    assert found["kb"] < 600 * 1024
