"""Without a model, the significant lines of a conversation are quoted, within the room."""

import pytest

from memoranda.agent.compression.prompts import SECTIONS
from memoranda.agent.compression.summariser import extract_summary
from memoranda.models.tokens import estimate_text
from tests.agent.compression.conftest import calls, chatter, numbered, result, said

pytestmark = pytest.mark.slow

TALK = [
    said("user", "Please port the parser in src/parser.py to Rust. It must stay under 400 lines."),
    calls("1", name="read_file", arguments='{"path": "src/parser.py"}'),
    result("1", "line one\nTraceback (most recent call last): ValueError: bad token\nline three"),
    said("assistant", "I looked at it. We decided to use nom instead of pest because of speed."),
    said("user", "Good, and put the result into crates/parser/lib.rs."),
    said("assistant", "It parses 12,000 lines in 41 ms now. Shall I also port the tests?"),
]


def test_each_section_has_what_was_said() -> None:
    """Goal, constraints, decisions, course, files, and what is open."""
    made = extract_summary(numbered(TALK), {}, 1_500)
    assert list(made) == list(SECTIONS)
    assert "Please port the parser" in made["Goal"] and "crates/parser/lib.rs" in made["Goal"]
    assert "must stay under 400 lines" in made["Constraints"]
    assert "use nom instead of pest" in made["Decisions"]
    assert "41 ms" in made["State"] and "read_file" in made["State"]
    assert "src/parser.py" in made["Files"] and "crates/parser/lib.rs" in made["Files"]
    assert "ValueError: bad token" in made["Open points"]
    assert "Shall I also port the tests?" in made["Open points"]


def test_every_line_was_said() -> None:
    """Nothing is put into other words."""
    everything = " ".join(" ".join(str(message["content"]).split()) for message in TALK)
    for section in ("Constraints", "Decisions"):
        for line in extract_summary(numbered(TALK), {}, 1_500)[section].splitlines():
            assert line.removeprefix("- ") in everything


def test_it_continues_the_previous_summary() -> None:
    """The first goal stays, and no line is repeated."""
    first = extract_summary(numbered(TALK), {}, 1_500)
    again = extract_summary(numbered(TALK), first, 1_500)
    assert again["Decisions"] == first["Decisions"]
    later = extract_summary(numbered(chatter(5), start=900), first, 1_500)
    assert later["Goal"].startswith("- Please port the parser")
    assert "use nom instead of pest" in later["Decisions"]


def test_what_was_known_is_not_pushed_out_by_chatter() -> None:
    """It keeps half of the room, however much is new, and however often."""
    known = extract_summary(numbered(TALK), {}, 400)
    for turn in range(10):
        known = extract_summary(numbered(chatter(100), start=1_000 * turn), known, 400)
    assert "use nom instead of pest" in known["Decisions"]
    assert known["Goal"].startswith("- Please port the parser")
    assert "src/parser.py" in known["Files"]


@pytest.mark.parametrize("room", [60, 200, 1_000, 4_000])
def test_it_keeps_to_its_room(room: int) -> None:
    """However much was said, and however long the first request is."""
    long = [said("user", "word " * 5_000), *chatter(300), *TALK]
    made = extract_summary(numbered(long), {}, room)
    assert sum(estimate_text(text) for text in made.values()) <= room * 1.1 + 10
    # What is newest stays.
    assert room < 1_000 or "41 ms" in made["State"]


def test_what_was_said_is_not_pushed_out_by_calls() -> None:
    """A hundred calls of a tool leave room for the words before them."""
    ran = [each for step in range(100) for each in (calls(f"c{step}"), result(f"c{step}"))]
    state = extract_summary(numbered([*TALK, *ran]), {}, 800)["State"]
    assert "41 ms" in state
    assert 0 < state.count("called") <= 3


def test_nothing_said_gives_nothing() -> None:
    """And no error."""
    assert set(extract_summary([], {}, 500).values()) == {""}
    assert extract_summary(numbered([calls("1"), said("user", None), said("user", [])]), {}, 500)["Goal"] == ""
