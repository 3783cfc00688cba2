"""The table of related words."""

from pathlib import Path

import pytest

from memoranda.search.index import related_words as module
from memoranda.search.index.related_words import close_words, opposite_words, related_words
from memoranda.search.index.tokenizer import tokenize

pytestmark = pytest.mark.slow

_ROWS = Path(module.__file__).with_name("related_words.txt").read_text("ascii").splitlines()


def test_words_of_related_meaning_are_related() -> None:
    """A class and its members, synonyms and close words, in any inflection, and in both directions."""
    for word, related in [
        ("pets", "cats"),
        ("kids", "children"),
        ("beverage", "drinks"),
        ("restart", "reboot"),
        ("herbs", "coriander"),
        ("language", "Kotlin"),
        ("reports", "manager"),
        ("repairs", "fixed"),
    ]:
        [own], [other] = tokenize(word), tokenize(related)
        assert 0 < related_words(own)[other] < 1
        assert own in related_words(other)


def test_every_row_can_be_looked_up() -> None:
    """Also the first and the last row: the rows are in the order that the search in the file needs."""
    for row in [*_ROWS[:3], *_ROWS[::500], *_ROWS[-3:]]:
        own, *related = row.split()
        assert list(related_words(own)) == [word.rstrip("!+0123456789") for word in related]
    assert sorted(_ROWS, key=lambda row: row.split()[0]) == _ROWS


def test_an_unknown_word_has_no_related_words() -> None:
    """Before the first row, between rows, after the last row, and in another script."""
    for word in ("", "a", "catx", "zzzzzz", "0", "猫", "é", "two words"):
        assert related_words(word) == {}


@pytest.mark.parametrize(("word", "opposite"), [("enable", "disabled"), ("short", "long"), ("love", "hates")])
def test_opposites_are_related_and_marked(word: str, opposite: str) -> None:
    """In both directions; synonyms are not opposites."""
    [own], [other] = tokenize(word), tokenize(opposite)
    assert other in opposite_words(own)
    assert own in opposite_words(other)
    assert other in related_words(own)
    assert "manag" not in opposite_words("boss")


@pytest.mark.parametrize(("word", "close"), [("car", "vehicle"), ("doctor", "physician"), ("wedding", "bride")])
def test_close_words_are_those_that_every_measure_agrees_on(word: str, close: str) -> None:
    """They are related, the closest comes first, and there are fewer of them."""
    [own], [other] = tokenize(word), tokenize(close)
    found = close_words(own)
    assert other in found
    assert list(found.values()) == sorted(found.values(), reverse=True)
    assert set(found) < set(related_words(own))
    assert opposite_words(own).isdisjoint(found)


def test_names_of_people_are_not_related() -> None:
    """A question about one person is not answered with a fact about another, whose name sounds alike."""
    assert related_words("hanna") == related_words("adam") == {}


def test_no_row_relates_a_word_to_itself_or_twice_to_another() -> None:
    """Closeness is the last digit of each entry."""
    for row in _ROWS:
        own, *related = row.split()
        words = [word.rstrip("!+0123456789") for word in related]
        assert own not in words
        assert len(set(words)) == len(words)
        assert all(word[-1].isdigit() for word in related)
