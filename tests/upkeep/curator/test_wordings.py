"""With a model, entries are merged and shortened within the budget; what loses or adds a fact is not proposed."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.home import config
from memoranda.memory.curated import change_history
from memoranda.memory.curated.settings import NOTES_NAMESPACE
from memoranda.models.model import Reply
from memoranda.support.home import Home
from memoranda.support.origin import PERSON, Origin
from memoranda.testing.scripted.server import ScriptedServer
from memoranda.upkeep.curator.wordings import keeps_everything, read_suggestions

pytestmark = [pytest.mark.usefixtures("model_sdks"), pytest.mark.slow]

ONE, TWO = "The staging database is on host heron.", "The staging database listens on port 5433."
MERGED = "The staging database is on host heron and listens on port 5433."
OTHER = "Anna owns billing."
Serve = Callable[[object], ScriptedServer]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with two entries about the same thing, and a third."""
    with memoranda.open(tmp_path) as memory:
        for text in (ONE, OTHER, TWO):
            memory.remember(text)
    return tmp_path


@pytest.fixture
def serve(home: Path) -> Iterator[Serve]:
    """Configures a model that answers every request alike, as `curate.model`."""
    servers: list[ScriptedServer] = []

    def start(answer: object) -> ScriptedServer:
        text = answer if isinstance(answer, str) else json.dumps(answer)
        server = ScriptedServer(lambda received: Reply(text)).__enter__()
        servers.append(server)
        settings = {"model.provider": "openai", "model.name": "answering-model", "model.base_url": server.openai_url}
        for key, value in (settings | {"curate.model": "small-model"}).items():
            config.set_value(Home.at(home), key, value)
        return server

    yield start
    for server in servers:
        server.__exit__(None, None, None)


def _notes(memory: memoranda.Memory) -> list[str]:
    return sorted(found.item.value["text"] for found in memory.items.search((NOTES_NAMESPACE,)))


def test_two_entries_become_one_and_one_undo_takes_it_back(home: Path, serve: Serve) -> None:
    """Shown with its reason, then done as it was shown; the model is asked once, and the originals are notes."""
    server = serve([{"entries": [1, 3], "text": MERGED}])
    with memoranda.open(home) as memory:
        (change,) = memory.curate()["changes"]
        assert (change["rule"], change["before"], change["after"]) == ("worded", [ONE, TWO], [MERGED])
        memory.curate(apply=True)
        assert memory.entries() == (MERGED, OTHER) and _notes(memory) == [ONE, TWO]
        change_history.undo(memory.curated, None, PERSON)
        assert memory.entries() == (ONE, OTHER, TWO) and _notes(memory) == []
        assert memory.services.ledger.today().tokens > 0
    assert len(server.received) == 1 and "small-model" in str(server.received[0])


@pytest.mark.parametrize(
    "text",
    [
        "The staging database is on host heron.",
        "The staging database is on host heron and listens on 5432.",
        "The staging database is on host heron and listens on port 5433, as Ben said.",
        "",
        f"{ONE} {TWO} " + "It is so. " * 9,
    ],
)
def test_a_wording_that_loses_or_adds_something_is_not_proposed(home: Path, serve: Serve, text: str) -> None:
    """Neither is one that is longer than its originals."""
    serve([{"entries": [1, 3], "text": text}])
    with memoranda.open(home) as memory:
        assert memory.curate(apply=True)["changes"] == []
        assert memory.entries() == (ONE, OTHER, TWO)


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "I would not.",
        "[[[",
        '{"entries": [1]}',
        '[{"entries": [9], "text": "x"}]',
        '[{"entries": "1", "text": 3}, 4]',
    ],
)
def test_an_answer_that_cannot_be_read_suggests_nothing(answer: str) -> None:
    """Whatever a model writes."""
    assert read_suggestions(answer, 3) == []


def test_without_budget_the_rules_work_alone(home: Path, serve: Serve) -> None:
    """And the answer says why the model was not asked."""
    server = serve([{"entries": [1, 3], "text": MERGED}])
    config.set_value(Home.at(home), "budget.daily_tokens", "0")
    with memoranda.open(home) as memory:
        memory.remember(f"{OTHER} Ben owns search.")
        answer = memory.curate(apply=True)
        assert [change["rule"] for change in answer["changes"]] == ["contained"]
        assert "budget" in answer["without_model"]
    assert server.received == []


def test_the_model_sees_only_what_may_be_worded_anew(home: Path, serve: Serve) -> None:
    """Not what has a key, a last day or an untrusted source, nor what a rule changes."""
    server = serve([])
    with memoranda.open(home) as memory:
        memory.remember("Europe/Berlin", key="time zone")
        memory.remember("The freeze is on.", until="2999-01-01")
        memory.curated.add("memory", "The portal is Zephyr.", Origin("agent", sources=("web",)))
        assert memory.curate()["changes"] == []
    sent: Any = str(server.received[0])
    assert "heron" in sent and not [word for word in ("Berlin", "freeze", "Zephyr") if word in sent]


def test_no_model_is_asked_in_passing(home: Path, serve: Serve) -> None:
    """Whoever only wants to know whether rules propose something does not pay for it."""
    server = serve([{"entries": [1, 3], "text": MERGED}])
    with memoranda.open(home) as memory:
        assert memory.curate(model=False)["changes"] == []
    assert server.received == []


@pytest.mark.parametrize(
    ("originals", "text"),
    [
        ((ONE, TWO), MERGED),
        (
            ("User prefers answers that are short.", "User prefers answers in German."),
            "Prefers short answers in German.",
        ),
        (("It is the case that the build always uses uv.",), "The build always uses uv."),
    ],
)
def test_a_wording_that_keeps_everything_is_accepted(originals: tuple[str, ...], text: str) -> None:
    """Needless words may go."""
    assert keeps_everything(originals, text)
