"""The session store: its parts over one engine, for one scope."""

from collections.abc import Callable
from pathlib import Path
from typing import Self

from memoranda.memory.record.checksums import StoredChecksums
from memoranda.memory.record.conversations import Conversations
from memoranda.memory.record.deletion import Deletion
from memoranda.memory.record.feed import Feed, ItemFeed
from memoranda.memory.record.items import Items
from memoranda.memory.record.maintenance import Maintenance, ScheduledPrune
from memoranda.memory.record.message_edits import MessageEdits, MessageReplacement
from memoranda.memory.record.messages import Messages
from memoranda.memory.record.passages import ItemPassages, Passages
from memoranda.memory.record.record import open_record
from memoranda.memory.record.rotation import Rotation
from memoranda.memory.record.scope import Scope
from memoranda.memory.record.session_list import Lineage, SessionList, SessionUsage
from memoranda.memory.record.sessions import Sessions, Titles, Todos
from memoranda.memory.record.transfer.imports import ImportedRows, ImportUndo
from memoranda.memory.record.transfer.items import ItemTransfer, SyncedItems
from memoranda.memory.record.transfer.sessions import Transfer
from memoranda.memory.record.transfer.synced_rows import SyncedRows
from memoranda.safety.redaction import Redactor
from memoranda.storage.engine import Engine
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
        return MessageEdits(self.messages)

    @lazy_attribute
    def replacement(self) -> MessageReplacement:
        return MessageReplacement(self.messages)

    @lazy_attribute
    def items(self) -> Items:
        return Items(*self._common, self._on_new_items)

    @lazy_attribute
    def item_feed(self) -> ItemFeed:
        # An id of an item is a digest, which has no secret to redact.
        return ItemFeed(*self._common[:2], None)

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
        return Passages(self.titles)

    @lazy_attribute
    def imported_rows(self) -> ImportedRows:
        return ImportedRows(self.messages)

    @lazy_attribute
    def import_undo(self) -> ImportUndo:
        return ImportUndo(*self._common)

    @lazy_attribute
    def scheduled_prune(self) -> ScheduledPrune:
        return ScheduledPrune(self.deletion, self.items)

    @lazy_attribute
    def rotation(self) -> Rotation:
        return Rotation(self.sessions, self.messages, self.titles)

    @lazy_attribute
    def transfer(self) -> Transfer:
        return Transfer(self.sessions, self.messages, self.titles, self._on_new_messages)

    @lazy_attribute
    def synced_rows(self) -> SyncedRows:
        return SyncedRows(self.messages)

    @lazy_attribute
    def synced_items(self) -> SyncedItems:
        return SyncedItems(self.item_transfer, self._on_new_items)

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
