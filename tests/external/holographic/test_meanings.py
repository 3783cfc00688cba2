"""With a sentence encoder, facts are recalled by their meaning too; their vectors are deleted with them."""

import logging
import sqlite3
import struct
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from memoranda.errors import MemorandaError
from memoranda.external.holographic import HolographicProvider
from memoranda.external.holographic.shared_facts import cache_path

pytestmark = pytest.mark.slow

_TOPICS = (("tinnitus", "specialist"), ("lamp", "bright"), ("boat", "harbour"))


class TopicEmbedder:
    """Embeds a text as the topics whose words it has, so that two texts may be alike without a common word."""

    name = "topics"

    def __init__(self) -> None:
        self.embedded: list[str] = []
        self.failure = ""

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        if self.failure:
            raise MemorandaError(self.failure)
        self.embedded += texts
        return [_vector(text.lower()) for text in texts]


def _vector(text: str) -> bytes:
    topics = [float(any(word in text for word in words)) for words in _TOPICS]
    numbers = [*topics, float(not any(topics))]
    length = sum(number * number for number in numbers) ** 0.5
    return struct.pack("<4f", *(number / length for number in numbers))


@pytest.fixture
def embedder() -> TopicEmbedder:
    return TopicEmbedder()


@pytest.fixture
def provider(home: Path, embedder: TopicEmbedder) -> Iterator[HolographicProvider]:
    made = HolographicProvider(home)
    made.initialize("s1", platform="cli", embedder=embedder)
    for text in ("Dr. Moll treats the tinnitus", "The lamp needs an E14 bulb", "The keys hang near the door"):
        made.handle_tool_call("fact_store", {"action": "add", "content": text})
    yield made
    made.shutdown()


def _vectors(home: Path) -> int:
    with closing(sqlite3.connect(cache_path(home, ""))) as connection:
        return int(connection.execute("SELECT count(*) FROM meanings").fetchone()[0])


def test_a_question_recalls_a_fact_of_the_same_meaning(provider: HolographicProvider) -> None:
    """Although they have no word in common; other facts are not recalled."""
    recalled = provider.prefetch("Which specialist do I see?")
    assert "Dr. Moll" in recalled
    assert len(recalled.splitlines()) == 1


def test_the_same_question_recalls_nothing_without_an_encoder(home: Path) -> None:
    """The words alone do not connect them."""
    plain = HolographicProvider(home)
    plain.initialize("s1", platform="cli")
    plain.handle_tool_call("fact_store", {"action": "add", "content": "Dr. Moll treats the tinnitus"})
    assert plain.prefetch("Which specialist do I see?") == ""
    plain.shutdown()


def test_a_fact_is_embedded_once(provider: HolographicProvider, embedder: TopicEmbedder) -> None:
    """Its vector is stored; each question is embedded, and a request is not."""
    provider.prefetch("Which specialist do I see?")
    provider.prefetch("Where is my boat?")
    provider.prefetch("Write a poem about a boat")
    assert len(embedder.embedded) == 3 + 2


def test_a_vector_is_deleted_with_its_fact(home: Path, provider: HolographicProvider) -> None:
    """And replaced when the fact is changed."""
    provider.prefetch("Which specialist do I see?")
    assert _vectors(home) == 3
    provider.handle_tool_call("fact_store", {"action": "remove", "fact_id": 1})
    assert _vectors(home) == 2
    provider.handle_tool_call("fact_store", {"action": "update", "fact_id": 2, "content": "The boat is in bay 12"})
    assert _vectors(home) == 1
    assert "bay 12" in provider.prefetch("To which harbour do we go?")


def test_a_failing_encoder_leaves_the_words(
    provider: HolographicProvider, embedder: TopicEmbedder, caplog: pytest.LogCaptureFixture
) -> None:
    """The log says so once."""
    embedder.failure = "The model is missing."
    with caplog.at_level(logging.WARNING):
        assert "E14" in provider.prefetch("Which bulb does my lamp need?")
        assert "E14" in provider.prefetch("Which bulb does my lamp need?")
    assert caplog.text.count("The model is missing.") == 1
