"""Names are found in ordinary sentences, and few other things are taken for names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.external.holographic.entities import find_entities, key_of

pytestmark = pytest.mark.slow


def test_names_in_sentences() -> None:
    """Capitalised words inside sentences, quotes, handles, files and code; not openers, days or contractions."""
    for text, names in [
        ("Peppi runs the Backend", ["Peppi", "Backend"]),
        ("I met Peppi yesterday", ["Peppi"]),
        ("Ana lives in Berlin.", ["Ana", "Berlin"]),
        ("ACME Corp ships on Friday", ["ACME Corp"]),
        ("We moved to ACME Corp's office", ["ACME Corp"]),
        ("The University of Oslo is old", ["University of Oslo"]),
        ("Ludwig van Beethoven wrote it", ["Ludwig van Beethoven"]),
        ("Guido aka BDFL wrote it", ["Guido", "BDFL"]),
        ("Anton, also known as @toni, is here", ["Anton", "@toni"]),
        ("don't and can't", []),
        ("It's what I'd do, isn't it", []),
        ("She reads \"The Trial\" and 'Blue Note' there", ["The Trial", "Blue Note"]),
        ('He said "please don\'t do that again, ever, at all."', []),
        ("@bob edits src/app/main.py", ["@bob", "src/app/main.py"]),
        ("set user_name with parseArgs", ["user_name", "parseArgs"]),
        ("Run `make test` before README.md changes", ["make test", "README.md"]),
        ("Mail me at bob@example.com", []),
        ("The user prefers dark mode", ["user"]),
        ("Use tabs. Deploys happen on Monday in May. Always test.", []),
        ("Use Redis for caching", ["Redis"]),
        ("Élodie habite à Lyon", ["Lyon"]),
        ("Анна живёт в Берлине", ["Берлине"]),
        ("「田中」は《紅楼夢》が好き", ["田中", "紅楼夢"]),
        ("version 3.11 costs 4.50 and takes 10 AM", []),
        ("", []),
    ]:
        assert [entity.name for entity in find_entities(text)] == names


def test_what_is_known_counts_where_it_would_be_doubtful() -> None:
    """At the beginning of a sentence, and inside a script without spaces."""
    assert find_entities("Atlas first, then the rest") == []
    assert [entity.name for entity in find_entities("Atlas first", lambda keys: {"atlas"})] == ["Atlas"]
    assert [entity.name for entity in find_entities("昨日田中さんに会った", lambda keys: {"田中"})] == ["田中"]


def test_an_alias_says_whose_it_is() -> None:
    """The second name belongs to the first."""
    assert [entity.alias_of for entity in find_entities("Guido aka BDFL wrote it")] == ["", "Guido"]


@pytest.mark.parametrize("name", ["ana  kovac", "Ana Kovac's", "“ANA KOVAC”", "Ａna Kovac", "Ana Kovac."])
def test_spellings_of_one_name_have_one_key(name: str) -> None:
    """Case, width, spaces, quotation marks and a possessive do not count."""
    assert key_of(name) == "ana kovac"


@given(st.text(max_size=300))
def test_any_text_can_be_looked_at(text: str) -> None:
    """Every name that is found is short and has a key."""
    for entity in find_entities(text):
        assert key_of(entity.name)
        assert len(entity.name) <= 80
