"""Words with an open end."""

from memoranda.search.index.postings import And, Or, Pattern, Prefix, Word
from memoranda.search.index.tokenizer import tokenize
from memoranda.search.query import prefix_pattern


def test_an_open_word_is_a_prefix_and_the_stems_it_may_have_become() -> None:
    """The prefix by itself would miss words whose stem is shorter than the prefix."""
    for typed, pattern in [
        ("deploy", Prefix("deploy")),
        ("migrati", Or((Prefix("migrati"), Word("migrat")))),
        ("数据", Prefix("数据")),
        ("数", Prefix("数")),
        ("foo-ba", And((Word("foo"), Prefix("ba")))),
        ("Café", Prefix("cafe")),
        ("?", None),
        ("", None),
    ]:
        assert prefix_pattern(typed) == pattern


def test_every_beginning_of_a_word_finds_it() -> None:
    """From three letters on to the whole word."""
    for word in ["migration", "cities", "running", "deployments", "planning", "decision", "agreed"]:
        token = tokenize(word)[0]
        for size in range(3, len(word) + 1):
            assert _finds(prefix_pattern(word[:size]), token), word[:size]


def _finds(pattern: Pattern | None, token: str) -> bool:
    match pattern:
        case Word(wanted):
            return token == wanted
        case Prefix(wanted):
            return token.startswith(wanted)
        case Or(parts):
            return any(_finds(part, token) for part in parts)
        case _:
            return False
