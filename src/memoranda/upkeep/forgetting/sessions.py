"""Forgets conversations: deletes them with everything that other parts of the home keep of them.

`memoranda sessions delete`, `prune` and `forget` share this. Only the ids stay in the record, so that no import
restores the conversations.
"""

import json
import time
from collections.abc import Callable, Collection
from contextlib import closing
from dataclasses import field
from pathlib import Path
from typing import Any

from memoranda.errors import StorageError
from memoranda.external.outbox.outbox import Outbox
from memoranda.home.session_db import SessionDB
from memoranda.importers.importer import state_of_store
from memoranda.importers.session_writer import session_name
from memoranda.memory.record.message_rows import text_of
from memoranda.search.recall_log import erase_calls, hook_calls_path, recalls_path
from memoranda.support.durable_files import read_file
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.text_matcher import TextMatcher
from memoranda.upkeep.forgetting.home_files import HomeFiles
from memoranda.upkeep.forgetting.scope import ForgetScope
from memoranda.upkeep.sync_state import SyncState

_OVERWRITE_TIMEOUT = 1.0
# What is read again byte by byte: long lines, which hardly occur by chance.
_MIN_PASSAGE_CHARS, _MAX_PASSAGE_CHARS = 24, 200
_MAX_PASSAGES = 100
# Of more sessions, logs and reports are not searched for single lines.
_MAX_SESSIONS_READ = 200


@dataclass(slots=True)
class DeletedSessions:
    """What deleting sessions did; `overwritten` says that no file has their text in free space."""

    count: int = 0
    dropped_deliveries: int = 0
    index_rebuilt: bool = True
    overwritten: bool = True
    problems: list[str] = field(default_factory=list)


def passages_of(db: SessionDB, session_ids: Collection[str]) -> TextMatcher:
    """The long lines of sessions and their titles, by which a proof recognises the sessions."""
    lines: dict[str, None] = {}
    for session_id in session_ids:
        title = db.get_session_title(session_id) or ""
        texts = [text_of(message["content"]) for message in db.get_messages(session_id, include_inactive=True)]
        for line in (title, *(line for text in texts for line in text.splitlines())):
            passage = " ".join(line.split())[:_MAX_PASSAGE_CHARS]
            if len(passage) >= _MIN_PASSAGE_CHARS:
                lines[passage] = None
    return TextMatcher(sorted(lines, key=len, reverse=True)[:_MAX_PASSAGES])


def delete_sessions(
    db: SessionDB,
    home: Path,
    session_ids: Collection[str],
    delete: Callable[[list[str]], int] | None = None,
    *,
    server_url: str = "",
) -> DeletedSessions:
    """Delete sessions, what waits to be delivered of them, and what indexes, imports and logs keep of them.

    Can be repeated: of sessions that are deleted already, the rest is removed. `server_url` names the server that has
    the record, if it is not in the home.
    """
    ids = list(session_ids)
    result = DeletedSessions()
    passages = passages_of(db, ids) if len(ids) <= _MAX_SESSIONS_READ else None
    result.count = (delete or db.delete_sessions)(ids)
    with closing(Outbox(home, server_url=server_url)) as outbox:
        try:
            result.dropped_deliveries = outbox.drop(None, None, ids)
        except StorageError as error:
            result.problems.append(f"Deliveries of the sessions still wait for an external memory: {error}")
    with closing(state_of_store(home, db)) as state:
        state.forget_content(ids)
    with closing(SyncState(home)) as replaced:
        replaced.drop_log(ids)
    _remove_waiting_turns(db, home, ids)
    _forget_recalls(db, home, ids)
    if passages and db.scope.user is None:
        # Their own lines, as far as logs and reports have them.
        result.problems += HomeFiles(ForgetScope.at(home), ("logs", "reports")).forget(passages)
    erase(db, result)
    return result


def erase(db: SessionDB, result: DeletedSessions) -> None:
    """Remove from the indexes and from free space what is gone from the record."""
    try:
        db.purge_indexes()
        if db.item_index.files:
            db.item_index.purge()
        db.forget_deleted()
    except StorageError as error:
        result.index_rebuilt = False
        result.problems.append(
            f"{error} Search no longer finds the text, but the index file keeps its words until then."
        )
    db.release_space()
    result.overwritten = _is_overwritten(db)


def _is_overwritten(db: SessionDB) -> bool:
    """Whether the deleted text is no longer in any file; waits a second for programs that are reading."""
    deadline = time.monotonic() + _OVERWRITE_TIMEOUT
    while not db.empty_log():
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.02)
    return True


def _forget_recalls(db: SessionDB, home: Path, session_ids: Collection[str]) -> None:
    """Erase what the logs say about prompts of the sessions; other prompts may still name their messages."""
    user, ids = db.scope.user, frozenset(session_ids)

    def is_theirs_in_host(call: dict[str, Any]) -> bool:
        name = session_name(str(call.get("host")), str(call.get("session_id")), user)
        return call.get("user") == user and db.stored_name(name) in ids

    erase_calls(recalls_path(home, user), lambda call: call.get("session_id") in ids)
    erase_calls(hook_calls_path(home), is_theirs_in_host)


def _remove_waiting_turns(db: SessionDB, home: Path, session_ids: Collection[str]) -> None:
    """Remove turns of the sessions that a host's plugin has written and that are not recorded yet."""
    for path in sorted((home / "host-turns").glob("*/*.json")):
        try:
            turn = json.loads(read_file(path))
            name = db.stored_name(session_name(path.parent.name, str(turn["session_id"]), db.scope.user))
        except (OSError, ValueError, TypeError, KeyError):
            # Not a turn, or another process has just recorded it.
            continue
        if name in session_ids:
            path.unlink(missing_ok=True)
