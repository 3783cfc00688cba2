"""Guards the tool calls of a review: only memory and skill tools, and only writes that the user's words support."""

import re
from collections.abc import Mapping
from typing import Any

from memoranda.agent.review import prompts
from memoranda.agent.review.evidence import UserEvidence, is_covered, keeps_most
from memoranda.agent.review.session_snapshot import MEMORY_TOOL, SKILL_TOOL, ReviewSnapshot
from memoranda.errors import StorageError
from memoranda.memory.curated.operations import Add, EntryPlan, Operation, Remove, Replace, locate, plan
from memoranda.memory.curated.settings import Target
from memoranda.memory.curated.tool import read_arguments
from memoranda.support.tool import InvalidArgumentsError, JsonObject, tool_refusal

# Arguments of a skill write that say what to write to; they are not stored as text.
_ADDRESS_ARGUMENTS = frozenset({"action", "name", "path", "file_path", "file", "old_text", "old_string", "category"})
_MARKUP = re.compile(r"^\s*(?:#{1,6}|[-*+]|\d+[.)]|```\w*|---)\s*|[`*_]{1,3}", re.MULTILINE)
_FIELD = re.compile(r"^[A-Za-z_-]{1,20}:\s", re.MULTILINE)


class WriteGuard:
    """The tools of one review, with a check before each write."""

    def __init__(self, snapshot: ReviewSnapshot) -> None:
        self._snapshot = snapshot
        self._tools = {tool.name: tool for tool in snapshot.review_tools}
        self._evidence = UserEvidence(snapshot.user_texts)

    @property
    def names(self) -> list[str]:
        return list(self._tools)

    def call(self, name: str, arguments: Mapping[str, Any]) -> JsonObject:
        """Runs a tool call, or returns a refusal with the reason; never raises."""
        tool = self._tools.get(name)
        if tool is None:
            return tool_refusal("unavailable", prompts.not_available(name, self.names))
        problem = ""
        if name == MEMORY_TOOL:
            problem = self._objection_to_memory(arguments)
        elif name == SKILL_TOOL:
            problem = self._objection_to_skill(arguments)
        return tool_refusal("unsupported", problem) if problem else tool.call(arguments)

    def _objection_to_memory(self, arguments: Mapping[str, Any]) -> str:
        """Why a write is refused; "" also if the tool itself will report an error."""
        try:
            target, operations = read_arguments(arguments)
            entries = self._snapshot.entries(target)
        except (InvalidArgumentsError, StorageError):
            return ""
        for number, operation in enumerate(operations):
            before = plan(entries, operations[:number])
            if not isinstance(before, EntryPlan):
                return ""
            if problem := self._objection(target, operation, before.entries):
                return problem
        return ""

    def _objection(self, target: Target, operation: Operation, entries: tuple[str, ...]) -> str:
        if isinstance(operation, Add):
            return self._support_objection(operation.content)
        index = locate(entries, operation.old_text)
        if not isinstance(index, int):
            return ""
        old = entries[index]
        others = entries[:index] + entries[index + 1 :]
        if isinstance(operation, Replace):
            if problem := self._support_objection(operation.content, old):
                return problem
            if not self._evidence.adds_words(operation.content, old):
                # The same words in another order may say the contrary; only a shortened entry is safe.
                shorter = operation.content in old
                return "" if shorter or self._evidence.mentions(old) else prompts.not_mentioned(old)
            if keeps_most(old, operation.content):
                return ""
            others = (*others, operation.content)
        assert isinstance(operation, Replace | Remove)
        if is_covered(old, others) or self._evidence.mentions(old):
            return ""
        return prompts.not_mentioned(old)

    def _objection_to_skill(self, arguments: Mapping[str, Any]) -> str:
        action = str(arguments.get("action", ""))
        if "delete" in action or "remove" in action:
            return prompts.NO_DELETION
        # Only a patch quotes existing text, and the store refuses a wrong quote.
        existing = str(arguments.get("old_text") or arguments.get("old_string") or "") if action == "patch" else ""
        for text in _texts(arguments):
            if problem := self._support_objection(_FIELD.sub("", _MARKUP.sub("", text)), existing, skill=True):
                return problem
        return ""

    def _support_objection(self, text: str, existing: str = "", *, skill: bool = False) -> str:
        found = self._evidence.find_unsupported(text, existing, skill=skill)
        if found is None:
            return ""
        if found.contrary:
            return prompts.contradicts_user(found.clause)
        return prompts.not_supported(found.missing, found.clause)


def _texts(value: Any, name: str = "") -> list[str]:
    """The texts in the arguments of a skill write that would be stored."""
    if isinstance(value, str):
        return [] if name in _ADDRESS_ARGUMENTS or not value.strip() else [value]
    if isinstance(value, Mapping):
        return [text for key, item in value.items() for text in _texts(item, str(key))]
    return [text for item in value for text in _texts(item, name)] if isinstance(value, list | tuple) else []
