"""The conversations that the picker lists: the latest ones, or those that a search finds."""

import shlex
import sys
from collections.abc import Collection
from typing import Any

from memoranda.api.memory import Memory
from memoranda.cli.context import printable
from memoranda.cli.terminal_text import local_time, terminal_line
from memoranda.errors import SessionError
from memoranda.importers.sources import resume_command
from memoranda.search.guidance import NO_PROJECT
from memoranda.support.home import DEFAULT_PROFILE
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.projects import project_name
from memoranda.upkeep.transcripts import read_conversations

_MAX_OUTPUT_CHARS = 2_000
# The source of conversations with `memoranda chat`.
_CHAT = "cli"


@dataclass(frozen=True, slots=True)
class FoundConversation:
    """One line of the list; `resume` is the command that continues it, "" if there is none."""

    session_id: str
    title: str
    source: str
    project: str
    when: str
    messages: int
    snippet: str
    resume: str


@dataclass(slots=True)
class FoundConversations:
    """Finds conversations with the filters of the command, which keys can change."""

    memory: Memory
    limit: int
    agent: str | None = None
    project: str | None = None
    projects: Collection[str] | None = None
    since: float | None = None

    def agents(self) -> list[str]:
        """The agents that have conversations, the most frequent first."""
        counts = self.memory.sessions.statistics()["by_source"]
        hidden = self.memory.config.recall.hidden_sources
        return sorted((name for name in counts if name not in hidden), key=lambda name: -counts[name]["sessions"])

    def find(self, query: str) -> list[FoundConversation]:
        """The conversations that match; without a query the latest ones."""
        return self._search(query) if query.strip() else self._latest()

    def read(self, session_id: str) -> list[str]:
        """A conversation as lines that are safe for a terminal; "" for an empty line."""
        lines: list[str] = []
        for conversation in read_conversations(self.memory.sessions, [session_id]):
            lines += [terminal_line(conversation.title), ""]
            for message in conversation.messages():
                lines.append(f"{terminal_line(message.speaker)}  {local_time(message.timestamp)}  #{message.number}")
                text = message.text
                if message.role == "tool" and len(text) > _MAX_OUTPUT_CHARS:
                    text = f"{text[:_MAX_OUTPUT_CHARS]}… ({len(text):,} characters)"
                lines += [f"  {terminal_line(line)}" for line in text.splitlines()]
                lines += [f"  → {terminal_line(f'{name}({arguments})', 200)}" for name, arguments in message.calls]
                lines.append("")
        return lines

    def _latest(self) -> list[FoundConversation]:
        options: dict[str, Any] = {} if self.since is None else {"since": self.since}
        options |= {} if self.projects is None else {"projects": self.projects}
        rows = self.memory.sessions.list_sessions_rich(
            limit=self.limit,
            source=self.agent,
            exclude_sources=() if self.agent else self.memory.config.recall.hidden_sources,
            order_by_last_active=True,
            **options,
        )
        return [
            FoundConversation(
                row["id"],
                printable(row["title"] or row["preview"] or "(no messages)"),
                printable(row["source"]),
                printable(project_name(row["project"]) or ""),
                local_time(row["last_active"]),
                row["message_count"],
                "",
                self._resume(row["id"]),
            )
            for row in rows
        ]

    def _search(self, query: str) -> list[FoundConversation]:
        options: dict[str, Any] = {"limit": self.limit}
        options |= {} if self.agent is None else {"source": self.agent}
        options |= {} if self.project is None else {"project": self.project}
        options |= {} if self.since is None else {"since": self.since}
        try:
            answer = self.memory.search(query, **options)
            if not answer.get("results") and query[-1:].isalnum():
                # The last word is still being typed.
                answer = self.memory.search(f"{query}*", **options)
        except SessionError as error:
            if NO_PROJECT in str(error):
                return []
            raise
        found = []
        for result in answer.get("results", ()):
            row = self.memory.sessions.get_session(result["session_id"]) or {}
            found.append(
                FoundConversation(
                    result["session_id"],
                    printable(result["title"] or "(no title)"),
                    printable(result["source"]),
                    printable(project_name(result.get("project")) or ""),
                    local_time(row.get("last_active")),
                    row.get("message_count", 0),
                    printable(" ".join(result["snippet"].split())),
                    self._resume(result["session_id"]),
                )
            )
        return found

    def _resume(self, session_id: str) -> str:
        tip = self.memory.sessions.get_compression_tip(session_id) or session_id
        row = self.memory.sessions.get_session(tip) or {}
        if row.get("source") == _CHAT:
            home = self.memory.home
            words = [sys.executable, "-m", "memoranda", "--home", str(home.base), "chat", f"--resume={tip}"]
            return shlex.join([*words, "--profile", home.profile] if home.profile != DEFAULT_PROFILE else words)
        return resume_command(row)
