"""Embeddings of the scripted server: their values, and the answers that OpenAI's client reads."""

import base64
import json
import math
import struct
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from memoranda.testing.scripted.embeddings import embed_text
from memoranda.testing.scripted.server import ScriptedServer
from memoranda.testing.scripted.steps import Refuse

pytestmark = pytest.mark.slow


def ask(server: ScriptedServer, **body: Any) -> Any:
    data = json.dumps({"model": "any"} | body).encode()
    with urlopen(Request(f"{server.openai_url}/embeddings", data, {"content-type": "application/json"})) as response:
        return json.load(response)


def nearness(first: str, second: str) -> float:
    return sum(a * b for a, b in zip(embed_text(first), embed_text(second), strict=True))


def test_a_text_has_the_same_vector_of_length_one_every_time() -> None:
    """With every number of dimensions, and also for texts without words."""
    for text in ("The cat sleeps.", "", "你好", "\ud800", "!!!"):
        for dimensions in (1, 256, 1536):
            vector = embed_text(text, dimensions)
            assert (len(vector), vector) == (dimensions, embed_text(text, dimensions))
            assert math.isclose(sum(value * value for value in vector), 1.0)


def test_texts_that_share_words_are_nearer_than_others() -> None:
    """Also where a word has another ending."""
    question = "Which city does Ann live in?"
    assert (
        nearness(question, "Ann lives in the city of Basel.") > nearness(question, "Deployments run on Fridays.") + 0.2
    )
    assert nearness("deployment", "deployments") > 0.4
    assert nearness("deployment", "breakfast") < 0.1


def test_several_texts_are_answered_in_order_with_the_requested_dimensions() -> None:
    """As numbers, and as base64, which OpenAI's client asks for unless told otherwise."""
    with ScriptedServer([]) as server:
        plain = ask(server, input=["one", "two"], dimensions=64)
        packed = ask(server, input=["one", "two"], dimensions=64, encoding_format="base64")
    assert [entry["index"] for entry in plain["data"]] == [0, 1]
    for entry, other, text in zip(plain["data"], packed["data"], ("one", "two"), strict=True):
        assert entry["embedding"] == embed_text(text, 64)
        assert struct.unpack("<64f", base64.b64decode(other["embedding"])) == pytest.approx(
            entry["embedding"], abs=1e-6
        )
    assert plain["usage"]["total_tokens"] > 0


def test_token_numbers_stand_for_texts() -> None:
    """Some clients count tokens themselves and send numbers."""
    with ScriptedServer([]) as server:
        assert len(ask(server, input=[1, 2, 3])["data"]) == 1
        assert len(ask(server, input=[[1, 2], [3]])["data"]) == 2


@pytest.mark.parametrize("body", [{"input": []}, {"input": 5}, {"input": "x", "dimensions": 0}, {"input": [{"a": 1}]}])
def test_requests_without_texts_or_dimensions_are_refused(body: dict[str, Any]) -> None:
    """With status 400, as the service does."""
    with ScriptedServer([]) as server, pytest.raises(HTTPError) as caught:
        ask(server, **body)
    assert caught.value.code == 400
    caught.value.close()


def test_a_test_can_say_how_embeddings_fail() -> None:
    """Requests for embeddings use no step of the script."""
    with ScriptedServer([], embeddings=lambda _: Refuse(429)) as server, pytest.raises(HTTPError) as caught:
        ask(server, input="x")
    assert caught.value.code == 429
    caught.value.close()


@pytest.mark.usefixtures("model_sdks")
def test_openais_client_reads_them() -> None:
    """The client asks for base64 and decodes it."""
    openai: Any = pytest.importorskip("openai")
    with ScriptedServer([]) as server, openai.OpenAI(api_key="any", base_url=server.openai_url) as client:
        answer = client.embeddings.create(model="any", input=["one", "two"], dimensions=32)
        models = [model.id for model in client.models.list()]
    assert answer.data[1].embedding == pytest.approx(embed_text("two", 32), abs=1e-6)
    assert "base64" in server.received[0].text
    assert models == ["scripted-model", "scripted-embeddings"]
