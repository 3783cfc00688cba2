"""PostgreSQL as the engine of the record; loaded only when a server is configured, because it needs psycopg."""
