"""Items are memory: recall, a search that asks for them, and the prompts of hosts find what programs keep."""

import json
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.home import config
from memoranda.integrations.frameworks.prompt_recall import recall
from memoranda.integrations.hooks.answers import answer_event, read_payload
from memoranda.integrations.hooks.home_config import HomeConfig

pytestmark = pytest.mark.slow

_FACT = "The invoice archive of Globex is on the server heron."
_ASKED = "Where is the invoice archive of Globex?"
_UNRELATED = [
    "Which colour has the spinner archive?",
    "Please write a function that sorts a list",
    "Archive this",
    "what is the server doing?",
    "Where is the nearest bakery?",
]


def _fill(memory: memoranda.Memory) -> None:
    for question, reply in (
        ("Rename the parser module", "Renamed it to reader.py and fixed the imports."),
        ("Add a spinner to the page", "Added a spinner that shows while the list loads."),
        ("Why does the build fail?", "The lock file was stale; I regenerated it."),
    ):
        with memory.session() as session, session.turn(question) as turn:
            turn.done(reply)
    memory.items.put(("facts", "work"), "globex", {"text": _FACT, "year": 2026})
    memory.items.put(("facts", "home"), "plants", {"text": "Water the plants on Friday."})


def _texts(answer: Any) -> list[str]:
    return [item["text"] for item in answer["items"]]


def test_recall_finds_items_and_stays_silent_about_others(tmp_path: Path) -> None:
    """With the namespace, the key and the day; another user's items are in no answer."""
    with memoranda.open(tmp_path) as memory:
        _fill(memory)
        result = memory.recall(_ASKED)
        (found,) = result.entries["items"]
        assert found.startswith(f"text: {_FACT}") and "[item facts/work globex, 20" in found
        assert _FACT in result.block() and "the items>" in result.block()
        assert [text for text in _UNRELATED if "items" in memory.recall(text).entries] == []
        assert "items" not in memory.for_user("ben").recall(_ASKED).entries


def test_a_search_shows_items_when_it_is_asked_to(tmp_path: Path) -> None:
    """All of them or those of a namespace; the tool of a model has the same parameter."""
    with memoranda.open(tmp_path) as memory:
        _fill(memory)
        assert "items" not in memory.search("invoice archive")
        (item,) = memory.search("invoice archive", items="all")["items"]
        assert item["text"].startswith(f"text: {_FACT}") and item["score"] > 0.5
        assert (item["namespace"], item["key"]) == (["facts", "work"], "globex")
        assert memory.search("invoice archive", items="facts/home")["items"] == []
        assert len(_texts(memory.search(items="facts"))) == 2
        answer = memory.call("session_search", {"query": "invoice archive", "items": "facts"})
        assert _FACT in json.dumps(answer["items"])
        assert memory.for_user("ben").search("invoice archive", items="all")["items"] == []


def test_many_long_items_leave_room_for_conversations(tmp_path: Path) -> None:
    """Items take at most half of an answer, and of a long text the part that matches."""
    with memoranda.open(tmp_path) as memory:
        with memory.session() as session, session.turn("Where does the heron nest?") as turn:
            turn.done("The heron nests in the reeds.")
        text = "filler words " * 400 + "the heron nests in the reeds" + " x" * 900
        for number in range(30):
            memory.items.put(("files",), f"f{number}", text)
        answer: Any = memory.search("heron nests", items="all", limit=10)
        assert answer["count"] == 1 and len(answer["items"]) == 10
        assert all("heron nests" in item["text"] and len(item["text"]) <= 501 for item in answer["items"])
        assert len(json.dumps(answer["items"])) < memory.config.recall.answer_chars / 2


def test_a_prompt_that_needs_an_item_gets_it_and_no_other_does(tmp_path: Path) -> None:
    """In hosts and in frameworks, under the floor of conversations."""

    def ask(prompt: str) -> tuple[str, str]:
        payload = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": prompt}
        answer = answer_event(HomeConfig(memory.home), None, read_payload(json.dumps(payload).encode()), "claude-code")
        return answer.text, answer.reason

    with memoranda.open(tmp_path / "home") as memory:
        _fill(memory)
        text, reason = ask(_ASKED)
        assert f"item> text: {_FACT}" in text and reason == "1 item cleared the floor"
        assert _FACT in recall(memory, _ASKED)
        assert [prompt for prompt in _UNRELATED if "heron" in ask(prompt)[0]] == []


def test_items_are_found_by_meaning_with_the_semantic_extra(tmp_path: Path) -> None:
    """The question of mem0's quick start shares no word with its answer."""
    pytest.importorskip("wordllama")
    with memoranda.open(tmp_path) as memory:
        home = memory.home
        for key, text in (
            ("a", "I'm a vegetarian and allergic to nuts."),
            ("b", "The standup is at 9:30 in room Kepler."),
            ("c", "My sister lives in Boston."),
        ):
            memory.items.put(("mem0",), key, {"memory": text, "user_id": "alex"}, index=["memory"])
        memory.items.put(("mem0",), "hidden", {"memory": "dietary: vegan"}, index=False)
        assert memory.items.search(("mem0",), "What are my dietary restrictions?") == []
    config.set_value(home, "search.semantic", "on")
    with memoranda.open(tmp_path) as memory:
        (found,) = memory.items.search(("mem0",), "What are my dietary restrictions?")
        assert found.item.key == "a" and 0.1 <= (found.score or 0) < 0.5
        assert _texts(memory.search("What are my dietary restrictions?", items="mem0")) == [found.item.value["memory"]]
        # A question to recall does not ask for items, so what is only near in meaning is not enough.
        assert "items" not in memory.recall("What are my dietary restrictions?").entries
        assert memory.items.search(("mem0",), "standup room")[0].item.key == "b"
        assert memory.items.search(("mem0",), '"dietary restrictions"') == []
        filtered = memory.items.search(("mem0",), "What are my dietary restrictions?", filter={"user_id": "ben"})
        assert filtered == []
