"""Forgetting touches only what belongs to the caller; whole conversations and users can be forgotten, too."""

import json
from pathlib import Path

import pytest

import memoranda
from memoranda.errors import SessionError
from memoranda.memory.record.scope import Scope
from tests.cli.terminal import Terminal
from tests.external.plugins import add_plugin
from tests.upkeep.forgetting.filled_home import DOWN, occurrences

WORD = "zorblaxquint"


def say(root: Path, text: str, user: str | None = None, *, profile: str | None = None) -> str:
    with memoranda.open(root, user=user, profile=profile) as memory:
        memory.remember(f"A note: {text}")
        with memory.session(source="test") as session:
            with session.turn(text) as turn:
                turn.done(f"You said: {text}")
            assert session.id
            return session.id


def messages(root: Path, session_id: str) -> list[str]:
    with memoranda.open(root) as memory:
        everyone = memory.sessions.scoped(Scope.everyone())
        return [message["content"] for message in everyone.get_messages(session_id)]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    root = tmp_path / "home"
    add_plugin(root, "down", DOWN)
    (root / "config.yaml").write_text("memory:\n  providers: [holographic, down]\n")
    return root


@pytest.mark.slow
def test_one_user_never_touches_another(home: Path) -> None:
    """Equal text of the owner and of another user stays in all of their places; the caller's is gone from all."""
    own, ana, bob = (say(home, f"I met {WORD} by the lake", user) for user in (None, "ana", "bob"))
    with memoranda.open(home, user="ana") as memory:
        report = memory.forget(WORD)
        assert {place.area for place in report.left} <= {"provider"}
        assert report.problems == ()
        assert not any("Other users" in note for note in report.notes)
        assert memory.entries() == ()
    assert messages(home, ana)[0] == "I met [forgotten] by the lake"
    assert messages(home, bob)[0] == messages(home, own)[0] == f"I met {WORD} by the lake"
    left = occurrences(home, WORD)
    assert {
        "memories/MEMORY.md",
        "memories/users/u-bob/MEMORY.md",
        "home.db",
        "holographic.cache/holographic.db",
        "holographic.cache/holographic-u-bob.db",
    } <= set(left)
    assert not [name for name in left if "u-ana" in name]
    with memoranda.open(home, user="bob") as memory:
        assert memory.search(WORD)["results"]
        assert memory.entries() == (f"A note: I met {WORD} by the lake",)
    with memoranda.open(home) as memory:
        report = memory.forget(WORD)
        assert any("Other users" in note for note in report.notes)
    assert messages(home, own)[0] == "I met [forgotten] by the lake"
    assert messages(home, bob)[0] == f"I met {WORD} by the lake"


@pytest.mark.slow
def test_the_operator_can_forget_for_everyone(home: Path) -> None:
    """With all users, no byte is left in any profile."""
    for user in (None, "ana", "bob"):
        say(home, f"I met {WORD} by the lake", user)
    say(home, f"I met {WORD} by the sea", profile="work")
    (home / "profiles" / "work" / "logs").mkdir()
    (home / "profiles" / "work" / "logs" / "chat.log").write_text(f"about {WORD}\n")
    answer = Terminal(home).run("forget", "--text", WORD, "--all-users", "--yes", "--json")
    assert {place["area"] for place in json.loads(answer.stdout)["left"]} <= {"provider"}
    assert occurrences(home, WORD) == {}


@pytest.mark.slow
def test_the_owner_forgets_in_every_profile(home: Path) -> None:
    """A profile is the same person's; a named profile alone is only that profile."""
    say(home, f"I met {WORD} by the lake")
    say(home, f"I met {WORD} by the sea", profile="work")
    with memoranda.open(home, profile="work") as memory:
        memory.forget(WORD)
    assert not [name for name in occurrences(home, WORD) if name.startswith("profiles/")]
    assert occurrences(home, WORD)
    say(home, f"I met {WORD} by the sea", profile="work")
    with memoranda.open(home) as memory:
        memory.forget(WORD)
    assert occurrences(home, WORD) == {}


@pytest.mark.slow
def test_a_conversation_is_forgotten_with_all_that_is_kept_of_it(home: Path) -> None:
    """Its messages, deliveries and lines in logs are gone; other conversations and memory stay."""
    first = say(home, f"please tell me all about {WORD} now")
    second = say(home, "please tell me all about the apples now")
    (home / "chat_history").write_text(f"please tell me all about {WORD} now\n")
    with memoranda.open(home) as memory:
        listed = memory.forget(session=first, dry_run=True)
        assert {place.area for place in listed.found} >= {"record", "outbox"}
        report = memory.forget(session=first)
        assert memory.sessions.get_session(first) is None
        assert memory.sessions.get_session(second)
        assert not memory.search(f'"all about {WORD}"')["results"]
        assert f"A note: please tell me all about {WORD} now" in memory.entries()
    assert {place.area for place in report.left} <= {"provider"}
    assert set(occurrences(home, WORD)) == {
        "memories/MEMORY.md", "memories/journal.jsonl", "holographic.cache/holographic.db", "home.db", "state.db",
    }  # fmt: skip
    with memoranda.open(home) as memory:
        memory.forget(WORD)
        # A run that was killed after the record: the same id completes it.
        again = memory.forget(session=first)
    assert {place.area for place in again.left} <= {"provider"}
    assert occurrences(home, WORD) == {}


@pytest.mark.slow
def test_a_user_is_forgotten(home: Path) -> None:
    """Conversations, memory, facts and deliveries of the user are gone, those of others are not."""
    for user in (None, "ana", "bob"):
        say(home, f"{user} met {WORD} by the lake", user)
    answer = Terminal(home).run("forget", "--user", "ana", "--yes", "--json")
    assert {place["area"] for place in json.loads(answer.stdout)["left"]} <= {"provider"}
    assert occurrences(home, "ana met") == {}
    assert not [path for path in home.rglob("*") if "u-ana" in path.name]
    assert set(occurrences(home, "bob met")) >= {"state.db", "memories/users/u-bob/MEMORY.md"}
    with memoranda.open(home, user="ana") as memory:
        assert memory.entries() == ()
        assert memory.sessions.session_count() == 0
        with pytest.raises(SessionError, match="only their own"):
            memory.forget(user="bob")


@pytest.mark.slow
def test_an_entry_is_forgotten_with_its_earlier_versions(home: Path) -> None:
    """Named by its handle or a part of it."""
    with memoranda.open(home) as memory:
        memory.remember(f"Lives at {WORD} 12.")
        memory.curated.replace("memory", "Lives at", f"Lives at {WORD} 14.")
        memory.remember("Likes tea.")
        assert memory.forget(entry="Lives at").subject == "entry"
        assert memory.entries() == ("Likes tea.",)
        with pytest.raises(SessionError, match="No entry"):
            memory.forget(entry="Lives at")
    assert occurrences(home, f"at {WORD}") == {}
