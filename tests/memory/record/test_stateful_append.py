"""A process that is killed between a message and the state that it changes leaves neither of them."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from memoranda.memory.record.scope import Scope
from memoranda.memory.record.store import SessionStore
from tests.timing import GIVE_UP

_KILLED = """
import os, signal, sys
from memoranda.memory.record import items, message_edits
from memoranda.memory.record.scope import Scope
from memoranda.memory.record.message_edits import StatefulAppend
from memoranda.memory.record.store import open_store
from memoranda.types import PutItem

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

items.Items.write_prepared = die
store = open_store(sys.argv[1]).scoped(Scope.of(None))
new = [{"role": "user", "content": "two"}]
if sys.argv[2] == "append":
    changes = [(store.items, [PutItem(("app",), "theme", "light")])]
    StatefulAppend(store.messages).append_with_state("s", new, extra_fields={"step": 2}, items=changes)
else:
    message_edits.merge_extra_fields = die
    store.replacement.replace_messages("s", new, extra_fields={"step": 2})
"""


@pytest.mark.parametrize("change", ["append", pytest.param("replace", marks=pytest.mark.slow)])
def test_a_killed_process_leaves_the_state_of_before(store: SessionStore, path: Path, change: str) -> None:
    """Messages, fields of the session and items agree."""
    mine = store.scoped(Scope.of(None))
    mine.sessions.create_session("s", "cli", step=1)
    mine.messages.append_message("s", "user", "one")
    killed = subprocess.run([sys.executable, "-c", _KILLED, str(path), change], timeout=GIVE_UP, check=False)
    assert killed.returncode == -signal.SIGKILL
    session = mine.sessions.get_session("s")
    assert session is not None and session["step"] == 1
    assert [message["content"] for message in mine.messages.get_messages("s")] == ["one"]
    assert mine.items.get(("app",), "theme") is None
