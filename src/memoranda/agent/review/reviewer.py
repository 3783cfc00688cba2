"""One review: sends the conversation with one more message to the model, and runs its memory and skill tool calls.

System prompt, tools and messages are those of the conversation, byte for byte, so the service's prompt cache serves
nearly all of them; only attack passages are withheld from the messages. The record does not contain the review. If one
tool call of an answer cannot be parsed, the reviewer runs none of them.
"""

import json
import logging
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from memoranda.agent.api_messages import to_api_messages
from memoranda.agent.compression.summary import split_summary
from memoranda.agent.review import prompts
from memoranda.agent.review.report import ReviewReport, ReviewWrite, writes_of
from memoranda.agent.review.session_snapshot import SKILL_TOOL, ReviewSnapshot
from memoranda.agent.review.settings import ReviewSettings
from memoranda.agent.review.write_guard import WriteGuard
from memoranda.errors import BudgetSpentError, ModelError
from memoranda.models.model import ChatModel, Message, Reply, ToolCall
from memoranda.safety.fence import screen_message
from memoranda.support.tool import tool_refusal

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
