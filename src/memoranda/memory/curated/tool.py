"""The `memory` tool: reads a model's arguments and answers with one JSON object, whatever the arguments are."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, assert_never

from memoranda.errors import StorageError
from memoranda.memory.curated import guidance, refusals
from memoranda.memory.curated.facts import show_days
from memoranda.memory.curated.operations import (
    Add,
    AwaitsApproval,
    EntryEdit,
    MemoryReceipt,
    MemoryRefusal,
    MemoryWriteResult,
    Operation,
    Put,
    Remove,
    Replace,
)
from memoranda.memory.curated.settings import NOTES, PROJECT, Target, is_target
from memoranda.memory.curated.snapshot import remove_origin
from memoranda.memory.curated.store import MemoryStore
from memoranda.support.origin import Origin, SourcesOf
from memoranda.support.shorten import shorten_end
from memoranda.support.tool import InvalidArgumentsError, JsonObject, Tool, own_tool, tool_refusal

_log = logging.getLogger(__name__)


_ACTIONS = ("add", "replace", "remove", "move")
_MAX_FAILURES_PER_TURN = 3
_PREVIEW_CHARS = 80
# With the usual limits everything is shown; a file a hundred times larger must not fill the context window.
_MAX_SHOWN_CHARS = 20_000
_FIELDS: JsonObject = {
    "action": {"type": "string", "enum": list(_ACTIONS), "description": guidance.ACTION},
    "content": {"type": "string", "description": guidance.CONTENT},
    "old_text": {"type": "string", "description": guidance.OLD_TEXT},
    "key": {"type": "string", "description": guidance.KEY},
    "until": {"type": "string", "description": guidance.UNTIL},
    "to": {"type": "string", "description": guidance.TO},
}


def parameters(*, project: bool = False, notes: bool = False) -> JsonObject:
    """The arguments of the tool; `project` is whether the session has one, `notes` whether there is a record."""
    targets = {"memory": guidance.MEMORY, "user": guidance.USER}
    targets |= ({PROJECT: guidance.PROJECT} if project else {}) | ({NOTES: guidance.NOTES} if notes else {})
    return {
        "type": "object",
        "properties": {
            "target": {"type": "string", "enum": list(targets), "description": ", ".join(targets.values())},
            **_FIELDS,
            "operations": {
                "type": "array",
                "description": guidance.OPERATIONS,
                "items": {"type": "object", "properties": _FIELDS, "required": ["action"]},
            },
        },
        "required": ["target"],
    }


PARAMETERS = parameters()


class MemoryTool:
    """The tool of one session. It counts failures, so that a model does not spend a whole turn on retries."""

    def __init__(
        self,
        store: MemoryStore,
        origin: Origin,
        sources_of: SourcesOf | None = None,
        message_of: Callable[[], int | None] = lambda: None,
    ) -> None:
        """`sources_of` says which untrusted text may have suggested the new texts of a call.

        `message_of` is the id of the user's message that the calls of this turn follow.
        """
        self._store = store
        self._origin = origin
        self._sources_of = sources_of
        self._message_of = message_of
        self._failures = 0

    def definitions(self) -> tuple[Tool, ...]:
        """The tool for a model, or none when all of memory is switched off.

        It is screened: it shows entries as the prompt does, and so knows what a person has allowed.
        """
        if not self._store.targets():
            return ()
        project = self._store.project is not None
        text = guidance.TOOL_DESCRIPTION + (guidance.PROJECT_DESCRIPTION if project else "")
        return (
            own_tool(
                "memory",
                text,
                parameters(project=project, notes=self._store.notes is not None),
                self.call,
                screened=True,
            ),
        )

    def begin_turn(self) -> None:
        """Forget earlier failures, because a new user message has arrived."""
        self._failures = 0

    def call(self, arguments: Mapping[str, Any]) -> JsonObject:
        """Answer one call; never raises."""
        try:
            result = self._answer(arguments)
        except InvalidArgumentsError as error:
            result = tool_refusal("invalid", f"{error} Nothing was written.")
        except Exception as error:
            # A tool promises to answer and never to raise, even when Memoranda has a bug.
            _log.exception("the memory tool failed")
            message = f"Memory failed unexpectedly ({type(error).__name__}: {error}). Continue without saving."
            result = tool_refusal("internal", message)
        if result["success"] or "staged" in result:
            self._failures = 0
            return result
        self._failures += 1
        if self._failures > _MAX_FAILURES_PER_TURN:
            return {"success": False, "done": True, "reason": result["reason"], "error": guidance.STOP}
        return result

    def _answer(self, arguments: Mapping[str, Any]) -> JsonObject:
        if isinstance(arguments, Mapping) and arguments.get("action") == "move":
            return self._move(arguments)
        target, operations = read_arguments(arguments)
        texts = [item.old_text if isinstance(item, Remove) else item.content for item in operations]
        displaces = any(not isinstance(item, Add) or item.until for item in operations)
        origin = self._origin_of(texts, latest=displaces)
        if target == NOTES:
            # Most calls write no notes.
            from memoranda.memory.curated.moves import write_notes  # noqa: PLC0415

            return describe(write_notes(self._store, operations, origin), self._store)
        outcome = self._store.apply(target, operations, origin)
        return describe(outcome, self._store)

    def _move(self, arguments: Mapping[str, Any]) -> JsonObject:
        from memoranda.memory.curated.moves import move_entry  # noqa: PLC0415

        source, to = (_read_target(arguments.get(name)) for name in ("target", "to"))
        if PROJECT in (source, to):
            if self._store.project is None:
                return describe(refusals.no_project(self._store.settings), self._store)
            source, to = (self._store.project if each == PROJECT else each for each in (source, to))
        old_text = _read_text(arguments, "old_text", "")
        return describe(
            move_entry(self._store, source, old_text, to, self._origin_of([old_text], latest=True)), self._store
        )

    def _origin_of(self, texts: Sequence[str], *, latest: bool) -> Origin:
        """Return the origin of a change of these texts; `latest` says that it may replace, remove or end something."""
        if self._sources_of is None:
            return self._origin
        return replace(self._origin, sources=self._sources_of(texts, latest=latest), message=self._message_of())


def read_arguments(arguments: Any) -> tuple[Target, list[Operation]]:
    """The target and operations that a call asks for."""
    if not isinstance(arguments, Mapping):
        raise InvalidArgumentsError(f"The arguments must be an object, not {_type_name(arguments)}.")
    target = _read_target(arguments.get("target"))
    batch, action = arguments.get("operations"), arguments.get("action")
    if batch is not None and not isinstance(batch, list):
        raise InvalidArgumentsError(f"operations must be a list, not {_type_name(batch)}.")
    if not batch:
        return target, [_read_operation(arguments, "")]
    if action:
        raise InvalidArgumentsError("Send either operations or a single action, not both.")
    return target, [_read_operation(item, f"Operation {number}: ") for number, item in enumerate(batch, start=1)]


def _read_target(target: Any) -> Target:
    if target is None:
        return "memory"
    if target not in (PROJECT, NOTES) and not is_target(target):
        raise InvalidArgumentsError(
            f"target must be 'memory', 'user', 'project' or 'notes', not {shorten_end(repr(target), _PREVIEW_CHARS)}."
        )
    return str(target)


def _read_operation(item: Any, where: str) -> Operation:
    if not isinstance(item, Mapping):
        raise InvalidArgumentsError(f"{where}an operation must be an object, not {_type_name(item)}.")
    action = item.get("action")
    until = _read_text(item, "until", where) if item.get("until") is not None else ""
    if action in ("add", "replace") and item.get("key") and not item.get("old_text"):
        return Put(_read_text(item, "key", where), _read_text(item, "content", where), until)
    if action == "add":
        return Add(_read_text(item, "content", where), until)
    if action == "replace":
        return Replace(_read_text(item, "old_text", where), _read_text(item, "content", where), until)
    if action == "remove":
        return Remove(_read_text(item, "old_text", where))
    raise InvalidArgumentsError(
        f"{where}action must be add, replace or remove, not {shorten_end(repr(action), _PREVIEW_CHARS)}."
    )


def _read_text(item: Mapping[str, Any], name: str, where: str) -> str:
    text = item.get(name)
    if text is None:
        raise InvalidArgumentsError(f"{where}{name} is missing.")
    if not isinstance(text, str):
        raise InvalidArgumentsError(f"{where}{name} must be a string, not {_type_name(text)}.")
    return remove_origin(text)


def describe(outcome: MemoryWriteResult, store: MemoryStore) -> JsonObject:
    """The JSON result for an outcome, with the live state of its target."""
    match outcome:
        case MemoryReceipt():
            result = _describe_receipt(outcome, store)
        case AwaitsApproval():
            return {
                "success": False, "staged": True, "done": True, "reason": "approval", "target": outcome.target,
                "pending_id": outcome.proposal, "message": outcome.message, "similar": similar_to(outcome, store),
            }  # fmt: skip
        case MemoryRefusal():
            result = _describe_refusal(outcome, store)
        case _:
            assert_never(outcome)
    return result if outcome.target == NOTES else _with_live_state(result, store, outcome.target)


def _with_live_state(result: JsonObject, store: MemoryStore, target: Target) -> JsonObject:
    result |= _live_state(store, target)
    written = {edit["after"] for edit in result.get("changed", ()) if "after" in edit}
    if written and written.issubset(result.get("expired_entries", ())):
        del result["visible_from"]
        result["note"] = guidance.EXPIRED
    return result


def _describe_receipt(receipt: MemoryReceipt, store: MemoryStore) -> JsonObject:
    result: JsonObject = {
        "success": True, "done": True, "target": receipt.target, "message": receipt.message,
        "changed": [_describe_edit(edit, receipt.target, store) for edit in receipt.edits],
        "stored_in": str(receipt.stored_in), "similar": similar_to(receipt, store),
    }  # fmt: skip
    if receipt.moved:
        result["moved_to_notes"] = [store.visible_text(receipt.target, text) for text in receipt.moved]
    if receipt.edits and receipt.target != NOTES:
        result |= {"change": receipt.change, "visible_from": guidance.VISIBLE_FROM, "note": guidance.NOTE}
    if receipt.backup:
        result["backup"] = str(receipt.backup)
    return result


def similar_to(outcome: MemoryReceipt | AwaitsApproval, store: MemoryStore) -> list[str]:
    """The entries and notes that share most with what was written, or what awaits a person."""
    if isinstance(outcome, MemoryReceipt):
        texts = [edit.after for edit in outcome.edits if edit.after is not None]
    else:
        proposal = store.proposals.get(outcome.proposal)
        operations = proposal.operations if proposal is not None else ()
        texts = [item.content for item in operations if not isinstance(item, Remove)]
    return store.similar(outcome.target, texts) if texts else []


def _describe_edit(edit: EntryEdit, target: Target, store: MemoryStore) -> JsonObject:
    action = "add" if edit.before is None else "remove" if edit.after is None else "replace"
    sides = {"before": edit.before, "after": edit.after}
    return {"action": action} | {
        side: store.visible_text(target, text) for side, text in sides.items() if text is not None
    }


def _describe_refusal(refusal: MemoryRefusal, store: MemoryStore) -> JsonObject:
    result: JsonObject = {
        "success": False, "target": refusal.target, "reason": refusal.reason, "error": refusal.message,
    }  # fmt: skip
    if refusal.matches:
        result["matches"] = [_preview(text, refusal.target, store) for text in refusal.matches]
    if refusal.findings:
        result["findings"] = list(refusal.findings)
    if refusal.backup:
        result["drift_backup"] = str(refusal.backup)
    return result


def _live_state(store: MemoryStore, target: Target) -> JsonObject:
    try:
        view = store.view(target)
    except StorageError as error:
        return {"state": str(error)}
    texts: list[str] = []
    room = _MAX_SHOWN_CHARS
    for entry in view.entries:
        room -= len(entry.visible_text)
        if room < 0:
            break
        texts.append(entry.visible_text)
    valid, shown = store.valid_entries(target), show_days(texts, lambda: store.facts(target))
    state: JsonObject = {"usage": view.usage, "entry_count": len(view.entries), "current_entries": shown}
    if expired := [text for text in texts if text not in valid]:
        state["expired_entries"] = expired
    return state if room >= 0 else state | {"entries_not_shown": len(view.entries) - len(shown)}


def _preview(text: str, target: Target, store: MemoryStore) -> str:
    shown = store.visible_text(target, text)
    # A placeholder ends in the handle, which must stay.
    return shorten_end(shown, _PREVIEW_CHARS) if shown == text else shown


def _type_name(value: Any) -> str:
    return "null" if value is None else type(value).__name__
