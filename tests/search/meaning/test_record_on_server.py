"""Search by meaning over a record on a server: each node keeps vectors of its own, which follow the feed."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from click.testing import CliRunner

import memoranda
from memoranda.cli.main import command
from memoranda.errors import ConfigError
from memoranda.home import config
from memoranda.search.meaning.vector_index import VectorIndex
from memoranda.support.home import Home
from tests.search.meaning.onnx_files import write_encoder
from tests.timing import GIVE_UP

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("onnx")]
_VECTORS = {"chess": [1.0, 0.0], "game": [0.9, 0.1], "rainy": [0.9, 0.1], "server": [0.0, 1.0], "disk": [0.1, 0.9]}

OpenNode = Callable[..., memoranda.Memory]


@pytest.fixture
def open_node(tmp_path: Path, postgres_url: str) -> Iterator[OpenNode]:
    """Opens a home of its own over one server, with a tiny sentence encoder."""
    model = write_encoder(tmp_path / "model", _VECTORS)
    with ExitStack() as stack:

        def open_home(name: str, **settings: str) -> memoranda.Memory:
            home = Home(tmp_path / name)
            chosen = {"store.url": postgres_url, "search.semantic": "on", "search.semantic_model": f"onnx:{model}"}
            for key, value in (chosen | settings).items():
                config.set_value(home, key, value)
            return stack.enter_context(memoranda.open(home.root))

        yield open_home


_WITH_INDEX = {"search.semantic_index": "on"}


def _record(memory: memoranda.Memory) -> None:
    for name, text in (("s0", "We played chess."), ("s1", "The server has a full disk.")):
        memory.sessions.create_session(name, "cli")
        memory.sessions.append_message(name, "user", text)


def _index(memory: memoranda.Memory) -> VectorIndex:
    # The store is opened with the first use.
    _ = memory.sessions
    assert memory.services.search_extras is not None
    (index,) = memory.services.search_extras.indexes()
    return index


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + GIVE_UP
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.smoke
def test_meaning_reorders_what_the_words_find(open_node: OpenNode) -> None:
    """No index of vectors is needed for that."""
    memory = open_node("one")
    for name, text in (("s0", "The evening: server disk"), ("s1", "The evening: chess")):
        memory.sessions.create_session(name, "cli")
        memory.sessions.append_message(name, "user", text)
    answer = memory.search("evening with a game", why=True)
    assert [found["session_id"] for found in answer["results"]] == ["s1", "s0"]
    assert answer["results"][0]["why"]["semantic"] > answer["results"][1]["why"]["semantic"]
    assert not list(memory.home.root.glob("*.vectors.*"))


def test_each_node_finds_what_shares_no_word_with_the_query(open_node: OpenNode) -> None:
    """A node embeds what another one records as soon as that announces it, and forgets what the other deletes."""
    one, two = open_node("one", **_WITH_INDEX), open_node("two", **_WITH_INDEX)
    two.services.follow_others(lambda: None)
    index = _index(two)
    _record(one)
    _wait(lambda: index.counts().messages == 2)
    answer = two.search("game for rainy afternoons")
    assert answer["matched"] == "by meaning; none of the words"
    assert answer["results"][0]["session_id"] == "s0"
    assert index.path.parent == two.home.root
    assert index.path.name.startswith("server-")
    one.sessions.delete_session("s0")
    _wait(lambda: index.counts().messages == 1)
    assert two.search("game for rainy afternoons")["count"] == 0


def test_the_commands_build_and_delete_the_vectors_of_a_node(open_node: OpenNode) -> None:
    """As beside a record in a file; turning the index off deletes the file, too."""
    with open_node("one", **_WITH_INDEX) as memory:
        _record(memory)
        home = memory.home
    built = CliRunner().invoke(command, ["semantic", "build", "--home", str(home.root)])
    assert built.output == "2 vectors are in the index.\n"
    assert len(list(home.root.glob("server-*.vectors.*.db"))) == 1
    removed = CliRunner().invoke(command, ["semantic", "remove", "--home", str(home.root)])
    assert removed.output == "Deleted 1 file with vectors.\n"
    assert not list(home.root.glob("*.vectors.*"))


def test_vectors_of_all_users_beside_one_index_per_user_are_refused(open_node: OpenNode) -> None:
    """The error says what to unset; reranking alone works."""
    with pytest.raises(ConfigError, match=r"Unset search\.semantic_index"):
        open_node("one", **_WITH_INDEX, **{"search.index": "user"})
    memory = open_node("two", **{"search.index": "user"})
    _record(memory)
    assert memory.search("chess server")["count"] == 2
