"""Random things that people and programs do with a home, by name, for the property tests of synchronisation."""

from collections.abc import Callable
from contextlib import closing
from itertools import count

from memoranda.errors import SessionError
from memoranda.external.holographic.fact_store import FactStore
from memoranda.memory.curated.change_history import confirm_entry as confirm_entry_of
from memoranda.memory.curated.operations import Add
from memoranda.memory.curated.settings import CuratedSettings
from memoranda.memory.curated.store import MemoryStore
from memoranda.memory.record.rotation import KeptMessage, Summary
from memoranda.memory.skills.store import SkillStore
from memoranda.support.origin import PERSON, Origin
from memoranda.support.text_matcher import TextMatcher
from tests.search.past import BEGIN
from tests.upkeep.sync.machines import Machine

_numbers = count(1)
Operation = Callable[[Machine, int], None]


def _session(machine: Machine, pick: int) -> str | None:
    ids = list(machine.db.synced_rows.fingerprints())
    return ids[pick % len(ids)] if ids else None


def _open_session(machine: Machine, pick: int) -> str | None:
    session_id = _session(machine, pick)
    return session_id and machine.db.get_compression_tip(session_id)


def start(machine: Machine, pick: int) -> None:
    number = next(_numbers)
    machine.db.create_session(f"s{number}", "cli", started_at=BEGIN + number)
    append(machine, pick)


def append(machine: Machine, pick: int) -> None:
    session_id = _open_session(machine, pick)
    if session_id:
        number = next(_numbers)
        rows = [
            {"role": role, "content": f"word{pick % 5} said {number} {role}", "timestamp": BEGIN + number + part / 10}
            for part, role in enumerate(("user", "assistant"))
        ]
        machine.db.append_messages(session_id, rows)


def title(machine: Machine, pick: int) -> None:
    session_id = _session(machine, pick)
    if session_id:
        try:
            machine.db.set_session_title(session_id, f"Title {pick % 4}")
        except SessionError:
            # Another conversation has it.
            return


def archive(machine: Machine, pick: int) -> None:
    session_id = _session(machine, pick)
    if session_id:
        machine.db.set_session_archived(session_id, bool(pick % 2))


def end(machine: Machine, pick: int) -> None:
    session_id = _session(machine, pick)
    if session_id:
        machine.db.end_session(session_id, "user_exit")


def rewind(machine: Machine, pick: int) -> None:
    session_id = _open_session(machine, pick)
    users = [row["id"] for row in machine.db.get_messages(session_id) if row["role"] == "user"] if session_id else []
    if users:
        try:
            machine.db.rewind_to_message(session_id, users[pick % len(users)])
        except SessionError:
            # It is a summary.
            return


def compress(machine: Machine, pick: int) -> None:
    session_id = _open_session(machine, pick)
    rows = machine.db.get_messages(session_id) if session_id else []
    if rows:
        last = rows[-1]["id"]
        context = [Summary(f"They talked, messages {rows[0]['id']} to {last}."), KeptMessage(last)]
        machine.db.rotate_session(session_id, f"{session_id}c{next(_numbers)}", context, last_seen=last)


def delete(machine: Machine, pick: int) -> None:
    session_id = _session(machine, pick)
    if session_id and pick % 3 == 0:
        machine.db.delete_session(session_id)


def clear(machine: Machine, pick: int) -> None:
    session_id = _session(machine, pick)
    if session_id and pick % 3 == 0:
        machine.db.clear_messages(session_id)


def forget(machine: Machine, pick: int) -> None:
    machine.db.passages.replace(TextMatcher([f"word{pick % 5}"]))


def redact(machine: Machine, pick: int) -> None:
    session_id = _session(machine, pick)
    rows = machine.db.get_messages(session_id) if session_id else []
    if rows:
        machine.db.edits.redact_message(rows[pick % len(rows)]["id"])


def put_item(machine: Machine, pick: int) -> None:
    machine.db.items.put(("n",), f"k{pick % 3}", {"value": next(_numbers)})


def delete_item(machine: Machine, pick: int) -> None:
    machine.db.items.delete(("n",), f"k{pick % 3}")


def remember(machine: Machine, pick: int) -> None:
    machine.memory.remember(f"Entry {pick % 6}.", "project:github.com/acme/heron" if pick % 4 == 0 else "memory")


def confirm_entry(machine: Machine, pick: int) -> None:
    entries = sorted(machine.entries())
    if entries:
        confirm_entry_of(machine.memory.curated, ["memory"], entries[pick % len(entries)], PERSON)


def move_to_notes(machine: Machine, pick: int) -> None:
    entries = sorted(machine.entries())
    if entries:
        machine.memory.call("memory", {"action": "move", "old_text": entries[pick % len(entries)], "to": "notes"})


def change_entry(machine: Machine, pick: int) -> None:
    entries = sorted(machine.entries())
    if entries:
        machine.memory.curated.replace("memory", entries[pick % len(entries)], f"Changed {next(_numbers)}.")


def remove_entry(machine: Machine, pick: int) -> None:
    entries = sorted(machine.entries())
    if entries:
        machine.memory.curated.remove("memory", entries[pick % len(entries)])


def count_tokens(machine: Machine, pick: int) -> None:
    session_id = _session(machine, pick)
    if session_id:
        machine.db.update_token_counts(session_id, input_tokens=pick, estimated_cost_usd=pick / 1000)


def write_skill(machine: Machine, pick: int) -> None:
    skills = SkillStore(machine.home / "skills")
    text = f"---\nname: skill{pick % 2}\ndescription: It does things.\n---\nStep {next(_numbers)}.\n"
    name = f"skill{pick % 2}"
    if skills.catalogue().get(name) is None:
        skills.create(name, text, PERSON)
    elif pick % 5:
        skills.edit(name, text, PERSON)
    else:
        skills.delete(name, PERSON)


def propose(machine: Machine, pick: int) -> None:
    store = MemoryStore(machine.home / "memories", CuratedSettings(write_approval="propose"))
    store.apply("memory", [Add(f"Proposed {pick % 4}.")], Origin("agent"))


def decide(machine: Machine, pick: int) -> None:
    store = machine.memory.curated
    waiting = sorted(store.proposals.all(), key=lambda proposal: proposal.id)
    if waiting and pick % 2:
        store.approve(waiting[pick % len(waiting)])
    elif waiting:
        store.proposals.reject(waiting[pick % len(waiting)])


def change_fact(machine: Machine, pick: int) -> None:
    with closing(FactStore(machine.home, "")) as facts:
        fact, is_new = facts.add(f"Fact {pick % 4} about Ana.")
        if not is_new and pick % 3:
            facts.rate(fact.fact_id, bool(pick % 2))
        elif not is_new:
            facts.remove(fact.fact_id)


def synchronise(machine: Machine, pick: int) -> None:
    machine.sync()


OPERATIONS: tuple[Operation, ...] = (
    start, append, append, title, archive, end, rewind, compress, delete, clear, forget, redact, put_item, delete_item,
    remember, remember, change_entry, remove_entry, synchronise, synchronise, synchronise, count_tokens, write_skill,
    propose, decide, change_fact, confirm_entry, move_to_notes,
)  # fmt: skip
ENTRY_OPERATIONS: tuple[Operation, ...] = (remember, change_entry, change_entry, remove_entry, synchronise, synchronise)
"""Those that lead to conflicts."""
