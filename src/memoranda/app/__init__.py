"""The composition root and public API: `memoranda.open()` returns a `Memory`, which opens sessions and agents.

Everything is wired here and nowhere else. A session builds its prompt when it starts; its tools write to disk at once;
its turns are recorded before anything else happens with them. A program with its own loop needs no other module.
"""

from memoranda.app.memory import Memory as Memory
from memoranda.app.memory import open_memory as open_memory
from memoranda.app.services import new_session_id as new_session_id
from memoranda.app.session import Session as Session
from memoranda.app.turn import Turn as Turn
