"""Imports the states of a framework's threads as checkpoints, from which our checkpointer continues.

A checkpoint keeps the names that the framework gave it, so one that is stored already is known by them and stays as it
is. The code of checkpoints is loaded with the first state: few sources have any, and a hook must start fast.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from memoranda.importers.state.log import ImportRecorder
from memoranda.memory.record.store import SessionStore
from memoranda.storage.lazy_database import LazyDatabase, server_url_of

if TYPE_CHECKING:
    from memoranda.memory.checkpoints.store import CheckpointStore, StoredCheckpoint


class ThreadStates:
    """The checkpoints of the user of a store; without a recorder nothing is written."""

    def __init__(self, root: Path, store: SessionStore, recorder: ImportRecorder | None = None) -> None:
        self._root = root
        self._store = store
        self._recorder = recorder
        self._database: LazyDatabase | None = None

    def close(self) -> None:
        if self._database is not None:
            self._database.close()

    def add(self, found: Sequence["StoredCheckpoint"]) -> int:
        """Store the checkpoints that are not here yet; return how many these are."""
        if not found:
            return 0
        known = self._checkpoints.known({each.key for each in found})
        new = [each for each in found if each.key not in known]
        if new and self._recorder is not None:
            # Before they are stored: what a killed import did not store is something that undo does not find.
            self._recorder.add_states([each.key for each in new])
            self._checkpoints.put_all(new)
        return len(new)

    def remove(self, keys: Sequence[Sequence[str]], *, preview: bool) -> int:
        """Remove checkpoints of an import, except from threads that continue; return how many are removed."""
        from memoranda.memory.checkpoints.store import CheckpointKey  # noqa: PLC0415
        from memoranda.memory.checkpoints.threads import delete_unless_continued  # noqa: PLC0415

        named = {CheckpointKey(*key) for key in keys}
        return delete_unless_continued(self._checkpoints, named, preview=preview) if named else 0

    @property
    def _checkpoints(self) -> "CheckpointStore":
        from memoranda.memory.checkpoints.store import CheckpointStore, open_checkpoints  # noqa: PLC0415

        if self._database is None:
            self._database = open_checkpoints(self._root, server_url_of(self._store.engine))
        return CheckpointStore(self._database, self._store.scope.user)
