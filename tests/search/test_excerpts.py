"""Excerpts with marks."""

from hypothesis import given
from hypothesis import strategies as st

from memoranda.search.excerpts import CLOSE, CUT, OPEN, excerpt, without_markdown
from memoranda.search.query import Query, parse


def snippet(text: str, query: Query, width: int = 240) -> str:
    return excerpt(text, query, width).text


def test_every_match_is_marked() -> None:
    """Stems, accents, scripts, prefixes and phrases are marked in the spelling of the text."""
    for typed, text, shown in [
        ("migrate", "We migrated; migrations run.", "We >>>migrated<<<; >>>migrations<<< run."),
        ("cafe naive", "A naïve Café.", "A >>>naïve<<< >>>Café<<<."),
        ("数据库迁移", "完成了数据库迁移，备份数据库。", "完成了>>>数据库迁移<<<，备份数据库。"),
        ("数", "完成了数据库", "完成了>>>数<<<据库"),
        ("怎么做数据库迁移", "数据库要备份", ">>>数据库<<<要备份"),
        ("docker", "使用docker部署", "使用>>>docker<<<部署"),
        ("deploy*", "deployments deployed", ">>>deployments<<< >>>deployed<<<"),
        ('"new york"', "a new york in New\nYork, york new", "a >>>new york<<< in >>>New York<<<, york new"),
        ("profile", "call getUserProfile()", "call >>>getUserProfile<<<()"),
        ("src/main.py", "open src/main.py", "open >>>src/main.py<<<"),
        ("🎉", "party 🎉!", "party >>>🎉<<<!"),
        ("python NOT java", "python, not java", ">>>python<<<, not java"),
        ("how do we deploy?", "how we deploy", "how we >>>deploy<<<"),
    ]:
        assert snippet(text, parse(typed)) == shown


def test_markdown_is_shown_as_plain_text() -> None:
    """Code that only looks like Markdown stays as it is."""
    for text, shown in [
        ("## The **zebra** is `striped`", "The >>>zebra<<< is striped"),
        ("> a *tame* zebra\n> said so", "a tame >>>zebra<<< said so"),
        ("see [the zebra](https://example.org/a_(b)) here", "see the >>>zebra<<< here"),
        ("[it](https://zebra.org) eats", "[it](https://>>>zebra<<<.org) eats"),
        ("| zebra | legs |\n|---|---:|\n| one | four |", "| >>>zebra<<< | legs |  | one | four |"),
        ("* one zebra\n+ two", "- one >>>zebra<<< - two"),
        ("```python\nzebra(**options, *rest)\n```", " >>>zebra<<<(**options, *rest) "),
        ("zebra in __init__.py: 2*a*b, ls *.py", ">>>zebra<<< in __init__.py: 2*a*b, ls *.py"),
    ]:
        assert snippet(text, parse("zebra")) == shown


@given(st.text(st.sampled_from("*`~#>[]()|-_ \nab"), max_size=2_000))
def test_removing_markdown_never_makes_a_text_longer(text: str) -> None:
    """Whatever signs follow each other, within the time that a test has."""
    assert len(without_markdown(text)) <= len(text)


def test_the_best_cluster_is_shown() -> None:
    """The snippet shows the part with most of the words, with a quarter of its width before it."""
    text = "alpha " + "filler " * 100 + "alpha beta gamma " + "filler " * 100
    shown = snippet(text, parse("alpha beta gamma"), width=100)
    assert ">>>alpha<<< >>>beta<<< >>>gamma<<<" in shown
    assert shown.startswith(CUT)
    assert shown.endswith(CUT)
    assert 10 < shown.index(OPEN) < 30
    assert excerpt(text, parse("alpha beta gamma"), width=100).at == text.index("alpha beta")


def test_without_a_match_the_text_begins() -> None:
    """A message found by its neighbours is shown from its start."""
    text = "word " * 100
    shown = snippet(text, parse("zebra"), width=50)
    assert shown.startswith("word word")
    assert shown.endswith(CUT)
    assert excerpt(text, parse("zebra")).at is None


@given(
    text=st.text(st.characters(exclude_characters="*~`#>[|:=_-"), max_size=400)
    | st.lists(st.sampled_from(["alpha", "beta", "数据库", "é", "🎉", "\n"])).map(" ".join),
    typed=st.sampled_from(["alpha", "数据", "alpha beta", '"alpha beta"', "al*", "é", "🎉", "的", "zebra"]),
    width=st.integers(min_value=10, max_value=300),
)
def test_a_snippet_is_a_piece_of_the_text(text: str, typed: str, width: int) -> None:
    """Without its marks it is part of the text and no wider than asked."""
    shown = snippet(text, parse(typed), width)
    plain = shown.replace(OPEN, "").replace(CLOSE, "")
    assert len(plain) <= width
    if not {">", "<", CUT} & set(text):
        flat = text.translate(str.maketrans("\n\r\t\v\f", "     "))
        assert plain.removeprefix(CUT).removesuffix(CUT) in flat
        assert shown.count(OPEN) == shown.count(CLOSE)
