"""Reading what was typed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.search.index.postings import And, Or, Phrase, Prefix, Without, Word
from memoranda.search.query import (
    MAX_QUERY,
    AllOf,
    AnyOf,
    Not,
    Query,
    SyntaxTree,
    TermKind,
    TypedTerm,
    parse,
    parse_syntax,
)

_WORDS = st.sampled_from(["alpha", "beta", "Gamma", "delta-one", "数据库", "x.y"]).map(TypedTerm)
_PHRASES = st.sampled_from(["two words", "a phrase here"]).map(lambda text: TypedTerm(text, TermKind.PHRASE))
_PREFIXES = st.sampled_from(["depl", "数据"]).map(lambda text: TypedTerm(text, TermKind.PREFIX))
_LEAVES = _WORDS | _PHRASES | _PREFIXES
_NEGATABLE = st.one_of(_LEAVES, _LEAVES.map(Not))


def _either(parts: st.SearchStrategy[SyntaxTree]) -> st.SearchStrategy[SyntaxTree]:
    return st.lists(parts, min_size=2, max_size=3).map(lambda nodes: AnyOf(tuple(nodes)))


_ROWS = st.lists(st.one_of(_NEGATABLE, _either(_LEAVES), _either(_LEAVES).map(Not)), min_size=1, max_size=4)


def written(tree: SyntaxTree) -> str:
    """A tree as a person would type it."""
    match tree:
        case TypedTerm(text, TermKind.PHRASE):
            return f'"{text}"'
        case TypedTerm(text, TermKind.PREFIX):
            return f"{text}*"
        case TypedTerm(text):
            return text
        case Not(node):
            return f"NOT {written(node)}"
        case AllOf(nodes):
            return " AND ".join(map(written, nodes))
        case AnyOf(nodes):
            return "(" + " OR ".join(map(written, nodes)) + ")"


@given(row=_ROWS)
def test_what_is_written_out_reads_back(row: list[SyntaxTree]) -> None:
    """A tree, typed and read again, is the same tree."""
    tree = AllOf(tuple(row))
    assert parse_syntax(written(tree)) == (tree if len(row) > 1 else parse_syntax(written(row[0])))
    if len(row) > 1:
        assert parse_syntax(written(tree).replace(" AND ", " ")) == tree


def patterns(query: Query) -> list[object]:
    return [part.pattern for part in query.parts]


def test_words_side_by_side_belong_together() -> None:
    """Keywords are parts of one row, in their stems, without small words."""
    assert patterns(parse("docker deployments")) == [Word("docker"), Word("deploy")]
    assert not parse("docker deployments").question


def test_joined_words_are_phrases() -> None:
    """A path, a version or a run of Chinese is found whole."""
    assert patterns(parse("src/main.py")) == [Phrase(("src", "main", "py"))]
    assert patterns(parse("数据库")) == [Phrase(("数据", "据库"))]


def test_grouping_is_kept() -> None:
    """(a OR b) AND c is not a OR (b AND c)."""
    grouped, loose = parse("(lemon OR banana) AND fig"), parse("lemon OR banana AND fig")
    assert patterns(grouped) == [Or((Word("lemon"), Word("banana"))), Word("fig")]
    assert patterns(loose) == [Or((Word("lemon"), And((Word("banana"), Word("fig")))))]


def test_exclusions_are_separate_from_parts() -> None:
    """NOT and a minus exclude; within a group they exclude from the group."""
    assert parse("python NOT java").excluded == Word("java")
    assert parse("python -java").excluded == Word("java")
    assert parse('python -"old java"').excluded == Phrase(("old", "java"))
    assert parse("python -(java OR perl)").excluded == Or((Word("java"), Word("perl")))
    assert patterns(parse("(python NOT java) OR rust")) == [Or((Without(Word("python"), Word("java")), Word("rust")))]


@pytest.mark.parametrize("text", ["not working", "NOT working", "-working"])
def test_words_are_never_lost_to_a_lone_not(text: str) -> None:
    """Lower-case "not" is a word, and an exclusion of everything is a search for it."""
    query = parse(text)
    assert patterns(query) == [Word("work")]
    assert query.excluded is None


@pytest.mark.parametrize("text", ["git commit -m", "--flag", "-5 degrees", "a - b"])
def test_options_and_numbers_are_not_exclusions(text: str) -> None:
    """Only a minus right before a word leaves it out."""
    assert parse(text).excluded is None


def test_operators_count_in_upper_case_only() -> None:
    """Lower-case "or" is a small word; a whole sentence in capitals has no operators."""
    assert [term.text for term in parse("pnpm or npm").terms] == ["pnpm", "npm"]
    assert not parse("pnpm or npm").exact
    assert parse("PLEASE DO NOT DELETE THE DATABASE").excluded is None
    assert parse("API OR SDK OR CLI OR MCP").alternatives


@pytest.mark.parametrize(
    ("text", "pattern"),
    [("deploy*", Prefix("deploy")), ("foo***", Prefix("foo")), ("*bold*", Word("bold")), ("**bold**", Word("bold"))],
)
def test_a_star_after_a_word_makes_it_a_prefix(text: str, pattern: object) -> None:
    """Stars around a word are emphasis."""
    assert patterns(parse(text)) == [pattern]


def test_a_phrase_in_an_unspaced_script_needs_no_space_in_the_text() -> None:
    """A space inside a quoted Chinese phrase may or may not be there."""
    (pattern,) = patterns(parse('"数据库 迁移"'))
    assert isinstance(pattern, Or)
    assert Phrase(("数据", "据库", "库迁", "迁移"), in_order=True) in pattern.parts


@pytest.mark.parametrize(
    "text",
    [
        "how do I deploy?",
        "what's the plan",
        "billing service outage last tuesday",
        "怎么做数据库迁移",
        "数据库的连接池为什么总是耗尽",
        "データベースはいつ移行しましたか",
    ],
)
def test_a_sentence_is_a_question(text: str) -> None:
    """Small words, many words or a long run make a question."""
    assert parse(text).question


@pytest.mark.parametrize("text", ["docker", "docker deployment?", "docker kubernetes helm", "数据库迁移", '"to be"'])
def test_keywords_are_not_a_question(text: str) -> None:
    """A question mark does not make one."""
    assert not parse(text).question


def test_small_words_count_when_there_is_nothing_else() -> None:
    """ "to be or not to be" is still a query."""
    query = parse("to be or not to be")
    assert query.parts
    assert query.terms


def test_without_words_there_is_nothing_to_look_for() -> None:
    """Punctuation and operators alone are not a query."""
    for text in ["", " ", "...", "()", '""', "*", "AND OR NOT", "\0", "-"]:
        assert parse(text).parts == ()


def test_a_query_has_an_end() -> None:
    """Beyond the longest query nothing is read, and no depth of brackets is too deep."""
    assert parse("a" * MAX_QUERY + " b") == parse("a" * MAX_QUERY)
    assert patterns(parse("(" * 1_500 + "deep" + ")" * 400)) == [Word("deep")]


@pytest.mark.slow
@given(text=st.text())
def test_every_text_is_a_query(text: str) -> None:
    """Nothing that can be typed is an error, and terms are there whenever parts are."""
    query = parse(text)
    assert bool(query.parts) == bool(query.terms)
