"""What is forgotten on one machine is forgotten in every part of the others, without its text in the folder."""

import shutil
from pathlib import Path

import pytest

from memoranda.support.text_matcher import TextMatcher
from memoranda.upkeep.sync.forgotten_texts import removed_matcher
from tests.search.past import BEGIN, tell
from tests.upkeep.forgetting.filled_home import fill, occurrences
from tests.upkeep.sync.machines import Machine, sent_records, sync_all

_MARKER = "zanzibar"


@pytest.mark.slow
def test_no_byte_of_it_is_left_on_the_other_machine(tmp_path: Path, folder: Path) -> None:
    """Nor in its outbox, logs, facts, skills, backups, in what it has not sent yet, or in the folder."""
    fill(tmp_path / "b", tmp_path / "source", _MARKER)
    pair = [Machine(tmp_path / name, folder) for name in ("a", "b")]
    a, b = pair
    sync_all([b, a], 1)
    tell(b.db, "unsent", [f"More about {_MARKER}", "and about figs"], at=BEGIN + 99)
    assert {"state.db", "home.db", "logs/chat.log", "chat_history"} <= occurrences(b.home, _MARKER).keys()
    a.memory.forget(_MARKER)
    sync_all([a, b, a, b], 1)
    for machine in pair:
        machine.close()
    assert occurrences(a.home, _MARKER) == occurrences(b.home, _MARKER) == {}
    assert _MARKER not in str(sent_records(folder)).lower()
    assert "figs" in (b.home / "chat_history").read_text()


@pytest.mark.parametrize("text", ["zanzibar", "the code", "ab.c", "\\d+", "ö"])
@pytest.mark.parametrize("old", ["{0}", "It is {0}.", "{0} and {0}", "say {0}!\n{0}{0}", "party {0} arty"])
def test_a_removed_text_is_found_by_its_marks(old: str, text: str) -> None:
    """Only where it explains the marks exactly: what is forgotten elsewhere removes the same and nothing else."""
    message = old.format(text)
    marked = TextMatcher([text]).replace(message).value
    matcher = removed_matcher(message, marked)
    assert matcher is None if len(text) < 3 else matcher is not None and matcher.texts == (text,)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("one two three", "[forgotten] two [forgotten]"),
        ("already [forgotten] here", "already [forgotten] [forgotten]"),
        ("same", "same"),
        ("a b", "[forgotten]"),
        ("short", "[forgotten] and something that was never there"),
    ],
)
def test_an_uncertain_text_is_not_looked_for(old: str, new: str) -> None:
    """The message itself is changed, and nothing else is removed by mistake."""
    assert removed_matcher(old, new) is None or removed_matcher(old, new).texts == (old,)  # type: ignore[union-attr]


@pytest.mark.slow
def test_whole_words_stay_whole_words(pair: list[Machine]) -> None:
    """Where "art" was forgotten as a word, a "party" stays a party on the other machine."""
    a, b = pair
    tell(a.db, "s1", ["I like art a lot", "yes"])
    sync_all(pair, 2)
    tell(b.db, "s2", ["the party", "and the art"], at=BEGIN + 50)
    a.memory.forget(text="art", whole_words=True)
    sync_all([a, b, a], 1)
    assert [row["content"] for row in a.db.get_messages("s2")] == ["the party", "and the [forgotten]"]
    assert a.contents() == b.contents()


@pytest.mark.slow
def test_a_run_that_was_killed_before_it_forgot_continues(pair: list[Machine], monkeypatch: pytest.MonkeyPatch) -> None:
    """The text is noted before the message that shows it is replaced."""
    a, b = pair
    tell(a.db, "s1", ["The code is zanzibar", "noted"])
    sync_all(pair, 2)
    (b.home / "logs").mkdir(exist_ok=True)
    (b.home / "logs" / "chat.log").write_text("zanzibar\n")
    a.memory.forget(text="zanzibar")
    a.sync()
    with monkeypatch.context() as patched:
        patched.setattr("memoranda.upkeep.sync.synchroniser.forget_here", _fail)
        with pytest.raises(RuntimeError):
            b.sync()
    assert "zanzibar" not in str(b.contents())
    b.sync()
    assert occurrences(b.home / "logs", "zanzibar") == {}
    shutil.rmtree(b.home / "logs")


def _fail(run: object) -> bool:
    raise RuntimeError("stopped")
