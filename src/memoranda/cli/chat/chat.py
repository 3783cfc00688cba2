"""A chat: one person, one model, and the conversation that is open; commands may open another."""

from collections.abc import Callable
from contextlib import ExitStack
from queue import SimpleQueue
from typing import Self

from memoranda.agent.loop import Agent
from memoranda.agent.process_resources import ResourceLogger
from memoranda.app import Memory, Session
from memoranda.cli.chat.output import ChatOutput
from memoranda.cli.chat.startup import start_session
from memoranda.cli.chat.status import ChatStatus, status_of
from memoranda.db.orphaned_wal import database_exists
from memoranda.errors import MemorandaError
from memoranda.llm.model import ChatModel, Usage
from memoranda.review.report import ReviewReport
from memoranda.sessions.message_rows import text_of
from memoranda.support.interrupts import deferred_interrupts
from memoranda.tools import JsonObject


class Chat:
    """What commands and the reading of lines work on."""

    def __init__(self, memory: Memory, model: ChatModel, screen: ChatOutput, *, resume: str | None = None) -> None:
        """`resume` is the id of a session to take up; without one a new conversation begins."""
        self.memory = memory
        self.model = model
        self.screen = screen
        self.failed = False
        self.offered = ""
        """What the person may want to say again, changed: the words of a turn that was taken back."""
        self.session: Session
        self.agent: Agent
        self._used_before = Usage()
        self._reviews: SimpleQueue[ReviewReport] = SimpleQueue()
        self._open = ExitStack()
        self._watched = False
        self.go_on_in(start_session(memory, model, resume))

    def go_on_in(self, session: Session) -> None:
        """Make a session the one that is talked in."""
        self.session, screen = session, self.screen
        self.agent = self.memory.agent(
            self.model, session=session, on_text=screen.text, on_event=screen.event, on_review=self._reviews.put
        )

    def leave_for(self, session: Session, reason: str) -> None:
        """End the conversation that is open, and go on in another."""
        self.session.end(reason)
        self._used_before += self.agent.usage
        self.go_on_in(session)

    @property
    def used(self) -> Usage:
        """What the model used in this chat, over all its conversations."""
        return self._used_before + self.agent.usage

    @property
    def status(self) -> ChatStatus:
        if not self.has_begun:
            return status_of(self.agent, None, [])
        return status_of(self.agent, self.session.title, self.session.conversation())

    @property
    def has_begun(self) -> bool:
        """Whether there is anything yet; looking leaves no trace in an empty home."""
        if not database_exists(self.memory.home.state_db):
            return False
        return self.memory.sessions.get_session(self.session.id) is not None

    def say(self, text: str) -> None:
        """Have one turn; what goes wrong is shown, and the chat goes on."""
        if not self._watched:
            self._open.enter_context(ResourceLogger())
            self._watched = True
        self.attempt(lambda: self._turn(text))
        self.show_reviews()

    def show_reviews(self) -> None:
        """Say what reviews in the background have saved meanwhile; they come in from another thread."""
        while not self._reviews.empty():
            report = self._reviews.get()
            if line := report.line():
                self.screen.remark("review", line, {"counts": report.counts(), "failed": report.failed})

    def attempt(self, work: Callable[[], None]) -> None:
        """Do something that may fail or be interrupted, and show that it was."""
        try:
            with deferred_interrupts():
                work()
        except KeyboardInterrupt:
            self.failed = True
            self.screen.stopped()
        except MemorandaError as error:
            self.failed = True
            self.screen.trouble(str(error), type(error).__name__)

    def _turn(self, text: str) -> None:
        self.screen.asking()
        answer = self.agent.turn(text)
        self.screen.answered(answer, self.status)

    def last_exchange(self) -> list[JsonObject]:
        """The last thing that the user said, and the last answer, where there are any."""
        said = [each for each in self.session.conversation() if each["role"] in ("user", "assistant")]
        said = [each for each in said if text_of(each["content"]).strip()]
        while len(said) > 1 and said[-2]["role"] == said[-1]["role"]:
            del said[-2]
        return said[-2:]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()
        self.session.end()
        self.show_reviews()
