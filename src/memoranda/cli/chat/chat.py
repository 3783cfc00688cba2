"""A chat between one person and one model: how it starts, and the conversation that its commands can switch."""

import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from typing import NoReturn, Self

from memoranda.agent.loop import Agent
from memoranda.agent.review.report import ReviewReport
from memoranda.api.memory import Memory
from memoranda.api.session import Session
from memoranda.cli.chat.output import ChatOutput, ChatStatus, build_status
from memoranda.cli.context import EXIT_UNUSABLE
from memoranda.cli.process_resources import ResourceLogger
from memoranda.errors import MemorandaError, ModelError, SessionBusyError
from memoranda.home import config
from memoranda.memory.record.message_rows import text_of
from memoranda.models.model import ChatModel, Usage
from memoranda.models.model_factory import model_for
from memoranda.support.interrupts import deferred_interrupts
from memoranda.support.tool import JsonObject

_SOURCE = "cli"
_NOT_BEGUN = "Another turn of this conversation is in progress. Your message was not recorded."


def choose_model(memory: Memory, name: str | None, output: ChatOutput) -> ChatModel:
    """Returns the configured model; when there is none, says how to set one up and exits."""
    settings = memory.config.model
    try:
        return model_for(replace(settings, name=name) if name else settings, config.credentials(memory.home))
    except ModelError as error:
        hint = "'memoranda demo' shows the memory at work without a model."
        exit_with_error(output, f"{error}\n{hint}", type(error).__name__, EXIT_UNUSABLE)


def start_session(memory: Memory, model: ChatModel, session_id: str | None = None) -> Session:
    """Starts a new session, or resumes the latest session of the conversation that `session_id` belongs to."""
    latest = memory.sessions.get_compression_tip(session_id) if session_id else None
    return memory.session(
        source=_SOURCE, model=model.name, session_id=latest or session_id, directory=_current_directory()
    )


def _current_directory() -> Path | None:
    """Returns the current directory; None when it was deleted."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return None


def exit_with_error(output: ChatOutput, text: str, kind: str, code: int) -> NoReturn:
    """Shows why the chat cannot start, and exits."""
    output.show_error(text, kind)
    sys.exit(code)


class Chat:
    """The state that the chat commands and the input loop share."""

    def __init__(self, memory: Memory, model: ChatModel, output: ChatOutput, *, resume: str | None = None) -> None:
        """`resume` is the id of the session to resume; without it a new conversation starts."""
        self.memory = memory
        self.model = model
        self.output = output
        self.failed = False
        self.suggestion = ""
        """The text of an undone turn, which the user may want to edit and send again."""
        self.session: Session
        self.agent: Agent
        self.confirm: Callable[[str], bool | None] = lambda question: None
        """Asks the user a question; None where there is no person to ask."""
        self._used_before = Usage()
        self._reviews: SimpleQueue[ReviewReport] = SimpleQueue()
        self._open = ExitStack()
        self._logs_resources = False
        self.switch_to(start_session(memory, model, resume))

    def switch_to(self, session: Session) -> None:
        """Makes a session the current one."""
        self.session, output = session, self.output
        self.agent = self.memory.agent(
            self.model,
            session=session,
            on_text=output.show_text,
            on_event=output.show_event,
            on_review=self._reviews.put,
        )

    def replace_session(self, session: Session) -> None:
        """Continues in another conversation, after the current one has ended."""
        self._used_before += self.agent.usage
        self.switch_to(session)

    @property
    def used(self) -> Usage:
        """The tokens that the model used in this chat, over all its conversations."""
        return self._used_before + self.agent.usage

    @property
    def status(self) -> ChatStatus:
        if not self.is_recorded:
            return build_status(self.agent, None, [])
        return build_status(self.agent, self.session.title, [dict(message) for message in self.session.conversation()])

    @property
    def is_recorded(self) -> bool:
        """Whether the current session is in the record yet; asking does not create a database in an empty home."""
        if not self.memory.services.has_record:
            return False
        return self.memory.sessions.get_session(self.session.id) is not None

    def say(self, text: str) -> None:
        """Runs one turn; an error is shown, and the chat continues."""
        if not self._logs_resources:
            self._open.enter_context(ResourceLogger())
            self._logs_resources = True
        self.attempt(lambda: self._run_turn(text))
        self.show_reviews()

    def show_reviews(self) -> None:
        """Shows what background reviews saved since the last call; another thread queues their reports."""
        while not self._reviews.empty():
            report = self._reviews.get()
            if line := report.line():
                self.output.show_remark("review", line, {"counts": report.counts(), "failed": report.failed})

    def attempt(self, work: Callable[[], None]) -> None:
        """Runs a step, and shows the error or the interruption that ends it."""
        try:
            with deferred_interrupts():
                work()
        except KeyboardInterrupt:
            self.failed = True
            self.output.show_interrupted()
        except MemorandaError as error:
            self.failed = True
            self.output.show_error(str(error), type(error).__name__)

    def _run_turn(self, text: str) -> None:
        begun = self.agent.turns_begun
        self.output.show_waiting()
        try:
            answer = self.agent.turn(text)
        except (SessionBusyError, KeyboardInterrupt) as error:
            if self.agent.turns_begun > begun:
                raise
            # The user may want to send it again.
            self.suggestion = text
            if isinstance(error, KeyboardInterrupt):
                raise SessionBusyError(_NOT_BEGUN) from error
            raise
        self.output.show_answer(answer, self.status)

    def last_exchange(self) -> list[JsonObject]:
        """Returns the last message of the user and the last answer, if there are any."""
        messages: list[JsonObject] = [dict(message) for message in self.session.conversation()]
        messages = [message for message in messages if message["role"] in ("user", "assistant")]
        messages = [message for message in messages if text_of(message["content"]).strip()]
        while len(messages) > 1 and messages[-2]["role"] == messages[-1]["role"]:
            del messages[-2]
        return messages[-2:]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()
        self.session.end()
        self.show_reviews()
