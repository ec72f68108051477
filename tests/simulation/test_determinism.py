"""One seed is one history: in this process, in another one, with any hash seed, on any worker."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from steadyview.maintenance.algorithms import KINDS, kind_of
from steadyview.simulation import Sizes, measured, simulated, workers

ROOT = Path(__file__).parent.parent.parent


def fingerprint(seeds: range) -> str:
    digest = hashlib.sha256()
    for kind in KINDS.values():
        for scenario in kind.promises:
            for seed in seeds:
                run = simulated(kind, scenario, seed, Sizes())
                digest.update(run.history.to_json().encode())
                digest.update(repr(run.trace.choices).encode())
                digest.update(repr(run.trace.lookups).encode())
    return digest.hexdigest()


def test_the_same_seed_gives_the_same_history():
    assert fingerprint(range(20)) == fingerprint(range(20))


def test_another_seed_gives_another_history():
    assert fingerprint(range(1)) != fingerprint(range(1, 2))


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_other_processes_and_hash_seeds_give_the_same_histories(hash_seed):
    program = (
        "from tests.simulation.test_determinism import fingerprint; print(fingerprint(range(20)))"
    )
    environment = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"}
    printed = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert printed.strip() == fingerprint(range(20))


def test_the_number_of_processes_changes_nothing():
    kind, seeds = kind_of("c-t-strobe:3"), range(5, 1_205)
    with workers(2) as mapped:
        assert measured(kind, "global", seeds, mapped=mapped) == measured(kind, "global", seeds)


def test_a_culprit_is_not_sent_to_another_process_under_an_honest_name():
    culprit = replace(kind_of("strobe"), make=lambda *_: None)
    with workers(2) as mapped, pytest.raises(AssertionError, match="stays at home"):
        measured(culprit, "single", range(300), mapped=mapped)


def test_the_simulator_never_loads_spark():
    program = (
        "import sys; from steadyview.cli.app import app\n"
        "try: app(['simulate', '--algorithm', 'all', '--seeds', '1..5'])\n"
        "except SystemExit as done: assert done.code in (0, None), done.code\n"
        "assert not {'pyspark', 'psycopg', 'deltalake'} & set(sys.modules), sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
