"""Transactions over accounts, and three views: the paper's two and one without aggregates.

    withdrawals = SELECT id, SUM(amount), COUNT(*) FROM moves WHERE amount < 0 GROUP BY id
    deposits    = SELECT id, SUM(amount), COUNT(*) FROM moves WHERE amount > 0 GROUP BY id
    owners      = SELECT id, name FROM accounts          (id is its key)

A statement locks one account until the end of its transaction, and moves money there or renames its
owner. Most transactions are transfers, which touch the first two views at different moments.
Beyer et al., section 4.3. An account belongs to a source, and lies on a node with its own clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from steadyview.maintenance.ipda.records import Groups

WITHDRAWALS, DEPOSITS, OWNERS = "withdrawals", "deposits", "owners"
VIEWS = (WITHDRAWALS, DEPOSITS, OWNERS)
NAMES = ("Paul", "Peter", "Patty")
_TRANSFERS, _MOVES, _ABORTED = 0.5, 0.75, 0.15


@dataclass(frozen=True)
class Account:
    """`id` says where it is: "crm.1" is of the source "crm"."""

    id: str
    node: int

    @property
    def source(self) -> str:
        """The database that has it."""
        return self.id.partition(".")[0]


@dataclass(frozen=True)
class AccountStatement:
    """Moves an amount, or gives the account's owner another name."""

    account: Account
    amount: int = 0
    name: str | None = None


@dataclass(frozen=True)
class Job:
    """A transaction to come; `node`: where it commits; `aborts`: instead, at the last moment."""

    id: str
    statements: tuple[AccountStatement, ...]
    node: int = 0
    aborts: bool = False

    @property
    def source(self) -> str:
        """Where it takes place."""
        return self.statements[0].account.source


@dataclass(frozen=True)
class Accounts:
    """Everything that is decided before a schedule runs."""

    jobs: tuple[Job, ...]
    skew: int
    """How far the second node's clock is before that of the first."""

    @property
    def views(self) -> dict[str, Groups]:
        """What the views show at first: no money was moved, and everything belongs to one."""
        there = {s.account.id for job in self.jobs for s in job.statements}
        first = {(account, NAMES[0]): (1,) for account in there}
        return {WITHDRAWALS: {}, DEPOSITS: {}, OWNERS: first}


def accounts(random: Random, sources: int) -> Accounts:
    """Three to six transactions, each at one of the sources."""
    jobs = tuple(_job(random, f"x{n}", sources) for n in range(1, random.randint(3, 6) + 1))
    return Accounts(jobs, random.choice((-1, 1)) * random.randint(2, 15))


def _job(random: Random, name: str, sources: int) -> Job:
    source = "abc"[random.randrange(sources)]
    there = [Account(f"{source}.{n}", n % 2) for n in range(1, 4)]
    statements = [s for _ in range(random.randint(1, 2)) for s in _statements(random, there)]
    aborts = random.random() < _ABORTED
    return Job(name, tuple(statements), random.randrange(2), aborts)


def _statements(random: Random, there: list[Account]) -> list[AccountStatement]:
    kind, amount = random.random(), random.randint(1, 3)
    if kind < _TRANSFERS:
        giver, taker = random.sample(there, 2)
        halves = [AccountStatement(giver, -amount), AccountStatement(taker, amount)]
        random.shuffle(halves)
        return halves
    if kind < _MOVES:
        return [AccountStatement(random.choice(there), random.choice((-1, 1)) * amount)]
    return [AccountStatement(random.choice(there), name=random.choice(NAMES))]
