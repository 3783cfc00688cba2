"""The session store: its parts over one engine, for one scope."""

from collections.abc import Callable
from pathlib import Path
from typing import Self

from memoranda.db.engine import Engine
from memoranda.safety.redaction import Redactor
from memoranda.sessions.conversations import Conversations
from memoranda.sessions.deletion import Deletion
from memoranda.sessions.feed import Feed
from memoranda.sessions.import_undo import ImportUndo
from memoranda.sessions.imported_rows import ImportedRows
from memoranda.sessions.item_feed import ItemFeed
from memoranda.sessions.item_passages import ItemPassages
from memoranda.sessions.item_transfer import ItemTransfer
from memoranda.sessions.items import Items
from memoranda.sessions.lifecycle import Sessions
from memoranda.sessions.lineage import Lineage
from memoranda.sessions.maintenance import Maintenance
from memoranda.sessions.message_edits import MessageEdits
from memoranda.sessions.message_replacement import MessageReplacement
from memoranda.sessions.messages import Messages
from memoranda.sessions.passages import Passages
from memoranda.sessions.record import open_record
from memoranda.sessions.rotation import Rotation
from memoranda.sessions.scheduled_prune import ScheduledPrune
from memoranda.sessions.scope import Scope
from memoranda.sessions.session_list import SessionList
from memoranda.sessions.stored_checksums import StoredChecksums
from memoranda.sessions.synced_items import SyncedItems
from memoranda.sessions.synced_rows import SyncedRows
from memoranda.sessions.titles import Titles
from memoranda.sessions.todos import Todos
from memoranda.sessions.transfer import Transfer
from memoranda.sessions.usage import SessionUsage
from memoranda.support.lazy_attribute import lazy_attribute


class SessionStore:
    """Sessions and messages, durable when a call returns, shared by any number of processes.

    Each attribute is one part of the store. The store calls `on_new_messages` after it has committed messages, and
    `on_new_items` after it has committed items.
    """

    def __init__(
        self,
        engine: Engine,
        scope: Scope | None = None,
        *,
        redactor: Redactor | None = None,
        on_new_messages: Callable[[], object] | None = None,
        on_new_items: Callable[[], object] | None = None,
    ) -> None:
        """Use an engine that has the tables of `SCHEMA`. Without a redactor, text is stored unchanged."""
        self.scope = scope = Scope.everyone() if scope is None else scope
        self.engine = engine = engine.acting_for(scope.user, everyone=scope.all)
        self._redactor = redactor
        self.stored_name: Callable[[str], str] = str if redactor is None else redactor.name
        """How the store stores an id, a source or a project: unchanged, unless it contains a credential."""
        self._on_new_messages = on_new_messages
        self._on_new_items = on_new_items
        self._common = common = (engine, scope, redactor)
        self.titles = Titles(*common)
        self.sessions = Sessions(*common, self.titles)
        self.messages = Messages(*common, on_new_messages)
        self.lineage = Lineage(*common)
        self.listing = SessionList(*common)
        self.conversations = Conversations(*common)
        self.usage = SessionUsage(*common)
        self.deletion = Deletion(*common)
        self.maintenance = Maintenance(*common)
        self.feed = Feed(*common)
        self.todos = Todos(*common)

    @lazy_attribute
    def edits(self) -> MessageEdits:
        return MessageEdits(*self._common, self.messages)

    @lazy_attribute
    def replacement(self) -> MessageReplacement:
        return MessageReplacement(*self._common, self.messages)

    @lazy_attribute
    def items(self) -> Items:
        return Items(*self._common, self._on_new_items)

    @lazy_attribute
    def item_feed(self) -> ItemFeed:
        return ItemFeed(*self._common)

    @lazy_attribute
    def item_passages(self) -> ItemPassages:
        return ItemPassages(*self._common)

    @lazy_attribute
    def item_transfer(self) -> ItemTransfer:
        return ItemTransfer(*self._common)

    @lazy_attribute
    def checksums(self) -> StoredChecksums:
        return StoredChecksums(*self._common)

    @lazy_attribute
    def passages(self) -> Passages:
        return Passages(*self._common, self.titles)

    @lazy_attribute
    def imported_rows(self) -> ImportedRows:
        return ImportedRows(*self._common, self.messages)

    @lazy_attribute
    def import_undo(self) -> ImportUndo:
        return ImportUndo(*self._common)

    @lazy_attribute
    def scheduled_prune(self) -> ScheduledPrune:
        return ScheduledPrune(*self._common, self.deletion, self.items)

    @lazy_attribute
    def rotation(self) -> Rotation:
        return Rotation(*self._common, self.sessions, self.messages, self.titles)

    @lazy_attribute
    def transfer(self) -> Transfer:
        return Transfer(*self._common, self.sessions, self.messages, self.titles, self._on_new_messages)

    @lazy_attribute
    def synced_rows(self) -> SyncedRows:
        return SyncedRows(*self._common, self.messages, self.titles)

    @lazy_attribute
    def synced_items(self) -> SyncedItems:
        return SyncedItems(*self._common, self.item_transfer, self._on_new_items)

    def scoped(self, scope: Scope) -> "SessionStore":
        """The same store for another scope; closing the original closes it, too."""
        return SessionStore(
            self.engine,
            scope,
            redactor=self._redactor,
            on_new_messages=self._on_new_messages,
            on_new_items=self._on_new_items,
        )

    def close(self) -> None:
        self.engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_store(
    location: Path | str, *, redactor: Redactor | None = None, wait: float = 10.0, guarded: bool = True
) -> SessionStore:
    """Open the store at a location, or create it; `wait` is how many seconds a write waits for other writers.

    With `guarded=False` the store is not compared with its marker, and gets none.
    """
    return SessionStore(open_record(location, wait=wait, guarded=guarded), redactor=redactor)
