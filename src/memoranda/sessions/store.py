"""The session store: every part over one `state.db`, for one scope."""

from pathlib import Path
from typing import Self

from memoranda.db.schema import open_database
from memoranda.safety.redaction import Redactor
from memoranda.sessions.conversations import Conversations
from memoranda.sessions.deletion import Deletion
from memoranda.sessions.feed import Feed
from memoranda.sessions.lineage import Lineage
from memoranda.sessions.maintenance import Maintenance
from memoranda.sessions.rotation import Rotation
from memoranda.sessions.schema import SCHEMA
from memoranda.sessions.scope import Scope
from memoranda.sessions.session_list import SessionList
from memoranda.sessions.transfer import Transfer
from memoranda.sessions.usage import Usage
from memoranda.support.home import APPLICATION_ID


class SessionStore(Transfer, Rotation, Lineage, SessionList, Conversations, Usage, Deletion, Maintenance, Feed):
    """Sessions and messages in one file, durable when a call returns, shared by any number of processes."""

    def __init__(self, db_path: Path | str, *, redactor: Redactor | None = None, wait: float = 10.0) -> None:
        """Open the file, or make it. Without a redactor, text is stored as it comes."""
        self._db = open_database(Path(db_path), SCHEMA, int.from_bytes(APPLICATION_ID, "big"), wait=wait)
        self._scope = Scope.everyone()
        self._redactor = redactor

    @property
    def path(self) -> Path:
        return self._db.path

    @property
    def scope(self) -> Scope:
        return self._scope

    def scoped(self, scope: Scope) -> Self:
        """The same store for one scope; it closes with the one that it came from."""
        view = object.__new__(type(self))
        view.__dict__ |= self.__dict__ | {"_scope": scope}
        return view

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
