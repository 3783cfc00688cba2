"""The contracts of a session store over any engine, which the tests run over SQLite and PostgreSQL."""
