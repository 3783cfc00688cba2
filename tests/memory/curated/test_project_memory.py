"""The memory of a project: the same write path as the other two, and shown only where one works in the project."""

import pytest

from memoranda.memory.curated import change_history
from memoranda.memory.curated.operations import Add, MemoryReceipt, MemoryRefusal
from memoranda.memory.curated.passages import forget_passages
from memoranda.memory.curated.settings import file_name, is_target, project_in, project_target, target_of
from memoranda.memory.curated.store import MemoryStore
from memoranda.memory.curated.tool import MemoryTool
from memoranda.support.origin import PERSON, Origin
from memoranda.support.text_matcher import TextMatcher
from tests.memory.curated.storages import open_store

pytestmark = pytest.mark.slow

_HERON = "github.com/acme/heron#3f2a9c81d0e4"
_CRANE = "github.com/acme/crane#111111111111"


def _in_project(store: MemoryStore, identity: str = _HERON) -> MemoryStore:
    fresh = open_store(store.directory)
    fresh.use_project(identity)
    fresh.load_from_disk()
    return fresh


def _blocks(store: MemoryStore) -> list[str]:
    return [store.format_for_system_prompt(target) or "" for target in store.targets()]


def test_its_block_follows_the_other_two_and_no_other_project_shows_it(store: MemoryStore) -> None:
    """Nor does a session without a project."""
    heron = _in_project(store)
    for target, text in (("memory", "A note."), ("user", "A person."), ("project", "Uses tabs in heron.")):
        assert isinstance(heron.apply(target, [Add(text)], PERSON), MemoryReceipt)
    blocks = _blocks(_in_project(store))
    assert [text in block for text, block in zip(("A note.", "A person.", "in heron."), blocks, strict=True)] == [
        True
    ] * 3
    assert "PROJECT MEMORY" in blocks[2] and "acme/heron" in blocks[2]
    assert "heron" not in "".join(_blocks(_in_project(store, _CRANE)) + _blocks(open_store(store.directory)))


@pytest.mark.parametrize("identity", ["github.com/fork/heron#3f2a9c81d0e4", "github.com/acme/heron"])
def test_clones_and_forks_share_one_memory(store: MemoryStore, identity: str) -> None:
    """They agree on the first commit, or on where the project is published."""
    _in_project(store).add("project", "Uses tabs.")
    assert _in_project(store, identity).entries("project") == ("Uses tabs.",)


def test_the_tool_offers_the_target_only_in_a_project(store: MemoryStore) -> None:
    """Elsewhere a write to it is refused, and nothing is written."""
    (tool,) = MemoryTool(_in_project(store), Origin("agent", "s1")).definitions()
    assert tool.parameters["properties"]["target"]["enum"] == ["memory", "user", "project"]
    assert tool.call({"target": "project", "action": "add", "content": "Uses tabs."})["success"]
    (tool,) = MemoryTool(store, Origin("agent", "s1")).definitions()
    assert tool.parameters["properties"]["target"]["enum"] == ["memory", "user"]
    assert tool.call({"target": "project", "action": "add", "content": "x"})["reason"] == "disabled"


def test_it_has_the_limit_the_log_undo_and_approval_of_the_others(store: MemoryStore) -> None:
    """One journal for all of them."""
    heron = _in_project(store)
    full = heron.add("project", "x" * 2201)
    assert isinstance(full, MemoryRefusal) and full.reason == "over_budget"
    heron.add("project", "Uses tabs.")
    assert change_history.log(heron)[-1].target == project_target(_HERON)
    proposal = heron.proposals.add(project_target(_HERON), [Add("Uses make.")], Origin("agent"), [None])
    found = heron.proposals.get(proposal.id)
    assert found is not None and isinstance(heron.approve(found), MemoryReceipt)
    assert heron.entries("project") == ("Uses tabs.", "Uses make.")
    change_history.undo(heron, None, PERSON)
    assert _in_project(store).entries("project") == ("Uses tabs.",)


def test_a_text_is_forgotten_there_too(store: MemoryStore) -> None:
    """Without naming the project."""
    _in_project(store).add("project", "The password of heron is hunter.")
    assert forget_passages(store, TextMatcher(["hunter"])) == []
    assert _in_project(store).entries("project") == ()


@pytest.mark.about_files
def test_its_file_is_in_the_folder_of_projects_beside_the_memories(store: MemoryStore) -> None:
    """In plain text, in the same format."""
    _in_project(store).add("project", "Uses tabs.")
    file = store.directory.parent / "projects" / "github.com+acme+heron#3f2a9c81d0e4" / "MEMORY.md"
    assert file.read_text() == "Uses tabs." and file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("identity", [_HERON, "/home/ana/my notes", "heron", "..", "a+b%/é", "/x" * 400])
def test_every_project_has_a_name_that_a_directory_can_have(identity: str) -> None:
    """From which the project is known again, unless it is very long."""
    target = project_target(identity)
    assert is_target(target) and target_of(file_name(target)) == target
    assert "/" not in target and ".." not in target and len(target) < 250
    assert project_in(target) == identity or len(identity) > 200
