"""Notes are evidence for the prompts of hosts: under the floor of conversations, with their date and origin."""

import json
from pathlib import Path

import pytest

import memoranda
from memoranda.integrations.frameworks.prompt_recall import recall
from memoranda.integrations.hooks.answers import answer_event, read_payload
from memoranda.integrations.hooks.home_config import HomeConfig
from memoranda.memory.curated.moves import move_entry
from memoranda.support.origin import PERSON

_NOTE = "The invoice archive of Globex is on the server heron."
_TALK = [
    ("Rename the parser module", "Renamed it to reader.py and fixed the imports."),
    ("Add a spinner to the page", "Added a spinner that shows while the list loads."),
    ("Why does the build fail?", "The lock file was stale; I regenerated it."),
    ("Write a release note", "Wrote one for version 2.4 with the three changes."),
]
_UNRELATED = ["Which colour has the spinner archive?", "Please write a function that sorts a list", "Archive this"]


def _answer(memory: memoranda.Memory, prompt: str) -> tuple[str, str]:
    payload = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": prompt}
    answer = answer_event(HomeConfig(memory.home), None, read_payload(json.dumps(payload).encode()), "claude-code")
    return answer.text, answer.reason


@pytest.mark.slow
def test_a_prompt_that_needs_a_note_gets_it_and_no_other_does(tmp_path: Path) -> None:
    """In hosts and in frameworks; a record without notes gives none."""
    with memoranda.open(tmp_path / "home") as memory:
        for question, reply in _TALK:
            with memory.session() as session, session.turn(question) as turn:
                turn.done(reply)
        asked = "Where is the invoice archive of Globex?"
        assert _answer(memory, asked)[0] == ""
        memory.remember(_NOTE)
        move_entry(memory.curated, "memory", "Globex", "notes", PERSON)
        text, reason = _answer(memory, asked)
        assert _NOTE in text and "noted 20" in text and "beside MEMORY.md" in text
        assert reason == "1 note cleared the floor"
        assert _NOTE in recall(memory, asked)
        memory.curated.notes.add(_NOTE, "memory", PERSON, replaced="entry:ab12")  # type: ignore[union-attr]
        assert _answer(memory, asked)[0] == ""
        assert [prompt for prompt in _UNRELATED if "Globex" in _answer(memory, prompt)[0]] == []
