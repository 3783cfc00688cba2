"""Search over items: by words, namespaces, filters and users, without a trace in the search over conversations."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import memoranda
from memoranda.api.memory import Memory
from memoranda.errors import SessionError
from memoranda.types import FoundItem

pytestmark = pytest.mark.slow

_NOTES = ("notes", "work")


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with memoranda.open(tmp_path) as opened:
        yield opened


def _found(hits: list[FoundItem]) -> list[str]:
    return [hit.item.key for hit in hits]


def test_items_are_found_by_their_words(memory: Memory) -> None:
    """The item with more of the question comes first, with a higher score; other items are not listed."""
    memory.items.put(_NOTES, "tea", {"text": "Ana prefers oolong tea in the afternoon"})
    memory.items.put(_NOTES, "coffee", {"text": "Ana drinks coffee at breakfast"})
    memory.items.put(("notes", "home"), "car", {"text": "the car needs new tyres"})
    hits = memory.items.search(("notes",), "Which tea does Ana prefer?")
    assert _found(hits) == ["tea", "coffee"]
    first, second = (hit.score or 0.0 for hit in hits)
    assert 1.0 >= first > second > 0.0
    assert _found(memory.items.search(("notes", "home"), "Ana car")) == ["car"]
    assert _found(memory.items.search((), "tyres")) == ["car"]
    assert memory.items.search(("nothing",), "tyres") == memory.items.search((), "zebra") == []


def test_names_phrases_and_other_scripts_are_found(memory: Memory) -> None:
    """Field names and keys count as words; quotes, stars and exclusions mean what they say."""
    memory.items.put(_NOTES, "favourite-colour", {"shade": "teal", "名前": "東京タワー"})
    memory.items.put(_NOTES, "other", {"text": "the tower of teal bricks", "n": 42})
    assert _found(memory.items.search((), "shade")) == ["favourite-colour"]
    assert _found(memory.items.search((), "colour")) == ["favourite-colour"]
    assert _found(memory.items.search((), "東京")) == ["favourite-colour"]
    assert _found(memory.items.search((), '"teal bricks"')) == ["other"]
    assert _found(memory.items.search((), "teal -shade")) == ["other"]
    assert _found(memory.items.search((), "tow*")) == ["other"]
    assert _found(memory.items.search((), "42")) == ["other"]


def test_only_the_named_paths_are_searched(memory: Memory) -> None:
    """Without any path an item is not found by words, and is still listed."""
    value = {"text": "apple", "secretive": "banana", "list": [{"t": "cherry"}, {"t": "damson"}]}
    memory.items.put(_NOTES, "some", value, index=["text", "list[*].t", "list[0].t"])
    memory.items.put(_NOTES, "none", value, index=False)
    assert _found(memory.items.search((), "apple")) == _found(memory.items.search((), "damson")) == ["some"]
    assert memory.items.search((), "banana") == []
    assert sorted(_found(memory.items.search())) == ["none", "some"]


def test_a_search_sees_the_latest_version_only(memory: Memory) -> None:
    """A new value, a deletion, a restored value and an expiry are seen by the next search."""
    memory.items.put(_NOTES, "k", {"text": "walrus"})
    assert _found(memory.items.search((), "walrus")) == ["k"]
    memory.items.put(_NOTES, "k", {"text": "ocelot"})
    assert (memory.items.search((), "walrus"), _found(memory.items.search((), "ocelot"))) == ([], ["k"])
    memory.items.delete(_NOTES, "k")
    assert memory.items.search((), "ocelot") == []
    memory.items.restore(_NOTES, "k", 1)
    assert _found(memory.items.search((), "walrus")) == ["k"]
    memory.items.put(_NOTES, "short", {"text": "walrus"}, ttl=0.001)
    assert _found(memory.items.search((), "walrus")) == ["k"]


def test_filters_and_pages_apply_to_what_was_found(memory: Memory) -> None:
    """Pages follow each other without gaps, also where a filter removes most of what the words find."""
    for number in range(300):
        memory.items.put(_NOTES, f"k{number}", {"text": "otter", "n": number})
    few = memory.items.search((), "otter", filter={"n": {"$lt": 5}}, limit=10)
    assert sorted(_found(few)) == ["k0", "k1", "k2", "k3", "k4"]
    pages = [memory.items.search((), "otter", limit=100, offset=offset) for offset in (0, 100, 200, 300)]
    assert len({key for page in pages for key in _found(page)}) == 300
    with pytest.raises(SessionError):
        memory.items.search((), "otter", filter={"n": {"$in": [1]}})


def test_users_do_not_find_each_others_items(tmp_path: Path) -> None:
    """Neither by words nor by lists, also when they use the same names."""
    with memoranda.open(tmp_path, user="ana") as ana, memoranda.open(tmp_path, user="bo") as bo:
        ana.items.put(_NOTES, "k", {"text": "lynx of ana"})
        bo.items.put(_NOTES, "k", {"text": "lynx of bo"})
        assert [hit.item.value["text"] for hit in ana.items.search((), "lynx")] == ["lynx of ana"]
        assert bo.items.search((), "ana") == []
        with memoranda.open(tmp_path) as owner:
            assert owner.items.search((), "lynx") == owner.items.search() == []


def test_conversations_are_searched_as_before(memory: Memory) -> None:
    """Items are in no answer about conversations, and change neither scores nor files of that index."""
    with memory.session() as session, session.turn("Where is the marmot?") as turn:
        turn.done("In the garden, under the marmot sign.")
    before = memory.search("marmot", why=True)
    index = {file.name: file.read_bytes() for file in memory.home.root.glob("state.index.db.*") if "-" not in file.name}
    for number in range(20):
        memory.items.put(_NOTES, f"k{number}", {"text": f"marmot number {number} in the garden"})
    assert len(memory.items.search((), "marmot", limit=50)) == 20
    after = memory.search("marmot", why=True)
    assert after["results"] == before["results"]
    assert index == {name: (memory.home.root / name).read_bytes() for name in index}


def test_a_lost_index_is_rebuilt(tmp_path: Path) -> None:
    """The file is a cache: without it the next search answers the same."""
    with memoranda.open(tmp_path) as memory:
        memory.items.put(_NOTES, "k", {"text": "gannet"})
        assert _found(memory.items.search((), "gannet")) == ["k"]
    files = list(tmp_path.glob("state.index.items.db.*"))
    assert files
    for file in files:
        file.write_bytes(b"damaged" * 2000)
    with memoranda.open(tmp_path) as memory:
        assert _found(memory.items.search((), "gannet")) == ["k"]
