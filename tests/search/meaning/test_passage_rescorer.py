"""Reranking of the first results: a cross-encoder in ONNX format, and a chat model of a service."""

from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.home import config
from memoranda.models.model import Reply, Usage
from memoranda.models.spending.ledger import Ledger
from memoranda.search.meaning.embedder import EmbedderError
from memoranda.search.meaning.onnx_models import CrossEncoder
from memoranda.search.meaning.passage_rescorer import ChatScorer
from memoranda.support.home import Home
from memoranda.testing.scripted.model import ScriptedModel
from memoranda.testing.scripted.server import ScriptedServer
from tests.search.meaning.onnx_files import write_cross_encoder, write_encoder
from tests.timing import GIVE_UP

pytestmark = pytest.mark.slow

_QUESTION = "which garden tool is broken?"
_TEXTS = {"rake": "The garden rake is a tool that is fine.", "spade": "The garden spade lost its handle today, a pity."}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    with memoranda.open(home.root) as memory:
        for name, text in _TEXTS.items():
            memory.sessions.create_session(name, "cli")
            memory.sessions.append_message(name, "user", text)
    return home


def _search(home: Home, **settings: str) -> Any:
    for name, value in settings.items():
        config.set_value(home, name.replace("__", "."), value)
    with memoranda.open(home.root) as memory:
        return memory.search(_QUESTION, why=True)


def _names(answer: Any) -> list[str]:
    return [result["session_id"] for result in answer["results"]]


def test_words_alone_prefer_more_words(home: Home) -> None:
    """The order that reranking changes; by default nothing reranks."""
    answer = _search(home)
    assert _names(answer) == ["rake", "spade"]
    assert "rerank" not in answer["results"][0]["why"]


@pytest.mark.usefixtures("onnx")
def test_a_cross_encoder_reranks(home: Home, tmp_path: Path) -> None:
    """It reads the query and the best message of each result together."""
    model = write_cross_encoder(tmp_path / "model", {"lost": 6.0, "fine": -6.0})
    answer = _search(home, search__rerank=f"onnx:{model}")
    assert _names(answer) == ["spade", "rake"]
    assert answer["results"][0]["why"]["rerank"] > 0.9
    assert answer["results"][1]["why"]["rerank"] < 0.1


@pytest.mark.usefixtures("onnx")
def test_a_cross_encoder_has_one_or_two_outputs_and_a_deadline(tmp_path: Path) -> None:
    """A sentence encoder is refused, and so is work that would take too long."""
    encoder = CrossEncoder(write_encoder(tmp_path / "encoder", {"a": [1.0, 0.0, 0.0]}))
    with pytest.raises(EmbedderError, match="no cross-encoder"):
        encoder.score("a", ["b"], timeout=GIVE_UP)
    slow = CrossEncoder(write_cross_encoder(tmp_path / "model", {"a": 1.0}))
    with pytest.raises(EmbedderError, match="in time"):
        slow.score("a", ["b"], timeout=-1.0)


@pytest.mark.usefixtures("model_sdks")
def test_a_chat_model_reranks_and_its_cost_is_recorded(home: Home) -> None:
    """One call for all results, in the ledger, at the configured service."""
    with ScriptedServer([Reply("2", usage=Usage(120, 4))]) as server:
        answer = _search(home, search__rerank="model", model__base_url=server.url, model__name="small")
    assert _names(answer) == ["spade", "rake"]
    assert "note" not in answer
    ledger = Ledger(home.root)
    (total,) = ledger.totals("purpose")
    ledger.close()
    assert (total.name, total.calls, total.input_tokens) == ("search", 1, 120)


@pytest.mark.usefixtures("model_sdks")
def test_a_model_that_fails_costs_only_the_order(home: Home) -> None:
    """The note says so."""
    with ScriptedServer([Reply("I cannot tell.")]) as server:
        answer = _search(home, search__rerank="model", model__base_url=server.url, model__name="small")
    assert _names(answer) == ["rake", "spade"]
    assert answer["note"] == "The first results were not reranked: The model did not name any excerpt."


def test_numbers_that_no_excerpt_has_do_not_count() -> None:
    """Whatever a model answers, each excerpt gets a number from 0 to 1."""
    scorer = ChatScorer(lambda _: ScriptedModel([Reply("9, 2, 2 and -1, 0")]))
    assert scorer.score("q", ["a", "b", "c"], timeout=5.0) == [1 - 1 / 3, 1.0, 0.0]
