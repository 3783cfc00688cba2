"""Redacting a message, purging the history and deleting a conversation leave no word in any file."""

from contextlib import closing
from pathlib import Path

import pytest

import memoranda
from memoranda.external.outbox.outbox import Outbox
from tests.cli.terminal import Terminal
from tests.external.plugins import add_plugin
from tests.upkeep.forgetting.filled_home import DOWN, occurrences

WORD = "zorblaxquint"


def test_the_words_of_a_redacted_message_leave_the_index_at_once(tmp_path: Path) -> None:
    """Also while the store stays open."""
    with memoranda.open(tmp_path) as memory:
        memory.sessions.create_session("s", "test")
        for number in range(50):
            memory.sessions.append_message("s", "user", f"message number {number} about apples")
        number = memory.sessions.append_message("s", "user", f"the secret is {WORD}")
        assert memory.search(WORD)["results"]
        assert memory.sessions.redact_message(number)
        assert occurrences(tmp_path, WORD) == {}
        assert memory.search("apples")["results"]


def test_a_redacted_message_is_not_delivered_afterwards(tmp_path: Path) -> None:
    """Its turn waits for a service that is down, and loses only the text of the message."""
    add_plugin(tmp_path, "down", DOWN)
    (tmp_path / "config.yaml").write_text("memory:\n  provider: down\n")
    with memoranda.open(tmp_path) as memory:
        with memory.session(source="test") as session, session.turn(f"my secret is {WORD}") as turn:
            turn.done("I like apples.")
        (message, *_) = memory.sessions.get_messages(session.id)
        with closing(Outbox(tmp_path)) as outbox:
            assert WORD in str(outbox.list_jobs("", 1)[0].texts)
        memory.sessions.redact_message(message["id"])
    assert occurrences(tmp_path, WORD) == {}
    with closing(Outbox(tmp_path)) as outbox:
        texts = dict(outbox.list_jobs("", 1)[0].texts)
    assert WORD not in str(texts) and texts["assistant_content"] == "I like apples."


@pytest.mark.slow
def test_a_purged_entry_is_neither_delivered_later_nor_kept_as_words(tmp_path: Path) -> None:
    """It is gone from the queue and from the facts, with its words; another entry stays in all of them."""
    (tmp_path / "config.yaml").write_text("memory:\n  provider: holographic\n")
    terminal = Terminal(tmp_path)
    with memoranda.open(tmp_path) as memory, memory.session(source="test") as session:
        memory.remember(f"The codename is {WORD}.")
        memory.remember("The colour is green.")
        # A session delivers what waits.
        with session.turn("hello") as turn:
            turn.done("hello")
    terminal.ok("memory", "add", f"Another one: {WORD}.")
    with closing(Outbox(tmp_path)) as outbox:
        assert WORD in str(outbox.list_jobs("", 10))
    assert "holographic.cache/holographic.db" in occurrences(tmp_path, WORD)
    terminal.ok("memory", "remove", "The codename is")
    terminal.ok("memory", "remove", "Another one")
    answer = terminal.json("memory", "purge", "--yes")
    assert answer["at_services"] == ["holographic: deleted 1 fact"]
    assert answer["left"] == []
    assert occurrences(tmp_path, WORD) == {}
    assert "holographic.cache/holographic.db" in occurrences(tmp_path, "green")
    with memoranda.open(tmp_path) as memory, memory.session(source="test") as session, session.turn("again") as turn:
        turn.done("again")
    assert occurrences(tmp_path, WORD) == {}


def test_a_removal_stays_queued_while_a_service_is_down(tmp_path: Path) -> None:
    """Purging says so: without the removal, the service would keep the entry for ever."""
    add_plugin(tmp_path, "down", DOWN)
    (tmp_path / "config.yaml").write_text("memory:\n  provider: down\n")
    terminal = Terminal(tmp_path)
    terminal.ok("memory", "add", f"The codename is {WORD}.")
    terminal.ok("memory", "remove", WORD)
    answer = terminal.json("memory", "purge", "--yes")
    assert [place["where"] for place in answer["left"]] == ["down"]
    with closing(Outbox(tmp_path)) as outbox:
        assert outbox.backlog("down").waiting == 1


def test_a_deleted_conversation_leaves_no_line_in_logs_and_reports(tmp_path: Path) -> None:
    """Lines that the chat's history and a log quote are overwritten; other lines stay."""
    with memoranda.open(tmp_path) as memory, memory.session(source="test") as session:
        with session.turn(f"please tell me all about {WORD} today") as turn:
            turn.done(f"There is a lot to say about {WORD}, and I say it.")
        name = session.id
    (tmp_path / "chat_history").write_text(f"please tell me all about {WORD} today\nwhat about figs?\n")
    Terminal(tmp_path).ok("sessions", "delete", str(name), "--yes")
    assert occurrences(tmp_path, WORD) == {}
    assert (tmp_path / "chat_history").read_text().endswith("\nwhat about figs?\n")
