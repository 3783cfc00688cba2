"""Notes: what is worth keeping but not worth a place in every prompt. They have no limit, and are found by search.

A note is an item of the record in the namespace `curated-notes` and the target that it belongs to, so it is durable,
has versions and a user, and is in sync, backup and forget. Items that a program keeps under `notes` are its own.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from memoranda.memory.curated.entry_scanner import ScannedEntry
from memoranda.memory.curated.facts import EntryFacts, is_past, seconds_of
from memoranda.memory.curated.settings import NOTES_NAMESPACE, Target, file_name, is_target
from memoranda.memory.curated.snapshot import describe_sources
from memoranda.support.canonical_text import digest
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.origin import Origin, utc_timestamp

if TYPE_CHECKING:
    from memoranda.memory.record.items import Items

_MAX_LISTED = 10_000


@dataclass(frozen=True, slots=True)
class Note:
    """A note: its text, the target that it belongs to, when it was noted, by whom and in which conversation.

    `facts` is what was known about the entry that it was before, if it was one (`EntryFacts.history`). `replaced`
    is the handle of the entry that said something else in its place, or the same: the note is only its history.
    `sources` are the untrusted ones that may have suggested it.
    """

    text: str
    owner: Target
    at: str
    actor: str = ""
    session: str = ""
    until: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    replaced: str = ""
    sources: tuple[str, ...] = ()

    @property
    def written(self) -> str:
        """When the text was saved first, as an entry or as a note."""
        return self.facts.get("at") or self.at

    @property
    def history(self) -> dict[str, str]:
        """The `EntryFacts.history` of the entry that it may become."""
        return {"at": self.at, "actor": self.actor, "session": self.session} | dict(self.facts)

    @property
    def shown(self) -> str:
        """The text with its date and origin, as evidence; one whose last day is over, or that was replaced, says so."""
        over = f", true until {self.until}" if is_past(self.until) else ""
        over += f", replaced {self.at[:10]}" if self.replaced else ""
        noted = f"{self.text} [noted {self.written[:10]}, beside {file_name(self.owner)}{over}]"
        return noted + describe_sources(self.sources)

    def as_entry(self) -> EntryFacts:
        """The entry that the note would be in the memory that it belongs to."""
        known, confirmed = self.history, seconds_of(self.facts.get("confirmed", ""))
        actor, session, written = known["actor"], known["session"], seconds_of(self.written) or 0.0
        entry = ScannedEntry(self.text, ())
        return EntryFacts(self.owner, entry, written, confirmed, actor, session, None, self.until, self.sources)


class Notes:
    """The notes of one user; `has_record` says whether there is a record, which reading does not create."""

    def __init__(self, items: "Callable[[], Items]", has_record: Callable[[], bool] = lambda: True) -> None:
        self._items = items
        self._has_record = has_record

    def add(
        self,
        text: str,
        owner: Target,
        origin: Origin,
        until: str = "",
        entry: EntryFacts | None = None,
        replaced: str = "",
    ) -> bool:
        """Store a note durably; False if there was one already: the same text of the same target is one note.

        `entry` is the entry that becomes the note; the note keeps its facts. `replaced` is the handle of the entry that
        replaced it.
        """
        value: dict[str, Any] = {"text": text, "from": owner, "at": utc_timestamp()}
        value |= {"actor": origin.actor, "session": origin.session}
        until = until or (entry.until if entry else "")
        value |= ({"until": until} if until else {}) | ({"facts": entry.history} if entry else {})
        sources = entry.sources if entry else origin.sources
        value |= ({"replaced": replaced} if replaced else {}) | ({"sources": list(sources)} if sources else {})
        items, place = self._items(), ((NOTES_NAMESPACE, owner), _key(text))
        known = self.get(text, owner)
        if sources and known is not None and not known.sources:
            # It is the user's own, and stays so.
            return False
        is_new = items.get(*place) is None
        items.put(*place, value, index=["text"])
        return is_new

    def get(self, text: str, owner: Target) -> Note | None:
        item = self._items().get((NOTES_NAMESPACE, owner), _key(text))
        return None if item is None else read_note(item.namespace, item.value)

    def remove(self, text: str, owner: Target) -> bool:
        return self._items().delete((NOTES_NAMESPACE, owner), _key(text))

    def all(self, owner: Target | None = None, *, limit: int = _MAX_LISTED) -> list[Note]:
        """The notes of a target or of all of them, the latest first."""
        prefix = (NOTES_NAMESPACE,) if owner is None else (NOTES_NAMESPACE, owner)
        found = self._items().list_items(prefix, limit=limit) if self._has_record() else ()
        return [note for item in found if (note := read_note(item.namespace, item.value))]


def read_note(namespace: Sequence[str], value: Any) -> Note | None:
    """The note that an item is; None for another item."""
    if not isinstance(value, Mapping) or not isinstance(value.get("text"), str):
        return None
    if len(namespace) != 2 or namespace[0] != NOTES_NAMESPACE or not is_target(namespace[1]):
        return None
    fields = {name: str(value.get(name, "")) for name in ("at", "actor", "session", "until", "replaced")}
    facts = value.get("facts")
    known = {name: str(fact) for name, fact in facts.items()} if isinstance(facts, Mapping) else {}
    named = value.get("sources")
    sources = tuple(map(str, named)) if isinstance(named, list) else ()
    return Note(value["text"], namespace[1], **fields, facts=known, sources=sources)


def _key(text: str) -> str:
    return digest(text)[:16]
