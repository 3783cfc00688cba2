"""Session search (L2): what was said is found word for word, with what stood around it."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.models.model import Reply
from memoranda.testing.scripted.server import ScriptedServer
from memoranda.testing.scripted.steps import Refuse
from tests.capabilities.conversations import fill_context, take_turn
from tests.cli.terminal import Terminal

NOW = time.time()


@pytest.fixture
def db(tmp_path: Path) -> Iterator[memoranda.SessionDB]:
    """Four conversations in three sources, in English and Chinese."""
    with memoranda.SessionDB(tmp_path / "state.db") as opened:
        texts = {
            "docker": ("cli", "How do we run the docker deployment?", "With chat-send and config.yaml, as before."),
            "k8s": ("telegram", "The kubernetes deployment failed.", "The exact phrase is a deployment failure."),
            "python": ("discord", "python is not java here", "python alone is fine"),
            "chinese": ("cli", "数据库迁移的计划是什么？", "大别山项目先做迁移。"),
        }
        for number, (name, (source, question, answer)) in enumerate(texts.items()):
            opened.create_session(name, source=source, model="m/1", started_at=NOW - 1_000 + number)
            opened.append_message(name, "user", content=question, timestamp=NOW - 1_000 + number)
            opened.append_message(name, "assistant", content=answer, timestamp=NOW - 999.5 + number)
        calls = [{"id": "c1", "function": {"name": "terraform_plan", "arguments": '{"file": "network.tf"}'}}]
        opened.append_message("docker", "assistant", tool_calls=calls, timestamp=NOW - 800)
        opened.append_message("docker", "tool", content="ok", tool_call_id="c1", tool_name="terraform_plan")
        yield opened


def test_the_query_language_and_every_script_find_their_messages(db: memoranda.SessionDB) -> None:
    """Words, phrases, operators, prefixes, names and arguments of tools, parts of Chinese words; no input fails."""
    for query, sessions in [
        ("docker deployment", {"docker"}),
        ('"exact phrase"', {"k8s"}),
        ("docker OR kubernetes", {"docker", "k8s"}),
        ("python NOT java", {"python"}),
        ("deploy*", {"docker", "k8s"}),
        ("chat-send", {"docker"}),
        ("config.yaml", {"docker"}),
        ("docker AND", {"docker"}),
        ('docker "unbalanced', {"docker"}),
        ("terraform_plan", {"docker"}),
        ("network.tf", {"docker"}),
        ("数据库迁移", {"chinese"}),
        ("迁移", {"chinese"}),
        ("山", {"chinese"}),
        ("大别山项目", {"chinese"}),
        ('"别山大"', set()),
        ('"deployment docker"', set()),
        ("***(((", set()),
        ("", set()),
    ]:
        assert {hit["session_id"] for hit in db.search_messages(query)} == sessions


def test_a_hit_says_where_it_is_and_what_stands_around_it(db: memoranda.SessionDB) -> None:
    """Filters by source and role narrow the search; the snippet marks the match."""
    (hit,) = db.search_messages("kubernetes")
    assert hit["matched"] == "all words"
    # Where no message has all words, those with most of them are found, and say so.
    assert {hit["matched"] for hit in db.search_messages("kubernetes zeppelin")} == {"some words"}
    assert {"id", "session_id", "role", "timestamp", "snippet", "context", "source", "model"} <= hit.keys()
    assert ">>>kubernetes<<<" in hit["snippet"] and hit["session_started"] == NOW - 999
    assert "exact phrase" in str(hit["context"])
    assert {hit["session_id"] for hit in db.search_messages("deployment", source_filter=["cli"])} == {"docker"}
    assert {hit["session_id"] for hit in db.search_messages("deployment", exclude_sources=["cli"])} == {"k8s"}
    assert {hit["role"] for hit in db.search_messages("deployment", role_filter=["assistant"])} == {"assistant"}


def test_sql_of_another_program_reaches_the_index(db: memoranda.SessionDB) -> None:
    """INSERT, UPDATE and DELETE on the messages table."""
    assert db.search_messages("docker") != []
    with closing(sqlite3.connect(db.path)) as connection, connection:
        connection.execute(
            "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('k8s', 'user', 'walrus', 9)"
        )
        connection.execute("UPDATE messages SET content = 'The penguin.' WHERE content LIKE '%docker deployment%'")
        connection.execute("DELETE FROM messages WHERE session_id = 'python'")
    found = {word: {hit["session_id"] for hit in db.search_messages(word)} for word in ("walrus", "penguin", "java")}
    assert found == {"walrus": {"k8s"}, "penguin": {"docker"}, "java": set()}
    assert db.search_messages('"docker deployment"') == []


FIELDS = [
    "session_id",
    "title",
    "when",
    "source",
    "model",
    "matched_role",
    "match_message_id",
    "snippet",
    "bookend_start",
    "messages",
    "bookend_end",
    "messages_before",
    "messages_after",
]


@pytest.mark.parametrize("size", [80, 400, 2_000])
def test_one_tool_browses_discovers_and_scrolls(tmp_path: Path, size: int) -> None:
    """The mode follows from the arguments; a hit keeps its window and its bookends at every size of message."""
    with memoranda.open(tmp_path) as memory:
        for name in ("first", "second"):
            with memory.session(session_id=name, source="cli") as session:
                for number in range(25):
                    word = "walrus" if number == 12 else "word"
                    take_turn(
                        session, f"{name} {number} {word} ".ljust(size, "x"), f"answer {number} ".ljust(size, "y")
                    )
        with memory.session(source="cli") as session:
            take_turn(session, "Where did we see the walrus?")

            def search(**arguments: Any) -> Any:
                return session.call("session_search", arguments)

            browse = search()
            assert browse["mode"] == "browse" and {row["session_id"] for row in browse["results"]} >= {
                "first",
                "second",
            }
            discover = search(query="walrus")
            assert discover["mode"] == "discover"
            # The current conversation is in the context already.
            assert {hit["session_id"] for hit in discover["results"]} == {"first", "second"}
            for hit in discover["results"]:
                assert [field for field in FIELDS if field not in hit] == []
                assert hit["bookend_start"] and hit["bookend_end"] and hit["messages_before"] > 0
                assert any(message.get("anchor") for message in hit["messages"])
            anchor = discover["results"][0]
            around = {"session_id": anchor["session_id"], "around_message_id": anchor["match_message_id"]}
            scroll = search(**around, window=20)
            seen = {message["id"] for message in scroll["messages"]}
            while scroll.get("cursor"):
                scroll = search(**around, window=20, cursor=scroll["cursor"])
                assert scroll["success"], scroll
                seen |= {message["id"] for message in scroll["messages"]}
            assert len(seen) >= 40
            inside = search(session_id=session.id, around_message_id=1)
            assert inside["success"] is False or inside["messages"] == []


def test_a_compressed_conversation_is_one_hit_and_hidden_sources_are_none(tmp_path: Path) -> None:
    """Lists and search leave out what tools and sub-agents said to each other."""
    with memoranda.open(tmp_path) as memory:
        with memory.session(source="cli") as session:
            take_turn(session, "The walrus is old.")
            fill_context(session)
            assert session.compress(force=True).done
            take_turn(session, "The walrus is new.")
        with memory.session(source="tool") as tool:
            take_turn(tool, "The walrus of a tool.")
        assert len(memory.search("walrus")["results"]) == 1
        assert [row["session_id"] for row in memory.search()["results"]] == [session.id]
        assert len(memory.search("walrus", source="tool")["results"]) == 1
        ordered = [memory.search("walrus", sort=sort)["results"][0]["snippet"] for sort in ("oldest", "newest")]
        assert ["old" in ordered[0], "new" in ordered[1]] == [True, True]


def test_a_damaged_record_is_said_and_leaves_curated_memory_in_use(tmp_path: Path) -> None:
    """The tool answers, and nothing is changed."""
    with memoranda.open(tmp_path) as memory, memory.session(source="cli") as session:
        take_turn(session, "The walrus.")
    file = tmp_path / "state.db"
    damaged = bytearray(file.read_bytes())
    damaged[4096:] = b"\xff" * (len(damaged) - 4096)
    file.write_bytes(damaged)
    for index in tmp_path.glob("state.index*"):
        index.unlink()
    with memoranda.open(tmp_path) as memory:
        answer = memory.call("session_search", {"query": "walrus"})
        assert (answer["success"], answer["reason"]) == (False, "unavailable") and "doctor" in answer["error"]
        assert memory.remember("Still here.")["success"]
    assert file.read_bytes() == damaged


@pytest.mark.slow
@pytest.mark.usefixtures("model_sdks")
def test_a_search_can_be_summarized_for_its_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One setting; the helper reads the conversation around the match, and without it the messages stay."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENROUTER_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with memoranda.open(tmp_path) as memory, memory.session(source="cli") as session:
        take_turn(session, "Which walrus did we choose?", "The blue one.")
    terminal = Terminal(tmp_path)
    received: list[str] = []

    def answer(request: Any) -> Reply | Refuse:
        received.append(str(request))
        return Reply("They chose the blue walrus.") if len(received) < 3 else Refuse(400)

    with ScriptedServer(answer) as server:
        for key, value in (("provider", "openai"), ("name", "helper"), ("base_url", server.openai_url)):
            terminal.ok("config", "set", f"model.{key}", value)
        (plain,) = terminal.json("search", "walrus")["results"]
        assert plain.get("summary") is None and received == []
        (hit,) = terminal.json("search", "walrus", "--summary")["results"]
        assert hit["summary"] == "They chose the blue walrus." and "The blue one." in received[0]
        terminal.ok("config", "set", "search.summarize", "true")
        with memoranda.open(tmp_path) as memory:
            assert memory.search("walrus")["results"][0]["summary"] == "They chose the blue walrus."
        answered = terminal.json("search", "walrus")
        assert answered["results"][0]["messages"] and "summar" in answered["note"]
