"""Two nodes whose homes name the same server share curated memory, proposals and its history; users never mix."""

from pathlib import Path

import pytest

import memoranda
from memoranda.errors import StorageError
from memoranda.home.config import load, record_location
from memoranda.memory.curated import change_history
from memoranda.memory.curated.operations import Add, AwaitsApproval, MemoryReceipt, MemoryRefusal
from memoranda.memory.curated.person_changes import edit_file, empty_file
from memoranda.support.home import Home
from memoranda.support.origin import PERSON, Origin

pytestmark = pytest.mark.slow


@pytest.fixture
def nodes(tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The homes of two nodes with one server."""
    monkeypatch.setenv("MEMORANDA_STORE", postgres_url)
    return tmp_path / "one", tmp_path / "two"


@pytest.mark.smoke
def test_what_one_node_remembers_the_other_shows(nodes: tuple[Path, Path]) -> None:
    """Entries, prompt, log and undo are the same on both, and no node has files of them."""
    with memoranda.open(nodes[0]) as one, memoranda.open(nodes[1]) as two:
        receipt = one.remember("The build uses uv.")
        assert receipt["success"] and receipt["stored_in"] == "memories/MEMORY.md"
        assert two.entries() == ("The build uses uv.",)
        with two.session() as session:
            assert "The build uses uv." in session.prompt
        assert isinstance(change_history.undo(two.curated, None, PERSON), MemoryReceipt)
        assert one.entries() == ()
        assert [change.action for change in change_history.log(one.curated)] == ["add", "undo"]
    assert not any((node / "memories").exists() for node in nodes)


def test_users_never_mix(nodes: tuple[Path, Path]) -> None:
    """Neither another user nor the owner sees a user's entries, journal or proposals."""
    with (
        memoranda.open(nodes[0], user="alice") as alice,
        memoranda.open(nodes[1], user="bob") as bob,
        memoranda.open(nodes[1]) as owner,
    ):
        alice.remember("Alice likes tea.", "user")
        bob.remember("Bob likes coffee.", "user")
        assert alice.entries("user") == ("Alice likes tea.",)
        assert bob.entries("user") == ("Bob likes coffee.",)
        assert owner.entries("user") == ()
        assert [change.number for change in change_history.log(bob.curated)] == [1]
        assert change_history.log(owner.curated) == []


def test_profiles_share_nothing(tmp_path: Path) -> None:
    """A profile whose URL names no schema gets one of its own, and different profiles get different ones."""
    (tmp_path / "config.yaml").write_text("store:\n  url: postgresql://memo@db.example/memory?pool=3\n")
    settings = load(Home.at(tmp_path))
    names = ["default", "a-b", "a_b", "a__b", "a_mb"]
    found = [str(record_location(Home.at(tmp_path, name), settings)) for name in names]
    assert len(set(found)) == len(names)
    assert found[:2] == [settings.store.url, f"{settings.store.url}&schema=memoranda_a_mb"]


def test_a_home_opens_while_its_server_is_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The prompt says that the memory cannot be read, nothing is called empty, and a write is refused."""
    monkeypatch.setenv("MEMORANDA_STORE", "postgresql://memo@127.0.0.1:9/memory")
    with memoranda.open(tmp_path) as memory:
        assert "[unavailable]" in (memory.curated.format_for_system_prompt("memory") or "")
        with pytest.raises(StorageError):
            memory.entries()
        assert memory.remember("one")["reason"] == "storage"


def test_a_proposal_is_approved_on_another_node(nodes: tuple[Path, Path]) -> None:
    """The queue is shared, and an approved proposal is applied once."""
    for node in nodes:
        node.mkdir()
        (node / "config.yaml").write_text("memory:\n  write_approval: propose\n")
    with memoranda.open(nodes[0]) as one, memoranda.open(nodes[1]) as two:
        outcome = one.curated.apply("memory", [Add("proposed")], Origin("agent"))
        assert isinstance(outcome, AwaitsApproval)
        (proposal,) = two.curated.proposals.all()
        assert isinstance(two.curated.approve(proposal), MemoryReceipt)
        assert one.entries() == ("proposed",)
        assert one.curated.proposals.all() == []


def test_an_edit_of_an_older_view_is_a_conflict(nodes: tuple[Path, Path]) -> None:
    """A person who edits what another node has changed since is refused, and nothing is lost."""
    with memoranda.open(nodes[0]) as one, memoranda.open(nodes[1]) as two:
        one.remember("first")
        seen = two.curated.view("memory").fingerprint
        one.remember("second")
        outcome = edit_file(two.curated, "memory", seen, ["only this"], PERSON, frozenset())
        assert isinstance(outcome, MemoryRefusal) and outcome.reason == "conflict"
        assert two.entries() == ("first", "second")


def test_forget_removes_a_text_from_every_table(nodes: tuple[Path, Path]) -> None:
    """Record, entries, journal, proposals and this node's index: nothing is left, and the report names the server."""
    secret = "the zanzibar handshake"
    with memoranda.open(nodes[0]) as one, memoranda.open(nodes[1], user="bob") as bob:
        with one.session(source="cli") as session, session.turn(f"Remember {secret} for me") as turn:
            turn.done("Noted.")
        one.remember(f"Uses {secret}.")
        empty_file(one.curated, "memory", PERSON)
        one.remember(f"Again {secret}.", "user")
        bob.remember(f"Bob knows {secret} as well.")
        report = one.forget(secret)
        assert {place.area for place in report.found} >= {"record", "journal", "curated memory"}
        assert report.left == () and report.problems == ()
        assert any("(WAL)" in note for note in report.notes)
        assert one.entries("user") == ()
        assert not any(secret.encode() in line for line in one.curated.journal.raw_lines())
        assert one.search("zanzibar")["results"] == []
        assert bob.entries() == (f"Bob knows {secret} as well.",)


def test_forgetting_a_user_deletes_all_their_rows(nodes: tuple[Path, Path]) -> None:
    """Their memory, history and sessions are gone; others keep theirs."""
    with memoranda.open(nodes[0], user="alice") as alice, memoranda.open(nodes[1]) as owner:
        with alice.session(source="cli") as session, session.turn("Where is the depot?") as turn:
            turn.done("In the north.")
        alice.remember("Alice drives.")
        owner.remember("The owner stays.")
        report = owner.forget(user="alice")
        assert report.left == () and report.problems == ()
        assert alice.entries() == () and change_history.log(alice.curated) == []
        assert alice.sessions.get_session(session.id) is None
        assert owner.entries() == ("The owner stays.",)
