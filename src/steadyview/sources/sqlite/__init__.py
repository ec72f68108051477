"""SQLite files: triggers into a log table for changes, read transactions for answers."""
