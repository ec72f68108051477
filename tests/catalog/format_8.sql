-- A catalog as format 8 had it.
CREATE TABLE contacts (
        source TEXT PRIMARY KEY REFERENCES sources (name) ON DELETE CASCADE,
        heard INTEGER,
        error TEXT,
        since INTEGER,
        definite INTEGER NOT NULL DEFAULT 0
    ) STRICT;
CREATE TABLE warehouse (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        format INTEGER NOT NULL,
        created INTEGER NOT NULL,
        last_cn INTEGER NOT NULL,
        last_time INTEGER NOT NULL,
        oldest_cn INTEGER NOT NULL,
        identity TEXT NOT NULL DEFAULT '',
        floor INTEGER NOT NULL DEFAULT 0
    ) STRICT;
CREATE TABLE sources (
        name TEXT PRIMARY KEY,
        family TEXT NOT NULL,
        position TEXT,
        last_seq INTEGER NOT NULL DEFAULT 0,
        flush INTEGER NOT NULL DEFAULT 0,
        settled INTEGER NOT NULL DEFAULT 0,
        admitted INTEGER,
        proof TEXT NOT NULL DEFAULT ''
    ) STRICT;
CREATE TABLE relations (
        source TEXT NOT NULL REFERENCES sources (name) ON DELETE CASCADE,
        path TEXT NOT NULL,
        schema TEXT NOT NULL,
        PRIMARY KEY (source, path)
    ) STRICT;
CREATE TABLE lost_columns (
        source TEXT NOT NULL REFERENCES sources (name) ON DELETE CASCADE,
        path TEXT NOT NULL,
        name TEXT NOT NULL,
        seq INTEGER NOT NULL,
        reason TEXT NOT NULL,
        mendable INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (source, path, name)
    ) STRICT;
CREATE TABLE runs (
        cn_from INTEGER PRIMARY KEY,
        source TEXT NOT NULL,
        seq_from INTEGER NOT NULL,
        seq_to INTEGER NOT NULL CHECK (seq_to >= seq_from),
        time_from INTEGER NOT NULL
    ) STRICT;
CREATE UNIQUE INDEX runs_by_seq ON runs (source, seq_from);
CREATE INDEX runs_by_source ON runs (source, cn_from);
CREATE UNIQUE INDEX runs_by_time ON runs (time_from);
CREATE TABLE views (
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
    ) STRICT;
CREATE UNIQUE INDEX views_by_name ON views (name, replacement)
        WHERE state <> 'dropped';
CREATE TABLE typed (
        digest TEXT PRIMARY KEY,
        outcome TEXT NOT NULL
    ) STRICT;
CREATE TABLE audits (
        source TEXT NOT NULL REFERENCES sources (name) ON DELETE CASCADE,
        path TEXT NOT NULL,
        cn INTEGER NOT NULL,
        rows TEXT NOT NULL,
        hashes TEXT NOT NULL,
        at INTEGER NOT NULL,
        error TEXT,
        PRIMARY KEY (source, path)
    ) STRICT;
CREATE TABLE builds (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        cn INTEGER NOT NULL,
        views TEXT NOT NULL,
        relations TEXT NOT NULL
    ) STRICT;
CREATE TABLE spans (
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
    ) STRICT;
CREATE TABLE bases (
        view INTEGER NOT NULL REFERENCES views (id),
        base_cn INTEGER NOT NULL,
        version INTEGER NOT NULL,
        valid INTEGER NOT NULL DEFAULT 1,
        PRIMARY KEY (view, base_cn)
    ) STRICT;
CREATE TABLE gaps (
        view INTEGER NOT NULL REFERENCES views (id),
        low INTEGER NOT NULL,
        high INTEGER NOT NULL CHECK (high > low),
        PRIMARY KEY (view, low)
    ) STRICT, WITHOUT ROWID;
CREATE TABLE refreshes (
        view INTEGER PRIMARY KEY REFERENCES views (id),
        propagated INTEGER NOT NULL,
        tick INTEGER
    ) STRICT;
CREATE TABLE subscriptions (
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
    ) STRICT;
CREATE TABLE file_changes (
        path TEXT PRIMARY KEY,
        was TEXT,
        text TEXT
    ) STRICT;
CREATE TABLE batches (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        from_cn INTEGER NOT NULL,
        to_cn INTEGER NOT NULL,
        transactions INTEGER NOT NULL,
        lookups INTEGER NOT NULL,
        lookup_rows INTEGER NOT NULL,
        started INTEGER NOT NULL,
        finished INTEGER NOT NULL
    ) STRICT;
INSERT INTO warehouse VALUES (1, 8, 50, 7, 60, 0, 'abcdef01', 0);
INSERT INTO views VALUES (3, 'v', 'SELECT 1', 'strong', 'incremental', '{}', 'f', 'active',
    NULL, NULL, NULL, 0, 0, 7, 1, 5, 2, 0, 0, 'v', 0, NULL, NULL, NULL);
INSERT INTO bases VALUES (3, 5, 2, 1);
INSERT INTO gaps VALUES (3, 2, 5), (3, 5, 7);
INSERT INTO refreshes VALUES (3, 7, NULL);
INSERT INTO subscriptions VALUES ('r', 'v', 3, 0, 5, 6, 0, 1, 0, 60);
INSERT INTO views VALUES (4, 'w', 'SELECT 1', 'strong', 'recomputed', '{}', 'g', 'active',
    NULL, NULL, NULL, 0, 2, 7, 0, 6, 4, 0, 0, 'w', 0, NULL, NULL, NULL);
INSERT INTO views VALUES (5, 'x', 'SELECT 1', 'strong', 'recomputed', '{}', 'h', 'building',
    NULL, NULL, NULL, 3, 3, NULL, NULL, NULL, NULL, 0, 0, 'x', 0, NULL, NULL, NULL);
INSERT INTO bases VALUES (4, 2, 1, 1);
INSERT INTO bases VALUES (4, 6, 4, 1);
