"""Forgetting reaches items: their values in every version, their names, their index, and a whole user's."""

from pathlib import Path

import pytest

import memoranda

_NOTES = ("notes", "work")


def _bytes(home: Path) -> bytes:
    return b"".join(file.read_bytes() for file in home.rglob("*") if file.is_file())


@pytest.mark.slow
def test_a_text_is_forgotten_in_items(tmp_path: Path) -> None:
    """In all versions and in the index; an item that is named by it is removed; the rest of a value stays."""
    with memoranda.open(tmp_path) as memory, memoranda.open(tmp_path, user="bo") as bo:
        memory.items.put(_NOTES, "k", {"text": "meet Zorbatov at noon"})
        memory.items.put(_NOTES, "k", {"text": "meet Zorbatov at one"})
        memory.items.put(("people", "Zorbatov"), "k", {"n": 1})
        memory.items.put(_NOTES, "other", {"text": "nothing"})
        bo.items.put(_NOTES, "k", {"text": "unrelated"})
        assert len(memory.items.search((), "Zorbatov")) == 1
        listed = memory.forget("Zorbatov", dry_run=True)
        assert {(place.where, place.action) for place in listed.found if place.area == "items"} == {
            ("notes/work/k", "redact"),
            ("people/Zorbatov/k", "remove"),
        }
        report = memory.forget("Zorbatov")
        assert (report.left, report.problems) == ((), ())
        item = memory.items.get(_NOTES, "k")
        assert item is not None
        assert not item.damaged
        assert item.value["text"].endswith("at one")
        assert "Zorbatov" not in str(memory.items.history(_NOTES, "k"))
        assert memory.items.get(("people", "Zorbatov"), "k") is None
        assert memory.items.search((), "Zorbatov") == []
        assert bo.items.get(_NOTES, "k") is not None
    assert b"zorbatov" not in _bytes(tmp_path).lower()


@pytest.mark.slow
def test_a_user_is_forgotten_with_items(tmp_path: Path) -> None:
    """Of a user who only has items, nothing is left; others keep theirs."""
    with memoranda.open(tmp_path, user="ana") as ana:
        ana.items.put(_NOTES, "k", {"text": "the quokkafish of ana"})
        assert len(ana.items.search((), "quokkafish")) == 1
    with memoranda.open(tmp_path) as owner:
        owner.items.put(_NOTES, "mine", {"text": "stays"})
        report = owner.forget(user="ana")
        assert any(place.area == "items" for place in report.found)
        assert report.left == ()
        assert len(owner.items.search()) == 1
    with memoranda.open(tmp_path, user="ana") as ana:
        assert ana.items.search() == []
    assert b"quokkafish" not in _bytes(tmp_path).lower()
