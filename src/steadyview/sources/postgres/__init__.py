"""PostgreSQL 14 and later: logical decoding for changes, exported snapshots for answers."""
