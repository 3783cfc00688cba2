"""ByteRover as a vendor: turns are files of its context tree, which `brv` searches without a model.

`brv` can only store text through a model, which decides what to keep. So turns and entries of curated memory are
written into the tree directly: nothing is lost, no token is spent, and a repeated delivery replaces its own file. At
the end of a session, and before messages are compressed, the model that is connected to `brv` extracts knowledge.
"""

import logging
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from memoranda.errors import PermanentProviderError, ProviderError, StorageError
from memoranda.external.loading.setup import ConfigField
from memoranda.external.message_text import plain_text
from memoranda.external.provider import Message
from memoranda.external.vendors.byterover.brv_program import INSTALL, BrvProgram, NoModelError, find_program
from memoranda.external.vendors.byterover.context_tree import CONVERSATIONS, MEMORY, ContextTree, parse_file
from memoranda.external.vendors.provider import VendorProvider
from memoranda.external.vendors.scope import VendorScope, profile_of
from memoranda.external.vendors.sent_record import SentItem
from memoranda.external.vendors.texts import RecalledItem
from memoranda.external.vendors.vendor import (
    MODE,
    RECALL_LIMIT,
    TIMEOUT,
    Delegation,
    MemoryWrite,
    SessionEnd,
    Turn,
    Vendor,
    digest,
    text,
    tool,
)
from memoranda.support.shorten import shorten_end
from memoranda.support.tool import JsonObject

_log = logging.getLogger(__name__)

_FIELDS = (
    ConfigField("program", "Path of brv; empty to look in PATH and where its installers put it", default=""),
    ConfigField("project", "Directory of the brv project; empty for byterover in the home", default=""),
    ConfigField("auto_extract", "Have the model of brv extract knowledge from a session that has ended", default=True),
    MODE,
    RECALL_LIMIT,
    replace(TIMEOUT, description="Seconds that recall or a tool waits for brv", default=50.0),
)

_MAX_QUERY_CHARS = 5_000
_MAX_ANSWER_CHARS = 8_000
_MAX_CONTENT_CHARS = 25_000
_ITEM_CHARS = 1_200
_SEARCH_LIMIT = 5
_STATUS_FIELDS = ("cliVersion", "authStatus", "contextTreeStatus", "contextTreeDir", "abstractQueue")

_ABOUT = "# ByteRover\nByteRover keeps a tree of knowledge on this machine, with every turn of your conversations."
_RECALL = "What fits the conversation is recalled before you answer."
_TOOLS = "brv_query answers a question from the tree, brv_curate adds knowledge to it, and brv_status shows its state."
# One argument of a program may have 128 KiB.
_MAX_TRANSCRIPT_CHARS = 25_000
_MESSAGE_CHARS = 2_000
_HISTORY = 50
_CURATE_SECONDS = 300.0


class ByteRoverVendor(Vendor):
    """One user's context tree."""

    name = "byterover"
    label = "ByteRover"
    # A command takes longer than a turn waits.
    live_recall = False
    fields = _FIELDS
    guidance = (_ABOUT, _RECALL, _TOOLS)

    @classmethod
    def missing_dependency(cls, settings: Mapping[str, Any]) -> str:
        return "" if find_program(str(settings.get("program") or "")) else f"brv is not installed. {INSTALL}."

    @classmethod
    def remote_names(cls, scope: VendorScope, settings: Mapping[str, Any]) -> Mapping[str, str]:
        return {"context_tree": str(ContextTree(_project_directory(scope, settings)).root)}

    def open(self) -> None:
        self._tree = ContextTree(_project_directory(self.scope, self.settings))
        self._tree.create()
        program = find_program(str(self.settings["program"] or "")) or "brv"
        self._brv = BrvProgram(program, self._tree.project)
        self._extracting = threading.Lock()
        self._logged_no_model = False

    def close(self) -> None:
        self._brv.close()

    def test_connection(self) -> str:
        if missing := self.missing_dependency(self.settings):
            raise PermanentProviderError(
                f"{missing} 'memoranda provider setup byterover' sets the path of another one."
            )
        status = self._brv.run("status", timeout=self.timeout)
        providers = self._brv.run("providers", "list", timeout=self.timeout).get("providers")
        connected = [
            str(each.get("name")) for each in providers or () if isinstance(each, dict) and each.get("isCurrent")
        ]
        model = (
            f"its model is of {connected[0]}"
            if connected
            else "no model is connected, so nothing is extracted and brv_query only searches: "
            "'brv providers connect' connects one"
        )
        return f"brv {status.get('cliVersion', 'without a version')} answers for {self._tree.project}; {model}."

    def search(self, query: str, limit: int, timeout: float) -> list[RecalledItem]:
        query = query.replace("\0", " ").strip()
        if not query:
            return []
        found = self._brv.run("search", "--limit", str(min(limit, 50)), text=query, timeout=timeout).get("results")
        hits = [hit for hit in found if isinstance(hit, dict)] if isinstance(found, list) else []
        return [item for hit in hits if (item := self._item(hit)) is not None]

    def store_turn(self, turn: Turn) -> str:
        path = self._tree.turn_path(turn.session_id, turn.key)
        text = f"**User:** {turn.user.strip()}\n\n**Assistant:** {turn.assistant.strip()}"
        return self._tree.write(path, "Turn", text, turn.time)

    def store_delegation(self, delegation: Delegation) -> str:
        path = self._tree.turn_path(delegation.session_id, delegation.key)
        text = f"**Delegated task:** {delegation.task.strip()}\n\n**Result:** {delegation.result.strip()}"
        return self._tree.write(path, "Delegation", text, delegation.time)

    def store_memory_write(self, write: MemoryWrite) -> str | None:
        stored = None
        if write.action != "remove" and write.content.strip():
            path = self._tree.entry_path(write.target, write.content)
            stored = self._tree.write(path, "Entry", write.content, write.time)
        if write.action != "add" and write.old_text.strip():
            old = self._tree.entry_path(write.target, write.old_text)
            if old != stored:
                self._tree.delete(old)
        return stored

    def end_session(self, end: SessionEnd) -> None:
        text = _transcript(end.messages)
        if not self.settings["auto_extract"] or not text:
            return
        try:
            self._extract(text, end.session_id, may_be_done=end.may_be_stored)
        except NoModelError as error:
            # The turns are stored; only their extraction needs a model.
            if not self._logged_no_model:
                _log.warning("ByteRover extracts nothing from sessions: %s", error)
            self._logged_no_model = True

    def before_compression(self, messages: list[Message], session_id: str) -> str:
        text = _transcript(messages)
        if self.settings["auto_extract"] and self.scope.accepts_writes and text:
            # It takes longer than compression waits; the turns themselves are stored anyway.
            threading.Thread(
                target=self._extract_quietly, args=(text, session_id), name="memoranda-byterover-curate", daemon=True
            ).start()
        return ""

    def delete_sent(self, session_ids: Collection[str] | None) -> tuple[list[SentItem], list[str]]:
        items = self.sent.of_sessions(session_ids)
        remaining: list[str] = []
        for session_id in {item.session_id for item in items if item.kind in ("turn", "delegation")}:
            self._tree.delete(self._tree.session_path(session_id))
        shared = {item.remote_id for item in self.sent.items() if item.kind == "updated"}
        for item in items:
            if item.kind == "memory_write" or (item.kind == "created" and item.remote_id not in shared):
                self._tree.delete(item.remote_id)
        kept = sorted({item.remote_id for item in items if item.remote_id in shared})
        remaining += [f"{self._tree.root / path}: brv changed it, and it has other sources" for path in kept]
        if any(item.kind in ("created", "updated", "extraction") for item in items):
            remaining.append("the history of 'brv curate' in brv's own data directory, with the texts it was given")
        return items, remaining

    def _item(self, hit: Mapping[str, Any]) -> RecalledItem | None:
        path, score = str(hit.get("path") or ""), hit.get("score")
        # A hit of a shared source is not a file of this tree.
        file = self._tree.read(path) if hit.get("origin") in ("local", None) else None
        file = file or parse_file(str(hit.get("excerpt") or ""))
        kind = {CONVERSATIONS: "turn", MEMORY: "memory"}.get(path.partition("/")[0], "knowledge")
        number = float(score) if isinstance(score, int | float) and not isinstance(score, bool) else None
        return RecalledItem(file.text, file.time, number, path, kind) if file.text else None

    def _curate(self, text: str, session_id: str, timeout: float) -> tuple[list[str], list[str]]:
        """Have the model of `brv` store what it finds worth keeping; returns the files that it created and changed."""
        seconds = str(max(1, int(timeout)))
        before = self._tree.files()
        data = self._brv.run("curate", "--timeout", seconds, text=text, timeout=timeout + 5)
        changes = data.get("changes")
        lists = changes.values() if isinstance(changes, dict) else ()
        changed = self._tree.relative(path for paths in lists if isinstance(paths, list) for path in paths)
        # brv reports new files as updated ones.
        created = [path for path in changed if path not in before]
        updated = [path for path in changed if path in before]
        for kind, paths in (("created", created), ("updated", updated)):
            for path in paths:
                self.sent.add(kind, path, path, session_id)
        return created, updated

    def _extract(self, text: str, session_id: str, *, may_be_done: bool) -> None:
        """Have knowledge extracted from a conversation, once: it also ends after it was compressed."""
        key = digest(session_id, text, chars=24)
        with self._extracting:
            if self.sent.find("extraction", key) is not None or (may_be_done and self._was_curated(key)):
                return
            # The history of brv shows the key, and so that the text was curated.
            self._curate(f"{text}\n(memoranda {key})", session_id, _CURATE_SECONDS)
            self.sent.add("extraction", key, "", session_id)

    def _was_curated(self, key: str) -> bool:
        """Whether an attempt whose answer was lost was completed, by the history of `brv`."""
        entries = self._brv.run(
            "curate", "view", "--limit", str(_HISTORY), "--status", "completed", timeout=self.timeout
        ).get("entries")
        inputs = [entry.get("input") for entry in entries or () if isinstance(entry, dict)]
        return any(key in str(each.get("context")) for each in inputs if isinstance(each, dict))

    def _extract_quietly(self, text: str, session_id: str) -> None:
        try:
            self._extract(text, session_id, may_be_done=False)
        except (ProviderError, StorageError) as error:
            # StorageError: the provider was shut down meanwhile.
            _log.warning("ByteRover extracted nothing before the compression: %s", error)

    @tool(
        "brv_query",
        "Answer a question from ByteRover's knowledge tree.",
        ("query",),
        query=text("A question in plain words."),
    )
    def _query_tool(self, args: JsonObject, session_id: str) -> JsonObject:
        question = args["query"].strip()[:_MAX_QUERY_CHARS]
        try:
            data = self._brv.run("query", "--timeout", str(int(self.timeout)), text=question, timeout=self.timeout + 2)
        except NoModelError as error:
            items = self.search(question, _SEARCH_LIMIT, self.timeout)
            results = [{"path": item.id, "text": shorten_end(item.text, _ITEM_CHARS)} for item in items]
            return {"results": results, "note": f"These are search results. {error}"}
        return {"result": shorten_end(str(data.get("content") or ""), _MAX_ANSWER_CHARS)}

    @tool(
        "brv_curate",
        "Add knowledge to ByteRover's tree: a fact, a decision, a pattern. Its model decides where it belongs.",
        ("content",),
        writes=True,
        content=text("Knowledge worth keeping, with its context."),
    )
    def _curate_tool(self, args: JsonObject, session_id: str) -> JsonObject:
        content = shorten_end(args["content"].strip(), _MAX_CONTENT_CHARS)
        created, updated = self._curate(content, session_id, self.timeout)
        if not created and not updated:
            return {"error": "ByteRover's model stored nothing of it. Say it more precisely, with its context."}
        return {"status": "stored", "created": created, "updated": updated}

    @tool("brv_status", "Show the state of ByteRover: version, sign-in, tree.")
    def _status_tool(self, args: JsonObject, session_id: str) -> JsonObject:
        data = self._brv.run("status", timeout=self.timeout)
        return {name: data[name] for name in _STATUS_FIELDS if name in data}


class ByteRoverProvider(VendorProvider):
    vendor_class = ByteRoverVendor


def _project_directory(scope: VendorScope, settings: Mapping[str, Any]) -> Path:
    """The project of a user: one per user, because `brv` cannot limit a search to a part of a tree."""
    configured = str(settings.get("project") or "")
    owners = Path(configured).expanduser().absolute() if configured else scope.home / "byterover"
    if not scope.user_id and scope.profile in ("default", profile_of(scope.home)):
        return owners
    return owners.with_name(f"{owners.name}-users") / scope.peer()


def _transcript(messages: Sequence[Message]) -> str:
    """The last messages of a conversation as text, the newest at the end."""
    lines: list[str] = []
    left = _MAX_TRANSCRIPT_CHARS
    for message in reversed(messages):
        text = shorten_end(plain_text(message.get("content")).strip(), _MESSAGE_CHARS)
        if message.get("role") not in ("user", "assistant") or not text:
            continue
        line = f"[{str(message['role']).upper()}] {text}"
        if len(line) > left:
            break
        left -= len(line) + 1
        lines.append(line)
    return "\n".join(reversed(lines))
