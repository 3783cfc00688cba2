"""The entries of curated memory, and what is known about them: they travel as what the journal says of each.

An entry keeps its identity when its text changes. Changes to different entries merge by themselves, each as a change of
the journal that can be undone. If two machines have changed the same entry, the later text stays, and a person may take
the other one instead. A text that untrusted words may have suggested counts as made directly after what it replaced, so
that it never replaces what a person has said meanwhile.
"""

from collections.abc import Sequence
from typing import Any

from memoranda.memory.curated.facts import NEVER, parse_until
from memoranda.memory.curated.forgotten_entries import forgotten_hashes
from memoranda.memory.curated.memory_file import handle
from memoranda.memory.curated.operations import EntryEdit, EntryPlan, MemoryReceipt, MemoryRefusal, apply_edit
from memoranda.memory.curated.passages import forget_passages
from memoranda.memory.curated.settings import Target, file_name, is_target
from memoranda.memory.curated.store import MemoryStore
from memoranda.memory.curated.writer import WriteRequest
from memoranda.memory.record.transfer.row_versions import Row
from memoranda.support.canonical_text import canonical, digest, unstorable_character
from memoranda.support.origin import Origin
from memoranda.support.text_matcher import TextMatcher
from memoranda.upkeep.sync.forgotten_texts import note_removed_entry
from memoranda.upkeep.sync.kind import OF_ENTRIES, Kind, State, is_untrusted
from memoranda.upkeep.sync.run import Run

# The first attempt may be refused once, because another program has changed the file.
_ATTEMPTS = 2
_MAX_CHARS = 10_000
_MAX_SOURCES = 100
_FACTS = frozenset({"at", "confirmed", "actor", "session", "until"})
# After the digest of an entry that untrusted text may have suggested: whose it is travels without the text, too.
_UNTRUSTED = " untrusted"
Facts = dict[str, str]


class Entries(Kind):
    """The entries of all targets, by target and id."""

    name = "entry"
    noun = "entries"

    def read(self, run: Run) -> dict[str, State]:
        return {
            f"{target} {uid}": {"text": text, "facts": facts, "sources": facts.get("sources", "").splitlines()}
            for target in targets_of(run)
            for uid, (text, facts) in _entries_here(run, target).items()
        }

    def write(self, run: Run, name: str, state: State, *, forgotten: bool) -> str:
        target, _, _ = name.rpartition(" ")
        old = text_here(run, name)
        if state is None and old is not None and forgotten:
            note_removed_entry(run, old)
            forget_passages(run.memory, TextMatcher([old]))
            return ""
        text = None if state is None else canonical(state["text"])
        origin = sync_origin(run, () if state is None else tuple(state["sources"]))
        facts = {} if state is None else state["facts"]
        outcome = apply_text(run.memory, target, (old, text), origin, f"Merged into {file_name(target)}.", facts)
        # It may be full, or the text looks like an attack: a person decides.
        return outcome.message if isinstance(outcome, MemoryRefusal) else ""

    def digest(self, state: State) -> str:
        return entry_digest(state["text"]) + (_UNTRUSTED if is_untrusted(state) else "")

    def changed(self, run: Run, before: Row | None, state: State) -> Row:
        row = run.changed_row(before, self.digest(state))
        known = before.stamp if before else ""
        return row._replace(stamp=run.clock.untrusted_change(known)) if is_untrusted(state) else row

    def was_forgotten(self, run: Run, before: Row) -> bool:
        return _by_text(before).digest in forgotten_hashes(run.memory.storage.forgotten)

    @staticmethod
    def check(name: str, state: State) -> None:
        if not is_target(name.rpartition(" ")[0]):
            raise ValueError("a target")
        if state is None:
            return
        text, sources = state["text"], state["sources"]
        if not isinstance(text, str) or not text or unstorable_character(text) is not None:
            raise ValueError("text")
        if not isinstance(sources, list) or len(sources) > _MAX_SOURCES or not all(map(_is_text, sources)):
            raise ValueError("sources")
        FactsOfEntries.check(name, state["facts"])


class FactsOfEntries(Kind):
    """When entries were written and confirmed, by whom, and until when they are valid; it changes without the text."""

    name = OF_ENTRIES
    noun = ""

    def read(self, run: Run) -> dict[str, State]:
        return {
            f"{target} {uid}": facts
            for target in targets_of(run)
            for uid, (_, facts) in _entries_here(run, target).items()
        }

    def write(self, run: Run, name: str, state: State, *, forgotten: bool) -> str:
        target, text = name.rpartition(" ")[0], text_here(run, name)
        if text is None or state is None:
            return ""
        sources = run.memory.journal.sources(target).get(handle(text), ())
        if is_untrusted(state) and not sources:
            return ""
        outcome = apply_text(run.memory, target, (text, text), sync_origin(run, sources), "", state)
        return outcome.message if isinstance(outcome, MemoryRefusal) else ""

    @staticmethod
    def check(name: str, state: State) -> None:
        if not is_target(name.rpartition(" ")[0]) or (state is not None and set(state) - {"sources"} != _FACTS):
            raise ValueError("the facts of an entry")
        if state is not None and (
            not all(map(_is_text, state.values())) or parse_until(state["until"]) != state["until"]
        ):
            raise ValueError("a fact of an entry")


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _MAX_CHARS and unstorable_character(value) is None


def sync_origin(run: Run, sources: tuple[str, ...] = ()) -> Origin:
    """Return the origin of what another machine has changed."""
    return Origin(f"sync:{run.sender_name or run.sender}", explicit=True, sources=sources)


def entry_digest(text: str) -> str:
    """Return a digest of a text that is the same on all machines."""
    return digest(canonical(text))


def _by_text(row: Row) -> Row:
    return row._replace(digest=row.digest.removesuffix(_UNTRUSTED))


def targets_of(run: Run) -> tuple[Target, ...]:
    """Return every target that this machine has, or had when it was last synchronised."""
    known = sorted({name.rpartition(" ")[0] for name in run.known(Entries.name)})
    return tuple(dict.fromkeys((*run.memory.storage.targets(), *known)))


def text_here(run: Run, name: str) -> str | None:
    """Return the text of an entry in the file; None if it is not there."""
    row = run.row(Entries.name, name)
    texts = current_entries(run.memory, name.rpartition(" ")[0]) if row is not None and row.digest else []
    return next((text for text in texts if row is not None and entry_digest(text) == _by_text(row).digest), None)


def note_journal(run: Run) -> None:
    """Note how far the journal was read."""
    last = run.memory.journal.last()
    run.tables.set_value("journal", str(last.number if last else 0))


def apply_text(
    store: MemoryStore, target: Target, texts: tuple[str | None, str | None], origin: Origin, done: str, known: Facts
) -> MemoryReceipt | MemoryRefusal:
    """Replace, add or remove an entry as one change of the journal, with what is known about the new text."""
    old, new = texts

    def plan(current: Sequence[str]) -> EntryPlan:
        entries = list(current)
        position = entries.index(old) if old in entries else None
        edits = []
        if old == new:
            return EntryPlan(tuple(entries), ())
        if position is not None and new not in entries:
            edits = [EntryEdit(position, old, new)]
        elif position is not None:
            edits = [EntryEdit(position, old, None)]
        elif new is not None and new not in entries:
            edits = [EntryEdit(len(entries), None, new)]
        for edit in edits:
            apply_edit(entries, edit)
        return EntryPlan(tuple(entries), tuple(edits))

    until, facts = {}, {}
    if new is not None and known:
        facts = {new: {name: value for name, value in known.items() if name not in ("until", "sources")}}
        # An entry that exists may have a last day that is to go.
        until = {new: known["until"] or (NEVER if old == new else "")}
    request = WriteRequest(target, "batch", origin, plan, done, until=until, facts=facts)
    for _ in range(_ATTEMPTS):
        outcome = store.commit_unannounced(request) if old == new else store.commit(request)
        if isinstance(outcome, MemoryReceipt) or outcome.reason != "drift":
            break
    return outcome


def current_entries(store: MemoryStore, target: Target) -> list[str]:
    """Return the texts in a file, each once."""
    return list(dict.fromkeys(entry.text for entry in store.view(target).entries))


def _entries_here(run: Run, target: Target) -> dict[str, tuple[str, Facts]]:
    """Return the entries in a file with their facts, by ids that all machines share."""
    known = run.known(Entries.name)
    rows = {name.rpartition(" ")[2]: _by_text(row) for name, row in known.items() if name.rpartition(" ")[0] == target}
    facts = {
        each.entry.text: each.history
        | {"until": each.until, **({"sources": "\n".join(each.sources)} if each.sources else {})}
        for each in run.memory.facts(target)
    }
    texts = {entry_digest(text): text for text in facts}
    found = {uid: (texts[row.digest], facts[texts[row.digest]]) for uid, row in rows.items() if row.digest in texts}
    left = {row.digest: uid for uid, row in rows.items() if row.digest and row.digest not in texts}
    named = {rows[uid].digest for uid in found}
    new = {name: text for name, text in texts.items() if name not in named}
    origins = _origins(run.memory, target, int(run.tables.value("journal", "0"))) if new and left else {}
    for name, text in new.items():
        uid = left.pop(entry_digest(origins[text]), "") if text in origins else ""
        if not uid:
            uid = name[:32]
            if uid in rows and rows[uid].digest:
                # The entry that began with this text has another one now.
                uid = f"{uid[:16]}{run.number:08d}{run.machine}"
        found[uid] = text, facts[text]
    return found


def _origins(store: MemoryStore, target: Target, after: int) -> dict[str, str]:
    """Return the text that each entry had at the last run, by its text now, as the journal tells it."""
    origins: dict[str, str] = {}
    for change in store.journal.changes():
        if change.number <= after or change.target != target or change.action == "found":
            continue
        for edit in change.edits:
            if edit.before is not None and edit.after is not None:
                origins[edit.after] = origins.pop(edit.before, edit.before)
            elif edit.before is not None:
                origins.pop(edit.before, None)
    return origins
