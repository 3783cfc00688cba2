"""The log of recalls is small, private, one file for each user, and can be erased call by call."""

import os
import time
from pathlib import Path

import pytest

from memoranda.safety.redaction import Redactor
from memoranda.search.recall_log import (
    GIVEN,
    NOTHING,
    TURN,
    PromptPlace,
    RecallLog,
    erase_calls,
    read_calls,
    recalls_path,
)

pytestmark = pytest.mark.slow

KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def _redact(text: str) -> str:
    return Redactor().text(text)[0]


def _add(
    home: Path, prompt: str, *, user: str | None = None, session: str = "s1", message: int | None = None, text: str = ""
) -> None:
    outcome = GIVEN if text else NOTHING
    place = PromptPlace(TURN, "cli", session, message)
    RecallLog(home, user, _redact).add(place, prompt, outcome, "why", began=time.time(), text=text)


def test_a_recall_is_logged_with_its_session_and_message(tmp_path: Path) -> None:
    """Prompts keep plain words only, and what was recalled has no credentials."""
    _add(tmp_path, f"Where is {KEY} used?", text=f"The key is {KEY}. " + "x" * 5_000)
    (call,) = read_calls(recalls_path(tmp_path, None))
    assert (call["session_id"], call["outcome"]) == ("s1", GIVEN)
    assert call["prompt"] == "Where is ••• used?"
    assert "The key is [redacted:" in call["text"] and len(call["text"]) == 2_000
    assert KEY not in recalls_path(tmp_path, None).read_text()
    if os.name == "posix":
        assert recalls_path(tmp_path, None).stat().st_mode & 0o077 == 0


def test_the_words_of_a_recorded_message_stay_in_the_record(tmp_path: Path) -> None:
    """Only the record has them, so that they are gone when they are redacted there."""
    _add(tmp_path, "Where is the heron?", message=7)
    (call,) = read_calls(recalls_path(tmp_path, None))
    assert call["message_id"] == 7 and "heron" not in str(call)


def test_each_user_has_a_file_of_a_limited_size(tmp_path: Path) -> None:
    """The recalls of one user never push out those of another, and the newest stay."""
    _add(tmp_path, "of the owner")
    for number in range(300):
        _add(tmp_path, f"prompt {number}", user="ana", text="y" * 1_000)
    assert recalls_path(tmp_path, "ana").stat().st_size <= 100_000
    assert read_calls(recalls_path(tmp_path, "ana"))[0]["prompt"] == "prompt 299"
    assert [call["prompt"] for call in read_calls(recalls_path(tmp_path, None))] == ["of the owner"]
    assert len(list(recalls_path(tmp_path, "ana").parent.iterdir())) == 1


def test_no_home_is_created_and_a_full_disk_stops_nothing(tmp_path: Path) -> None:
    """A log that cannot be written costs nothing but the line."""
    _add(tmp_path / "missing", "hello there")
    assert not (tmp_path / "missing").exists()
    (tmp_path / "logs").write_text("a file where the directory should be")
    _add(tmp_path, "hello there")
    assert read_calls(recalls_path(tmp_path, None)) == []


def test_calls_are_erased_in_place(tmp_path: Path) -> None:
    """Nothing of an erased call is left in the file, which keeps its length; other calls stay."""
    _add(tmp_path, "secret plans", session="s1")
    _add(tmp_path, "other plans", session="s2")
    path = recalls_path(tmp_path, None)
    size = path.stat().st_size
    assert erase_calls(path, lambda call: call["session_id"] == "s1") == 1
    assert path.stat().st_size == size and "secret" not in path.read_text()
    assert [call["prompt"] for call in read_calls(path)] == ["other plans"]
    assert erase_calls(tmp_path / "missing.jsonl", lambda _: True) == 0
