"""Embeddings of a service, over HTTP, with a server on this machine that speaks the format of OpenAI."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memoranda.api.search_extras import open_search_extras
from memoranda.home import config
from memoranda.home.session_db import SessionDB
from memoranda.models.spending.ledger import Ledger
from memoranda.search.index.postings import Filters
from memoranda.search.meaning.embedder import EmbedderError
from memoranda.search.meaning.embedders import read_vectors
from memoranda.support.home import Home
from memoranda.testing.scripted.server import ScriptedServer
from memoranda.testing.scripted.steps import Body, ReceivedRequest, Refuse
from tests.timing import GIVE_UP

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("numpy")]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    root = tmp_path / "home"
    with SessionDB(root / "state.db") as db:
        for name, text in (("a", "The garden gate is painted green."), ("b", "The garden hose is in the shed.")):
            db.create_session(name, "cli")
            db.append_message(name, "user", text)
    return Home(root)


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer([], key="sk-embeddings") as server:
        yield server


def _search(home: Home, url: str) -> Any:
    config.set_value(home, "search.semantic", "on")
    config.set_value(home, "search.semantic_model", "endpoint:small")
    config.set_value(home, "search.semantic_url", url)
    with open_search_extras(home, config.load(home)) as semantic, SessionDB(home.state_db) as db:
        db.rescore_with(semantic.rescorers)
        return db.find("where is the garden hose kept?", Filters(db.scope), limit=5)


def test_the_key_comes_from_the_env_file(home: Home, server: ScriptedServer) -> None:
    """The service gets the key; the query and the best messages are one request each."""
    config.set_secret(home, "OPENAI_API_KEY", "sk-embeddings")
    found = _search(home, server.url)
    assert found.note is None
    assert found.hits[0].session_id == "b"
    assert found.hits[0].signals["semantic"] > found.hits[1].signals["semantic"]
    assert [len(request.json["input"]) for request in server.received] == [1, 2]


def test_the_ledger_has_what_it_cost(home: Home, server: ScriptedServer) -> None:
    """With the tokens that the service counted."""
    config.set_secret(home, "OPENAI_API_KEY", "sk-embeddings")
    _search(home, server.url)
    ledger = Ledger(home.root)
    (total,) = ledger.totals("purpose")
    ledger.close()
    assert (total.name, total.calls) == ("embeddings", 2)
    assert total.input_tokens > 10


def test_a_service_that_fails_costs_only_the_meaning(home: Home, server: ScriptedServer) -> None:
    """The words answer, with a note that shows no key."""
    config.set_secret(home, "OPENAI_API_KEY", "sk-wrong-key")
    found = _search(home, server.url)
    assert [hit.session_id for hit in found.hits] == ["b", "a"]
    assert "Ranked by words only" in found.note
    assert "sk-wrong-key" not in found.note


def test_a_service_that_hangs_costs_the_deadline(home: Home) -> None:
    """A search waits for `search.semantic_seconds` and no longer."""
    config.set_value(home, "search.semantic_seconds", "0.2")
    answered = threading.Event()

    def hang(_: ReceivedRequest) -> Body:
        answered.wait(GIVE_UP)
        return Body({})

    with ScriptedServer([], embeddings=hang) as hanging:
        found = _search(home, hanging.url)
        answered.set()
    assert found.hits[0].session_id == "b"
    assert "Ranked by words only" in found.note


def test_a_service_is_refused_without_an_address_or_encryption(home: Home) -> None:
    """A key is never sent over a network in plain text."""
    assert "search.semantic_url is not set" in _search(home, "").note
    assert "https" in _search(home, "http://example.org/v1").note


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [],
        {"data": []},
        {"data": [{"embedding": [1.0]}]},
        {"data": [{"embedding": [1.0]}, {"embedding": [1.0, 2.0]}]},
        {"data": [{"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [2.0]}]},
        {"data": [{"embedding": ["1"]}, {"embedding": [float("nan")]}]},
        {"data": [{"embedding": "AAAA"}, 3]},
        {"data": [{"index": "0", "embedding": [1.0]}, {"index": 1, "embedding": [2.0]}]},
        {"data": [{"index": [], "embedding": [1.0]}, {"index": None, "embedding": [2.0]}]},
    ],
)
def test_an_answer_that_is_none_is_refused(answer: Any) -> None:
    """Whatever a service sends, it is either two vectors of numbers or an error."""
    with pytest.raises(EmbedderError):
        read_vectors(answer, 2)


def test_vectors_come_in_the_order_of_the_texts() -> None:
    """Their numbers count, not their order in the answer."""
    answer = {"data": [{"index": 1, "embedding": [2.0]}, {"index": 0, "embedding": [1.0]}]}
    assert read_vectors(answer, 2) == [[1.0], [2.0]]


def test_an_overloaded_service_is_named(home: Home) -> None:
    """The note says what the service answered."""
    with ScriptedServer([], embeddings=lambda _: Refuse(400, "too long", "invalid_request_error")) as server:
        assert "400" in _search(home, server.url).note
