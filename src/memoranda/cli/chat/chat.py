"""A chat between one person and one model: the conversation that its commands can switch, and its turns."""

from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue

from memoranda.agent.loop import Agent
from memoranda.agent.review.report import ReviewReport
from memoranda.api.memory import Memory
from memoranda.api.session import Session
from memoranda.cli.chat.output import PipeOutput, join_lines
from memoranda.cli.terminal_text import terminal_line
from memoranda.errors import MemorandaError, SessionBusyError
from memoranda.memory.record.message_rows import text_of
from memoranda.models.model import ChatModel
from memoranda.support.interrupts import deferred_interrupts

_NOT_BEGUN = "Another turn of this conversation is in progress. Your message was not recorded."
_INTERRUPTED = "Interrupted. Your message and what was recorded until then are kept; /undo removes the turn."


class Chat:
    """The state that the commands of a chat and its input loop share."""

    session: Session
    agent: Agent

    def __init__(self, memory: Memory, model: ChatModel, output: PipeOutput, *, resume: str | None = None) -> None:
        """`resume` is the id of the session to resume; without it a new conversation starts."""
        self.memory, self.model, self.output = memory, model, output
        self.failed = False
        self.suggestion = ""
        """The text for the next input line: that of an undone turn, or a message that could not be sent."""
        self._reviews: SimpleQueue[ReviewReport] = SimpleQueue()
        latest = memory.sessions.get_compression_tip(resume) if resume else None
        session_id = latest or resume
        self.use(memory.session(source="cli", model=model.name, session_id=session_id, directory=_current_directory()))

    def use(self, session: Session) -> None:
        """Continue in a session; the one before has ended."""
        output, self.session = self.output, session
        self.agent = self.memory.agent(
            self.model, session=session, on_text=output.write, on_event=output.show_event, on_review=self._reviews.put
        )

    @property
    def is_recorded(self) -> bool:
        """Whether the session is in the record yet; asking does not create a database in an empty home."""
        return self.memory.services.has_record and self.memory.sessions.get_session(self.session.id) is not None

    def greet(self, text: str = "") -> None:
        """Say which conversation this is, or that it is resumed, and show its last messages."""
        text = text or f"Resumed {repr(self.session.title) if self.session.title else self.session.id}."
        said = self.session.conversation() if self.is_recorded else []
        said = [each for each in said if each["role"] != "tool" and text_of(each["content"]).strip()]
        last = [f"  {each['role']}: {join_lines(text_of(each['content']), 300)}" for each in said[-2:]]
        self.output.show("session", "\n".join([text, *last]))

    def status(self) -> str:
        """Say how full the context was at the last call of the model, and how much came from its cache."""
        agent, window, size = self.agent, self.model.window, self.agent.context_tokens or 0
        cached = 100 * agent.usage.cache_read_tokens / (agent.usage.input_tokens or 1)
        title = f" · {self.session.title}" if self.session.title else ""
        context = f"context {size:,} of {window:,} tokens ({100 * size / (window or 1):.0f} %)"
        return terminal_line(f"{context} · {cached:.0f} % from cache · {self.model.name}{title}")

    def say(self, text: str) -> None:
        """Run one turn; an error is shown, and the chat continues."""
        self.attempt(lambda: self._run_turn(text))
        self.show_reviews()

    def attempt(self, work: Callable[[], None]) -> None:
        """Run a step, and show the error or the interruption that ends it."""
        try:
            with deferred_interrupts():
                work()
        except KeyboardInterrupt:
            self.failed = True
            self.output.show("interrupted", _INTERRUPTED)
        except MemorandaError as error:
            self.fail(str(error))

    def fail(self, text: str) -> None:
        """Say what was not done."""
        self.failed = True
        self.output.show("error", text)

    def show_reviews(self) -> None:
        """Show what background reviews saved since the last call; another thread queues their reports."""
        while not self._reviews.empty():
            if line := self._reviews.get().line():
                self.output.show("notice", terminal_line(line))

    def _run_turn(self, text: str) -> None:
        begun = self.agent.turns_begun
        self.output.wait()
        try:
            self.agent.turn(text)
        except (SessionBusyError, KeyboardInterrupt) as error:
            if self.agent.turns_begun > begun:
                raise
            # The user may want to send it again.
            self.suggestion = text
            raise SessionBusyError(_NOT_BEGUN) from error
        self.output.show("status", self.status())

    def close(self) -> None:
        """End the conversation, which can be resumed."""
        self.session.end()
        self.show_reviews()


def _current_directory() -> Path | None:
    """Return the current directory; None when it was deleted."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return None
