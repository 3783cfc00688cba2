"""SQLite: connections, the write-ahead log, writers that take turns, and upgrades of a schema."""
