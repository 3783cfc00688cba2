"""One review: sends the conversation with one more message to the model, and runs its memory and skill tool calls.

System prompt, tools and messages are those of the conversation, byte for byte, so the service's prompt cache serves
nearly all of them; only attack passages are withheld from the messages. The record does not contain the review. If one
tool call of an answer cannot be parsed, the reviewer runs none of them. `WriteGuard` lets only memory and skill tools
run, and only writes that the user's words support, or that state something new; the origin of those is the review.
"""

import json
import logging
import re
import time
from collections.abc import Callable, Mapping
from typing import Any

from memoranda.agent.compression.summary import split_summary
from memoranda.agent.model_messages import to_api_messages
from memoranda.agent.review import prompts
from memoranda.agent.review.evidence import UserEvidence, is_covered, keeps_most
from memoranda.agent.review.report import MEMORY_TOOL, SKILL_TOOL, ReviewReport, ReviewSnapshot, ReviewWrite, writes_of
from memoranda.agent.review.settings import ReviewSettings
from memoranda.errors import BudgetSpentError, ModelError, StorageError
from memoranda.memory.curated.operations import Add, EntryPlan, Operation, Put, Remove, Replace, locate, plan
from memoranda.memory.curated.settings import Target
from memoranda.memory.curated.tool import read_arguments
from memoranda.models.model import ChatModel, Message, Reply, ToolCall
from memoranda.safety.behaviour import changes_behaviour
from memoranda.safety.fence import screen_message
from memoranda.support.lazy_dataclass import dataclass
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
        if isinstance(operation, Put):
            operation = operation.resolved(entries)
        if isinstance(operation, Add):
            # A statement that the user did not make is saved with its origin, unless the user said the contrary.
            found = self._evidence.find_unsupported(operation.content)
            only_states = found is not None and not found.contrary and not changes_behaviour(operation.content)
            return "" if only_states else self._support_objection(operation.content)
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


_log = logging.getLogger(__name__)

_NOTHING = re.compile(r"\bnothing\b.{0,60}\b(?:sav(?:e|ed|ing)|keep|kept|stor(?:e|ed|ing)|remember|add)\b", re.I | re.S)


@dataclass(frozen=True, slots=True)
class ReviewFocus:
    """What a review looks for."""

    memory: bool = True
    skills: bool = True


EVERYTHING = ReviewFocus()


class Reviewer:
    """Reviews conversations with a model; the caller meters the model's calls."""

    def __init__(self, model: ChatModel, settings: ReviewSettings | None = None) -> None:
        self._model = model
        self._settings = settings or ReviewSettings()

    def review(
        self,
        snapshot: ReviewSnapshot,
        focus: ReviewFocus = EVERYTHING,
        *,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> ReviewReport:
        """Reviews a conversation; failures of the model are in the report. Writes nothing once `is_stopped()`."""
        run = _Run(self._model, self._settings, snapshot, is_stopped)
        try:
            failed = run.finish(focus)
            postponed = is_stopped() and bool(failed)
        except BudgetSpentError as error:
            failed, postponed = str(error), True
        except ModelError as error:
            failed, postponed = f"{type(error).__name__}: {error}", False
        report = ReviewReport(snapshot.id, snapshot.user, tuple(run.writes), run.steps, failed, postponed)
        level = logging.INFO if postponed or not failed else logging.WARNING
        _log.log(level, "Review of session %s: %s.", snapshot.id, report.summary() or "nothing to save")
        return report


class _Run:
    """The steps of one review."""

    def __init__(
        self, model: ChatModel, settings: ReviewSettings, snapshot: ReviewSnapshot, is_stopped: Callable[[], bool]
    ) -> None:
        self.writes: list[ReviewWrite] = []
        self.steps = 0
        self._model = model
        self._settings = settings
        self._snapshot = snapshot
        self._is_stopped = is_stopped
        self._guard = WriteGuard(snapshot)

    def finish(self, focus: ReviewFocus) -> str:
        """Asks the model and runs its calls until it is done; returns why it did not finish, or ""."""
        skills = focus.skills and SKILL_TOOL in self._guard.names
        question = prompts.request(memory=focus.memory or not skills, skills=skills, tools=self._guard.names)
        past = map(_screen, self._snapshot.messages)
        messages = to_api_messages([*past, {"role": "user", "content": question}])
        deadline = time.monotonic() + self._settings.deadline_seconds
        while self.steps < self._settings.max_steps:
            left = deadline - time.monotonic()
            if left <= 0:
                return f"it took longer than {self._settings.deadline_seconds:g} s"
            if self._is_stopped():
                return "the program ended"
            reply = self._model.reply(self._snapshot.prompt, messages, self._snapshot.tools, deadline=left)
            self.steps += 1
            if reply.finish_reason == "length":
                return "the model's answer was truncated"
            if not reply.tool_calls:
                return "" if self.writes or _NOTHING.search(reply.text) else "the model's answer made no sense"
            if self._is_stopped():
                return "the program ended"
            messages += [reply.message(), *self._results(reply)]
        return f"the model was not done after {self._settings.max_steps} steps"

    def _results(self, reply: Reply) -> list[Message]:
        calls = [(call, _arguments(call)) for call in reply.tool_calls]
        problem = next((arguments for _, arguments in calls if isinstance(arguments, str)), "")
        results = []
        for call, arguments in calls:
            if problem or isinstance(arguments, str):
                result = tool_refusal("invalid", prompts.unreadable_call(problem))
            else:
                result = self._guard.call(call.name, arguments)
                self.writes += writes_of(call.name, arguments, result)
            content = json.dumps(result, ensure_ascii=False, default=str)
            results.append({"role": "tool", "tool_call_id": call.id, "content": content})
        return results


def _arguments(call: ToolCall) -> dict[str, Any] | str:
    """The arguments of a call, or what is wrong with them."""
    try:
        arguments = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError) as error:
        return f"the arguments of {call.name[:60]!r} are not JSON ({error})"
    return arguments if isinstance(arguments, dict) else f"the arguments of {call.name[:60]!r} are not an object"


def _screen(message: Message) -> Message:
    """A past message without attack passages; our own frame of a summary tells the model what to call, and stays."""
    content = message.get("content")
    parts = split_summary(content) if message.get("role") == "user" and isinstance(content, str) else None
    if parts is None:
        return screen_message(message)
    header, body, footer = parts
    return {**message, "content": f"{header}{screen_message({'content': body})['content']}{footer}"}
