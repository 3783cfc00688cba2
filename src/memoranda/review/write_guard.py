"""Which calls of a review are carried out: memory and skill tools alone, and only what the user's words support."""

import re
from collections.abc import Mapping
from typing import Any

from memoranda.curated.operations import Add, EntryPlan, Operation, Remove, Replace, locate, plan
from memoranda.curated.settings import Target
from memoranda.curated.tool import read_arguments
from memoranda.errors import StorageError
from memoranda.review import prompts
from memoranda.review.evidence import UserEvidence, is_covered, keeps_most
from memoranda.review.reviewable_session import MEMORY_TOOL, SKILL_TOOL, ReviewSnapshot
from memoranda.tools import InvalidArgumentsError, JsonObject, tool_refusal

# Arguments of a skill write that say where, not what.
_PLACES = frozenset({"action", "name", "path", "file_path", "file", "old_text", "old_string", "category"})
_MARKUP = re.compile(r"^\s*(?:#{1,6}|[-*+]|\d+[.)]|```\w*|---)\s*|[`*_]{1,3}", re.MULTILINE)
_FIELD = re.compile(r"^[A-Za-z_-]{1,20}:\s", re.MULTILINE)


class WriteGuard:
    """The tools of one review."""

    def __init__(self, snapshot: ReviewSnapshot) -> None:
        self._snapshot = snapshot
        self._tools = {tool.name: tool for tool in snapshot.review_tools}
        self._evidence = UserEvidence(snapshot.user_words)

    @property
    def names(self) -> list[str]:
        return list(self._tools)

    def call(self, name: str, arguments: Mapping[str, Any]) -> JsonObject:
        """Carry a call out, or say why not; never raises."""
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
        """Why a write may not be made; "" also when the tool itself will say what is wrong with it."""
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
            return self._unsupported(operation.content)
        place = locate(entries, operation.old_text)
        if not isinstance(place, int):
            return ""
        old = entries[place]
        others = entries[:place] + entries[place + 1 :]
        if isinstance(operation, Replace):
            if problem := self._unsupported(operation.content, old):
                return problem
            if not self._evidence.adds(operation.content, old):
                # The same words may say the contrary in another order; shorter is no harm.
                shorter = operation.content in old
                return "" if shorter or self._evidence.touches(old) else prompts.untouched(old)
            if keeps_most(old, operation.content):
                return ""
            others = (*others, operation.content)
        assert isinstance(operation, Replace | Remove)
        if is_covered(old, others) or self._evidence.touches(old):
            return ""
        return prompts.untouched(old)

    def _objection_to_skill(self, arguments: Mapping[str, Any]) -> str:
        action = str(arguments.get("action", ""))
        if "delete" in action or "remove" in action:
            return prompts.NO_DELETION
        # Only a patch says what stands there already, and the store refuses one that is wrong about it.
        given = str(arguments.get("old_text") or arguments.get("old_string") or "") if action == "patch" else ""
        for text in _texts(arguments):
            if problem := self._unsupported(_FIELD.sub("", _MARKUP.sub("", text)), given, skill=True):
                return problem
        return ""

    def _unsupported(self, text: str, given: str = "", *, skill: bool = False) -> str:
        found = self._evidence.lacks(text, given, skill=skill)
        if found is None:
            return ""
        if found.contrary:
            return prompts.contrary(found.clause)
        return prompts.unsupported(found.missing, found.clause)


def _texts(value: Any, name: str = "") -> list[str]:
    """Every text in the arguments of a skill write that would be stored."""
    if isinstance(value, str):
        return [] if name in _PLACES or not value.strip() else [value]
    if isinstance(value, Mapping):
        return [text for key, item in value.items() for text in _texts(item, str(key))]
    return [text for item in value for text in _texts(item, name)] if isinstance(value, list | tuple) else []
