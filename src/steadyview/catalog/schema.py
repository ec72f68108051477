"""The catalog's tables. FORMAT changes whenever an older program would misread them.

`runs` is the commit table: transaction seq_from + i of a source has cn_from + i, time_from + i.
`warehouse.oldest_cn`: commits before it are forgotten; `floor`: every commit to come is later.
A view's name is unique among the views that are not dropped; its `id` is never used again, so that
storage of a dropped view is never mistaken.
A `replacement` is built beside the view of its name, until it takes that one's place. `made_as` is
the name that a view's files are found by, whatever it is called now. `refusal` (and its code): why
the view's file, as it is now, does not take its place; `paused`: since when its file is gone;
`begun`: when it was added.
`file_changes` are what is still to be done to the project's view files: see `files.py`.
`typed` holds what Spark said about the types of a view's text over some relations.
`builds` are first builds that keep what they have read; `spans` say what that is.
`gaps` say where a view has no state: strictly between `low` and `high`; see `gaps.py`. `commits`:
how many changes were made one there, NULL where the view itself took them in one step; `pending`:
its files may still have them one by one.
`refreshes`: of deferred views, how far they are propagated, and for which tick they were refreshed.
`subscriptions`: the readers of change tables, and how far each is; see `subscriptions.py`.
`gates`: times that are bound to a cn, or to be bound; see `gates.py`. `sources.dated`: the latest
of the commit times that the source itself gave to what is admitted.
`warehouse.fence`: how often the lease was taken; who took it before may not write any more.
`streams`: what was handed out to readers that keep their own positions; see `streams.py`.
`holds`: for whom logs and changes are kept longer than the retention asks for; see `holds.py`.
`stream_leases`: which view manager has which log stream of which served view; see
`stream_leases.py`.
"""

from __future__ import annotations

FORMAT = 9

_CONTACTS = """CREATE TABLE contacts (
        source TEXT PRIMARY KEY REFERENCES sources (name) ON DELETE CASCADE,
        heard INTEGER,
        error TEXT,
        since INTEGER,
        definite INTEGER NOT NULL DEFAULT 0
    ) STRICT"""
_VIEWS = """CREATE TABLE views (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL,
        sql TEXT NOT NULL,
        level TEXT NOT NULL,
        kind TEXT NOT NULL CHECK (kind IN ('incremental', 'recomputed')),
        definition TEXT NOT NULL,
        fingerprint TEXT NOT NULL,
        state TEXT NOT NULL
            CHECK (state IN ('building', 'active', 'paused', 'stopped', 'refused', 'dropped')),
        code TEXT,
        error TEXT,
        error_cn INTEGER,
        start_cn INTEGER NOT NULL,
        oldest_cn INTEGER NOT NULL,
        cn INTEGER,
        delta_version INTEGER,
        base_cn INTEGER,
        base_version INTEGER,
        replacement INTEGER NOT NULL DEFAULT 0,
        mendable INTEGER NOT NULL DEFAULT 0,
        made_as TEXT NOT NULL,
        begun INTEGER NOT NULL DEFAULT 0,
        refusal_code TEXT,
        refusal TEXT,
        paused INTEGER
    ) STRICT"""
_STREAM_LEASES = """CREATE TABLE stream_leases (
        stream TEXT PRIMARY KEY,
        manager INTEGER NOT NULL,
        generation INTEGER NOT NULL
    ) STRICT"""
_BASES = """CREATE TABLE bases (
        view INTEGER NOT NULL REFERENCES views (id),
        base_cn INTEGER NOT NULL,
        version INTEGER NOT NULL,
        valid INTEGER NOT NULL DEFAULT 1,
        PRIMARY KEY (view, base_cn)
    ) STRICT"""
_GAPS = """CREATE TABLE gaps (
        view INTEGER NOT NULL REFERENCES views (id),
        low INTEGER NOT NULL,
        high INTEGER NOT NULL CHECK (high > low),
        commits INTEGER,
        pending INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (view, low)
    ) STRICT, WITHOUT ROWID"""
_REFRESHES = """CREATE TABLE refreshes (
        view INTEGER PRIMARY KEY REFERENCES views (id),
        propagated INTEGER NOT NULL,
        tick INTEGER
    ) STRICT"""
_SUBSCRIPTIONS = """CREATE TABLE subscriptions (
        name TEXT PRIMARY KEY,
        of TEXT NOT NULL,
        view INTEGER NOT NULL,
        epoch INTEGER NOT NULL DEFAULT 0,
        position INTEGER NOT NULL,
        offered INTEGER NOT NULL CHECK (offered >= position),
        state INTEGER NOT NULL CHECK (state IN (0, 1, 2)),
        changes_only INTEGER NOT NULL,
        manual INTEGER NOT NULL,
        moved INTEGER NOT NULL
    ) STRICT"""
_GATES = """CREATE TABLE gates (
        time INTEGER PRIMARY KEY,
        sources TEXT NOT NULL,
        cn INTEGER,
        told TEXT NOT NULL DEFAULT '{}',
        bound INTEGER
    ) STRICT"""
_STREAMS = """CREATE TABLE streams (
        reader TEXT NOT NULL,
        view INTEGER NOT NULL,
        after INTEGER NOT NULL,
        upto INTEGER NOT NULL,
        moved INTEGER NOT NULL,
        PRIMARY KEY (reader, upto)
    ) STRICT, WITHOUT ROWID"""
_HOLDS = """CREATE TABLE holds (
        kind TEXT NOT NULL,
        name TEXT NOT NULL,
        cn INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        PRIMARY KEY (kind, name)
    ) STRICT, WITHOUT ROWID"""
_FILE_CHANGES = """CREATE TABLE file_changes (
        path TEXT PRIMARY KEY,
        was TEXT,
        text TEXT
    ) STRICT"""
_ONE_NAME = """CREATE UNIQUE INDEX views_by_name ON views (name, replacement)
        WHERE state <> 'dropped'"""
_TYPED = """CREATE TABLE typed (
        digest TEXT PRIMARY KEY,
        outcome TEXT NOT NULL
    ) STRICT"""
_AUDITS = """CREATE TABLE audits (
        source TEXT NOT NULL REFERENCES sources (name) ON DELETE CASCADE,
        path TEXT NOT NULL,
        cn INTEGER NOT NULL,
        rows TEXT NOT NULL,
        hashes TEXT NOT NULL,
        at INTEGER NOT NULL,
        error TEXT,
        PRIMARY KEY (source, path)
    ) STRICT"""
_BUILDS = """CREATE TABLE builds (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        cn INTEGER NOT NULL,
        views TEXT NOT NULL,
        relations TEXT NOT NULL
    ) STRICT"""
_SPANS = """CREATE TABLE spans (
        build INTEGER NOT NULL REFERENCES builds (id) ON DELETE CASCADE,
        source TEXT NOT NULL,
        path TEXT NOT NULL,
        number INTEGER NOT NULL,
        columns TEXT NOT NULL,
        key INTEGER NOT NULL,
        low INTEGER,
        high INTEGER,
        about INTEGER NOT NULL,
        rows INTEGER,
        size INTEGER,
        digest INTEGER,
        PRIMARY KEY (build, source, path, number)
    ) STRICT"""


STATEMENTS = (
    _CONTACTS,
    """CREATE TABLE warehouse (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        format INTEGER NOT NULL,
        created INTEGER NOT NULL,
        last_cn INTEGER NOT NULL,
        last_time INTEGER NOT NULL,
        oldest_cn INTEGER NOT NULL,
        identity TEXT NOT NULL DEFAULT '',
        floor INTEGER NOT NULL DEFAULT 0,
        fence INTEGER NOT NULL DEFAULT 0
    ) STRICT""",
    """CREATE TABLE sources (
        name TEXT PRIMARY KEY,
        family TEXT NOT NULL,
        position TEXT,
        last_seq INTEGER NOT NULL DEFAULT 0,
        flush INTEGER NOT NULL DEFAULT 0,
        settled INTEGER NOT NULL DEFAULT 0,
        admitted INTEGER,
        proof TEXT NOT NULL DEFAULT '',
        dated INTEGER NOT NULL DEFAULT 0
    ) STRICT""",
    """CREATE TABLE relations (
        source TEXT NOT NULL REFERENCES sources (name) ON DELETE CASCADE,
        path TEXT NOT NULL,
        schema TEXT NOT NULL,
        PRIMARY KEY (source, path)
    ) STRICT""",
    """CREATE TABLE lost_columns (
        source TEXT NOT NULL REFERENCES sources (name) ON DELETE CASCADE,
        path TEXT NOT NULL,
        name TEXT NOT NULL,
        seq INTEGER NOT NULL,
        reason TEXT NOT NULL,
        mendable INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (source, path, name)
    ) STRICT""",
    """CREATE TABLE runs (
        cn_from INTEGER PRIMARY KEY,
        source TEXT NOT NULL,
        seq_from INTEGER NOT NULL,
        seq_to INTEGER NOT NULL CHECK (seq_to >= seq_from),
        time_from INTEGER NOT NULL
    ) STRICT""",
    "CREATE UNIQUE INDEX runs_by_seq ON runs (source, seq_from)",
    "CREATE INDEX runs_by_source ON runs (source, cn_from)",
    "CREATE UNIQUE INDEX runs_by_time ON runs (time_from)",
    _VIEWS,
    _ONE_NAME,
    _TYPED,
    _AUDITS,
    _BUILDS,
    _SPANS,
    _BASES,
    _GAPS,
    _REFRESHES,
    _SUBSCRIPTIONS,
    _GATES,
    _STREAMS,
    _HOLDS,
    _FILE_CHANGES,
    _STREAM_LEASES,
    """CREATE TABLE batches (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        from_cn INTEGER NOT NULL,
        to_cn INTEGER NOT NULL,
        transactions INTEGER NOT NULL,
        lookups INTEGER NOT NULL,
        lookup_rows INTEGER NOT NULL,
        started INTEGER NOT NULL,
        finished INTEGER NOT NULL
    ) STRICT""",
)

_FROM_1 = (
    "DROP TABLE IF EXISTS contacts",
    _CONTACTS,
    "ALTER TABLE warehouse ADD COLUMN identity TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE warehouse ADD COLUMN floor INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE sources ADD COLUMN proof TEXT NOT NULL DEFAULT ''",
    """UPDATE sources SET proof = '{"format": 1}'""",
    "ALTER TABLE lost_columns ADD COLUMN mendable INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE views ADD COLUMN replacement INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE views ADD COLUMN mendable INTEGER NOT NULL DEFAULT 0",
    "DROP INDEX views_by_name",
    _ONE_NAME,
    _TYPED,
    _AUDITS,
)
_FROM_2 = (_BUILDS, _SPANS)
_FROM_3 = ("DROP TABLE audits", _AUDITS)
_FROM_4 = (
    "UPDATE views SET state = 'dropped'",
    "DELETE FROM builds",
    "DELETE FROM typed",
)
"""Views were kept in other tables: the next run builds them anew, from the same sources and log."""
_KEPT = (
    "id, name, sql, level, kind, definition, fingerprint, state, code, error, error_cn, start_cn,"
    " oldest_cn, cn, delta_version, base_cn, base_version, replacement, mendable"
)
_FROM_5 = (
    "CREATE TABLE bases_5 AS SELECT view, base_cn, version, valid FROM bases",
    "DROP TABLE bases",
    "DROP INDEX views_by_name",
    "ALTER TABLE views RENAME TO views_5",
    _VIEWS,
    f"INSERT INTO views ({_KEPT}, made_as) SELECT {_KEPT}, name FROM views_5",
    "DELETE FROM sqlite_sequence WHERE name = 'views'",
    # ids go on behind the last one that was ever given
    "UPDATE sqlite_sequence SET name = 'views' WHERE name = 'views_5'",
    "DROP TABLE views_5",
    _ONE_NAME,
    _BASES,
    "INSERT INTO bases SELECT view, base_cn, version, valid FROM bases_5",
    "DROP TABLE bases_5",
    _FILE_CHANGES,
)
_FROM_6 = (
    """UPDATE views SET state = 'dropped' WHERE id IN (
        WITH RECURSIVE
            kept (view, plan) AS (SELECT id, definition FROM views WHERE json_valid(definition)),
            reads (view, input) AS (SELECT view, value FROM kept, json_each(plan, '$.inputs')),
            gone (view) AS (
                SELECT view FROM kept WHERE plan LIKE '%"is": "Gather"%'
                UNION
                SELECT reads.view FROM reads JOIN gone ON reads.input = gone.view
            )
        SELECT view FROM gone
    )""",
    "DELETE FROM builds",
    "DELETE FROM typed",
)
"""MIN and MAX were kept by other nodes: views with them, and what reads those, are built anew."""
_FROM_7 = (_GAPS, _REFRESHES, _SUBSCRIPTIONS)
"""Every node had every state, and showed it at once."""
_WHOLE = "SELECT id FROM views WHERE kind = 'recomputed' AND cn IS NOT NULL"
_FROM_8 = (
    _GATES,
    "ALTER TABLE warehouse ADD COLUMN fence INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE sources ADD COLUMN dated INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE gaps RENAME TO gaps_8",
    _GAPS,
    "INSERT INTO gaps (view, low, high) SELECT view, low, high FROM gaps_8",
    "DROP TABLE gaps_8",
    _STREAMS,
    _HOLDS,
    _STREAM_LEASES,
    f"DELETE FROM bases WHERE view IN ({_WHOLE})"
    " AND base_cn <> (SELECT base_cn FROM views WHERE id = view)",
    f"UPDATE bases SET base_cn = (SELECT cn FROM views WHERE id = view) WHERE view IN ({_WHOLE})",
    f"UPDATE views SET oldest_cn = cn, base_cn = cn, delta_version = NULL WHERE id IN ({_WHOLE})",
    f"UPDATE warehouse SET format = {FORMAT}",
)
"""No times were bound, no changes compressed. Recomputed views had whole states alone: the newest
one stays, and changes begin behind it."""
_STEPS = (_FROM_1, _FROM_2, _FROM_3, _FROM_4, _FROM_5, _FROM_6, _FROM_7, _FROM_8)
UPGRADES = {
    found: tuple(statement for step in _STEPS[found - 1 :] for statement in step)
    for found in range(1, FORMAT)
}
"""By the format that is found."""
