"""Each framework's own store on disk and ours behind the same interface: time per turn and load, disk, a planted fact.

Both stores of a framework get the same conversations through the methods that the framework calls, in turns of one
conversation each, so that both see the same machine. A turn is a question and an answer, recorded with as many calls as
the framework makes. A load is what a new object reads to continue a conversation. At the end each store is asked for
the fact that one turn of each conversation states; most of the frameworks' stores cannot be searched. The CPU includes
the thread in which Memoranda indexes what was recorded.

    make .venv-frameworks/.ready
    .venv-frameworks/bin/python benchmarks/framework_stores.py [--dir DIR] [--conversations 10] [--turns 25] [--json]
"""

import argparse
import asyncio
import json
import random
import sqlite3
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent_framework import FileHistoryProvider, Message
from agents.memory import SQLiteSession
from google.adk.events import Event
from google.adk.memory import SqliteMemoryService
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai import types
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.sqlite import SqliteSaver
from llama_index.core.llms import ChatMessage
from llama_index.core.memory import Memory
from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore
from strands.session import FileSessionManager
from strands.types.session import Session, SessionAgent, SessionMessage, SessionType

import memoranda
from memoranda.integrations.frameworks.agent_framework import MemorandaHistory
from memoranda.integrations.frameworks.google_adk import MemorandaMemoryService, MemorandaSessionService
from memoranda.integrations.frameworks.langgraph import MemorandaSaver
from memoranda.integrations.frameworks.llama_index import MemorandaChatStore
from memoranda.integrations.frameworks.openai_agents import MemorandaSession
from memoranda.integrations.frameworks.strands import MemorandaRepository

_WORDS = (Path(__file__).parent / "transcript_words.txt").read_text().split()
_PLACES = ["archive", "bakery", "cellar", "depot", "embassy", "factory", "garage", "harbour", "infirmary", "jetty"]
_THINGS = ["anchor", "barrel", "candle", "drum", "engine", "funnel", "globe", "hammer", "iron", "jar"]


class Store:
    """What is measured: recording a turn, loading a conversation, and finding a fact where that is possible."""

    searchable = False

    async def append(self, conversation: str, question: str, answer: str) -> None:
        raise NotImplementedError

    async def load(self, conversation: str) -> int:
        """Read a conversation as its framework does to continue it; the number of messages."""
        raise NotImplementedError

    async def find(self, question: str) -> str:
        return ""

    def close(self) -> None: ...


class _Ours(Store):
    searchable = True

    def __init__(self, directory: Path) -> None:
        self.memory = memoranda.open(directory)

    async def find(self, question: str) -> str:
        return json.dumps(self.memory.search(question)["results"][:1])

    def close(self) -> None:
        self.memory.close()


class _OpenAi(Store):
    session: Any

    async def append(self, conversation: str, question: str, answer: str) -> None:
        # The SDK adds the input before the model is called, and the output afterwards.
        session = self.session(conversation)
        await session.add_items([{"role": "user", "content": question}])
        await session.add_items([{"role": "assistant", "content": answer}])

    async def load(self, conversation: str) -> int:
        return len(await self.session(conversation).get_items())


def openai_agents() -> tuple[type[Store], type[Store]]:
    class Own(_OpenAi):
        def __init__(self, directory: Path) -> None:
            self.path = directory / "sessions.db"
            self.open: dict[str, SQLiteSession] = {}

        def session(self, conversation: str) -> Any:
            if conversation not in self.open:
                self.open[conversation] = SQLiteSession(conversation, self.path)
            return self.open[conversation]

        def close(self) -> None:
            for session in self.open.values():
                session.close()

    class Ours(_OpenAi, _Ours):
        def session(self, conversation: str) -> Any:
            return MemorandaSession(conversation, self.memory)

    return Own, Ours


class _Adk(Store):
    searchable = True
    service: Any
    memory_service: Any

    async def append(self, conversation: str, question: str, answer: str) -> None:
        names: Any = {"app_name": "bench", "user_id": "ana", "session_id": conversation}
        session = await self.service.get_session(**names) or await self.service.create_session(**names)
        events = [
            Event(author=author, content=types.Content(role=role, parts=[types.Part(text=text)]))
            for author, role, text in (("user", "user", question), ("agent", "model", answer))
        ]
        for event in events:
            await self.service.append_event(session, event)
        await self.remember(conversation, events)

    async def remember(self, conversation: str, events: Any) -> None:
        """Events that the session service does not put into memory by itself."""

    async def load(self, conversation: str) -> int:
        session = await self.service.get_session(app_name="bench", user_id="ana", session_id=conversation)
        return len(session.events)

    async def find(self, question: str) -> str:
        found = await self.memory_service.search_memory(app_name="bench", user_id="ana", query=question)
        return " ".join(part.text for entry in found.memories for part in entry.content.parts)


def google_adk() -> tuple[type[Store], type[Store]]:
    class Own(_Adk):
        def __init__(self, directory: Path) -> None:
            self.service = SqliteSessionService(str(directory / "sessions.db"))
            self.memory_service = SqliteMemoryService(directory / "memory.db")

        async def remember(self, conversation: str, events: Any) -> None:
            await self.memory_service.add_events_to_memory(
                app_name="bench", user_id="ana", events=events, session_id=conversation
            )

    class Ours(_Adk, _Ours):
        def __init__(self, directory: Path) -> None:
            super().__init__(directory)
            self.service = MemorandaSessionService(self.memory)
            self.memory_service = MemorandaMemoryService(self.memory)

    return Own, Ours


def llama_index() -> tuple[type[Store], type[Store]]:
    class _Llama(Store):
        chat_store: Any

        def short_term(self, conversation: str) -> Any:
            return Memory.from_defaults(conversation, chat_store=self.chat_store, token_limit=1_000_000)

        async def append(self, conversation: str, question: str, answer: str) -> None:
            short_term = self.short_term(conversation)
            await short_term.aput(ChatMessage(role="user", content=question))
            await short_term.aput(ChatMessage(role="assistant", content=answer))

        async def load(self, conversation: str) -> int:
            return len(await self.short_term(conversation).aget())

    class Own(_Llama):
        def __init__(self, directory: Path) -> None:
            uri = f"sqlite+aiosqlite:///{directory / 'chats.db'}"
            self.chat_store = SQLAlchemyChatStore(table_name="chats", async_database_uri=uri)

    class Ours(_Llama, _Ours):
        def __init__(self, directory: Path) -> None:
            super().__init__(directory)
            self.chat_store = MemorandaChatStore(self.memory)

    return Own, Ours


def agent_framework() -> tuple[type[Store], type[Store]]:
    class _History(Store):
        history: Any

        async def append(self, conversation: str, question: str, answer: str) -> None:
            await self.history.save_messages(conversation, [Message("user", [question])])
            await self.history.save_messages(conversation, [Message("assistant", [answer])])

        async def load(self, conversation: str) -> int:
            return len(await self.history.get_messages(conversation))

    class Own(_History):
        def __init__(self, directory: Path) -> None:
            self.history = FileHistoryProvider(directory)

    class Ours(_History, _Ours):
        def __init__(self, directory: Path) -> None:
            super().__init__(directory)
            self.history = MemorandaHistory(self.memory)

    return Own, Ours


def strands() -> tuple[type[Store], type[Store]]:
    class _Repository(Store):
        repository: Any
        counts: dict[str, int]

        async def append(self, conversation: str, question: str, answer: str) -> None:
            number = self.counts.get(conversation, 0)
            if not number:
                if self.repository.read_session(conversation) is None:
                    self.repository.create_session(Session(conversation, SessionType.AGENT))
                self.repository.create_agent(conversation, SessionAgent("a", {}, {}))
            for role, text in (("user", question), ("assistant", answer)):
                message: Any = {"role": role, "content": [{"text": text}]}
                self.repository.create_message(conversation, "a", SessionMessage(message, number))
                number += 1
            self.counts[conversation] = number

        async def load(self, conversation: str) -> int:
            return len(self.repository.list_messages(conversation, "a"))

    class Own(_Repository):
        def __init__(self, directory: Path) -> None:
            self.counts = {}
            self.repository = FileSessionManager("unused", storage_dir=str(directory))

    class Ours(_Repository, _Ours):
        def __init__(self, directory: Path) -> None:
            super().__init__(directory)
            self.counts = {}
            self.repository = MemorandaRepository(self.memory)

    return Own, Ours


def langgraph() -> tuple[type[Store], type[Store]]:
    class _Saver(Store):
        saver: Any

        def config(self, conversation: str) -> Any:
            return {"configurable": {"thread_id": conversation, "checkpoint_ns": ""}}

        async def append(self, conversation: str, question: str, answer: str) -> None:
            # A graph stores its state after the input and after the node that answers.
            for text in (question, answer):
                found = self.saver.get_tuple(self.config(conversation))
                messages = [*(found.checkpoint["channel_values"]["messages"] if found else []), text]
                version = f"{len(messages):032}.0"
                checkpoint: Any = {
                    **empty_checkpoint(),
                    "channel_values": {"messages": messages},
                    "channel_versions": {"messages": version},
                }
                config = found.config if found else self.config(conversation)
                self.saver.put(config, checkpoint, {"source": "loop", "step": len(messages)}, {"messages": version})

        async def load(self, conversation: str) -> int:
            found = self.saver.get_tuple(self.config(conversation))
            return len(found.checkpoint["channel_values"]["messages"])

    class Own(_Saver):
        def __init__(self, directory: Path) -> None:
            self.saver = SqliteSaver(sqlite3.connect(directory / "checkpoints.db", check_same_thread=False))

        def close(self) -> None:
            self.saver.conn.close()

    class Ours(_Saver, _Ours):
        searchable = False  # Checkpoints are opaque.

        def __init__(self, directory: Path) -> None:
            super().__init__(directory)
            self.saver = MemorandaSaver(self.memory)

    return Own, Ours


FRAMEWORKS = {
    "LangGraph, SqliteSaver": langgraph,
    "OpenAI Agents, SQLiteSession": openai_agents,
    "Google ADK, SqliteSessionService and SqliteMemoryService": google_adk,
    "LlamaIndex, SQLAlchemyChatStore (SQLite)": llama_index,
    "Agent Framework, FileHistoryProvider": agent_framework,
    "Strands, FileSessionManager": strands,
}


@dataclass
class Figures:
    """What one store took; elapsed times by their median, the CPU of the process by its mean."""

    turns: list[float] = field(default_factory=list)
    loads: list[float] = field(default_factory=list)
    cpu: float = 0.0
    disk: int = 0
    found: int | None = None

    def row(self) -> dict[str, Any]:
        return {
            "turn_ms": round(statistics.median(self.turns) * 1000, 2),
            "turn_cpu_ms": round(self.cpu / len(self.turns) * 1000, 2),
            "load_ms": round(statistics.median(self.loads) * 1000, 2),
            "disk_kb": round(self.disk / 1024),
            "found": self.found,
        }


def _turns(conversation: int, count: int) -> Iterator[tuple[str, str]]:
    rng = random.Random(conversation)
    planted = rng.randrange(count)
    for number in range(count):
        question, answer = (" ".join(rng.choices(_WORDS, k=rng.randint(12, 60))) for _ in range(2))
        if number == planted:
            question += f". The spare key of the {_PLACES[conversation]} hangs behind the {_THINGS[conversation]}."
        yield question, answer


async def _converse(store: Store, figures: Figures, conversation: int, turns: int) -> None:
    """Record one conversation and load it five times."""
    name = f"conversation-{conversation}"
    cpu = time.process_time()
    for question, answer in _turns(conversation, turns):
        started = time.perf_counter()
        await store.append(name, question, answer)
        figures.turns.append(time.perf_counter() - started)
    figures.cpu += time.process_time() - cpu
    for _ in range(5):
        started = time.perf_counter()
        loaded = await store.load(name)
        figures.loads.append(time.perf_counter() - started)
        assert loaded == 2 * turns, f"{type(store)} loaded {loaded} messages of {2 * turns}"


async def measure(
    makers: tuple[type[Any], type[Any]], directory: Path, conversations: int, turns: int
) -> list[Figures]:
    """Measure the framework's own store and ours, conversation by conversation."""
    folders, figures = [directory / "own", directory / "ours"], [Figures(), Figures()]
    for folder in folders:
        folder.mkdir()
    stores: list[Store] = [make(folder) for make, folder in zip(makers, folders, strict=True)]
    for conversation in range(conversations):
        for store, each in zip(stores, figures, strict=True):
            await _converse(store, each, conversation, turns)
    for store, each in zip(stores, figures, strict=True):
        if store.searchable:
            each.found = 0
            for conversation in range(conversations):
                found = await store.find(f"Where is the spare key of the {_PLACES[conversation]}?")
                each.found += f"behind the {_THINGS[conversation]}" in found
        store.close()
    for folder, each in zip(folders, figures, strict=True):
        each.disk = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--dir", type=Path, help="where the stores are, so that a disk can be chosen")
    parser.add_argument(
        "--conversations", type=int, default=len(_PLACES), choices=range(1, len(_PLACES) + 1), metavar="N"
    )
    parser.add_argument("--turns", type=int, default=25)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows: dict[str, Any] = {}
    for name, makers in FRAMEWORKS.items():
        with tempfile.TemporaryDirectory(dir=options.dir) as directory:
            own, ours = asyncio.run(measure(makers(), Path(directory), options.conversations, options.turns))
        rows[name] = {"own": own.row(), "memoranda": ours.row()}
        if not options.json:
            for store, row in rows[name].items():
                found = "no search" if row["found"] is None else f"{row['found']} of {options.conversations}"
                print(f"{name} | {store} | {row['turn_ms']} | {row['turn_cpu_ms']} | {row['load_ms']} | "
                      f"{row['disk_kb']} | {found}")  # fmt: skip
    if options.json:
        json.dump(rows, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
