"""The composition root and public API: `memoranda.open()` returns a `Memory`, which opens sessions and agents.

Everything is wired here and nowhere else. A session builds its prompt when it starts; its tools write to disk at once;
its turns are recorded before anything else happens with them. A program with its own loop needs no other module.
"""
