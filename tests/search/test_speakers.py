"""Messages that name their speaker, and questions that name one."""

from pathlib import Path

import pytest

from memoranda.search.speakers import OTHER_SPEAKER, speaker_weights
from tests.search.library import Library

pytestmark = pytest.mark.slow


def test_a_question_about_a_person_prefers_what_that_person_said(tmp_path: Path) -> None:
    """What another person says to or about them follows, although it contains the name too."""
    library = Library(tmp_path)
    ids = library.add(
        "s",
        "Omar: Nadia, which lamp did you paint? The lamp is lovely, Nadia.",
        "Nadia: I did paint the tall lamp in the hall.",
        "Omar: Good lamp.",
        "Nadia: Thanks.",
    )
    found = library.search.messages("Which lamp did Nadia paint?", library.everyone, limit=4)
    assert found.ids[0] == ids[1]
    library.close()


@pytest.mark.parametrize("text", ["Ana: at six", "[Ana] at six", "<ana> at six", "**Ana**: at six", "Ana Ruiz: at six"])
def test_the_beginning_of_a_message_names_its_speaker(text: str) -> None:
    """As chat programs write it; messages of others count less, and messages without a speaker stay as they are."""
    texts = {1: text, 2: text, 3: "Ben: at six", 4: "at six, Ana"}
    assert speaker_weights(texts, ["ana"]) == {3: OTHER_SPEAKER}


def test_a_message_with_several_speakers_is_said_by_each_of_them() -> None:
    """A pasted exchange is not counted against anyone who speaks in it."""
    texts = {1: "Ben: when?\nAna: at six", 2: "Ana: fine", 3: "Ben: good\nCleo: good"}
    assert speaker_weights(texts, ["ana"]) == {3: OTHER_SPEAKER}


def test_a_label_is_no_speaker() -> None:
    """A word that one message begins with changes nothing, nor does a name that no message begins with."""
    texts = {1: "Note: buy milk", 2: "Error: no milk", 3: "the note was lost"}
    assert speaker_weights(texts, ["note", "ana"]) == {}
