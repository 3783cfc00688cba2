"""Phrases are compared with texts: quickly, and with the same result as comparing all tokens."""

import random
import time

import pytest

from memoranda.search.index.message_text import title_text
from memoranda.search.index.phrase_order import is_in_order
from memoranda.search.index.postings import Phrase
from memoranda.search.index.tokenizer import index_tokens, tokenize

WORDS = [
    "the",
    "user",
    "users",
    "using",
    "migrated",
    "migration",
    "v2",
    "v",
    "2",
    "don't",
    "dont",
    "can't",
    "agent",
    "client",
    "c++",
    "l'homme",
    "userProfile",
    "fooBar",
    "HTTPServer",
    "a_b",
    "src/user.py",
    "big",
    "bigger",
    "lake",
    "re-use",
    "x1",
    "12",
    "café",
    "cafe",
    "naïve",
    "naive",
    "—",
    "“quoted”",
    "…",
    "東京",
    "ＦＵＬＬ",
    "full",
    "straße",
    "øre",
    "ore",
    "æther",
    "aether",
    "Łódź",
    "lodz",
    "strasse",
    "İstanbul",
    "istanbul",
    "soft\xadware",
    "software",
    "###",
    "it's",
]


def contains(tokens: tuple[str, ...], text: str) -> bool:
    """The definition: the tokens follow each other in the text, or among the parts of its camelCase words."""
    length = len(tokens)
    every = (tokenize(text), index_tokens(text).parts.split())
    return any(tuple(found[at : at + length]) == tokens for found in every for at in range(len(found)))


@pytest.mark.slow
def test_a_phrase_is_found_exactly_where_its_tokens_follow_each_other() -> None:
    """Whatever the words, their spelling, script and punctuation."""
    for seed in range(4):
        generator = random.Random(seed)
        found = 0
        for _ in range(700):
            between = generator.choice([" ", " ", ", ", " - ", "\n", "\t"])
            text = between.join(generator.choices(WORDS, k=generator.randint(1, 14)))
            tokens = tuple(tokenize(" ".join(generator.choices(WORDS, k=2))))
            if len(tokens) > 1 and all(map(str.isascii, tokens)):
                expected = contains(tokens, text)
                found += expected
                assert is_in_order(title_text(text), Phrase(tokens)) == expected, (tokens, text)
        assert found


def test_a_phrase_of_common_words_is_found_in_a_long_text() -> None:
    """The phrase may stand anywhere, after any number of places that only look like it."""
    text = "the users, the userland, the used. " * 400 + "The user profile."
    assert is_in_order(title_text(text), Phrase(("the", "user", "profil")))
    assert not is_in_order(title_text(text), Phrase(("user", "the", "profil")))


def test_marks_in_a_row_cost_no_more_than_other_text() -> None:
    """A word with thousands of "#" after it is compared in linear time, and so is one that repeats itself."""

    def cost(text: str) -> float:
        start = time.process_time()
        is_in_order(title_text(text), Phrase(("user", "profil")))
        return time.process_time() - start

    usual = max(cost("user " * 6_000) for _ in range(3))
    assert cost("user" + "#" * 30_000) < 0.1 + 100 * usual
    assert cost("user" * 7_500) < 0.1 + 100 * usual
