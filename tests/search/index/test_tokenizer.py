"""How text is cut into tokens."""

import sqlite3
import tracemalloc

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memoranda.search.index.tokenizer import (
    LONGEST_TOKEN,
    index_tokens,
    is_single_character,
    is_unspaced,
    may_have_token,
    query_words,
    token_spans,
    tokenize,
)
from tests.examples import examples


def parts(text: str) -> list[str]:
    return index_tokens(text).parts.split()


TABLE = {
    "The CAT sat.": "the cat sat",
    "Straße, ÉCOLE, cafe\u0301, naïve, Łódź": "strass ecol cafe naiv lodz",
    "Ёлка и ёж; мой дом": "елка и еж мой дом",
    "Ελλάς ΕΛΛΑΔΑ": "ελλασ ελλαδα",
    "العَرَبِيَّة مدرســة إسلام": "العربيه مدرسه اسلام",
    "שָׁלוֹם": "שלום",
    "हिन्दी में": "हिन्दी में",
    "数据库迁移。": "数据 据库 库迁 迁移 移",
    "我们使用docker部署": "我们 们使 使用 用 docker 部署 署",
    "2024年5月": "2024 年 5 月",
    "データ移行": "デー ータ タ移 移行 行",
    "ｶﾞｲﾄﾞ": "ガイ イド ド",
    "한국어 검색": "한국 국어 어 검색 색",
    "ทดสอบ": "ทด ดส สอ อบ บ",
    "Ｆｕｌｌ　ｗｉｄｔｈ！": "full width",
    "user_profile kebab-case src/app/main.py": "user profil kebab case src app main py",
    "https://example.org/a?b=c me@example.org": "http exampl org a b c me exampl org",
    "v1.2.3 utf8 utf-8 python3": "v 1 2 3 utf 8 utf 8 python 3",
    "getUserName GitHub": "getusernam github",
    "don't can’t it's John's they’ll l'homme": "dont cant it john they l homm",
    "'quoted' 'words'": "quot word",
    "C++ c# F# C++17 i++": "cpp csharp fsharp cpp 17 i",
    "#1234 $HOME 50% .NET node.js": "1234 home 50 net node js",
    "APIs URLs IDs": "api url id",
    "👍🏽 done 🎉🎉 ✓": "👍 🏽 done 🎉 🎉 ✓",
    "١٢٣ ½": "123 1 2",
    "soft\u00adhyphen": "softhyphen",
    "3f2a9c1e-77aa-4b0c": "3f2a9c1e 77aa 4b0c",
    " \t\n.,;!?…—": "",
    "": "",
}


def test_text_falls_into_tokens() -> None:
    """Each script and each kind of writing by its own rule."""
    for text, tokens in TABLE.items():
        assert " ".join(tokenize(text)) == tokens


def test_camel_case_words_are_found_in_part() -> None:
    """The whole word is a token of the text; its parts follow the text, once per word."""
    assert parts("getUserName calls parseHTMLDoc, then getUserName") == ["get", "user", "name", "pars", "html", "doc"]
    assert parts("OAuth2Token 'iPhone'") == ["o", "auth", "2", "token", "i", "phone"]


def test_random_characters_have_no_parts() -> None:
    """A key or a hash is not a camelCase word."""
    assert parts("eyJhbGciOiJIUzI1NiIsInR5cCI6 plain Title URLs") == []


def test_everything_is_both_in_one_pass() -> None:
    """Indexing cuts a text once."""
    text = "getUserName in 数据库 for O'Brien"
    found = index_tokens(text)
    assert found.words == "getusernam in for o brien"
    assert found.pairs == "数据 据库 库"
    assert found.parts == "get user name"


def test_typed_words_become_words_and_phrases() -> None:
    """One token is a word, several are a phrase, and the end of an unspaced run stays open."""
    for typed, wanted in [
        ("数据库迁移，怎么做？", [("数据", "据库", "库迁", "迁移"), ("怎么", "么做")]),
        ("数", [("数",)]),
        ("我用docker", [("我用", "用", "docker")]),
        ("foo/bar.py baz", [("foo", "bar", "py"), ("baz",)]),
        ("GitHub actions", [("github",), ("action",)]),
        ("? ! -", []),
        ("哈哈哈", [("哈哈", "哈哈")]),
    ]:
        assert query_words(typed) == wanted


def test_spans_say_where_tokens_come_from() -> None:
    """Every token of the text has its stretch, pairs overlap, parts belong to their word."""
    text = "我们Docker getUserName"
    assert [(text[span.start : span.end], span.tokens) for span in token_spans(text)] == [
        ("我们", ("我们",)),
        ("们", ("们",)),
        ("Docker", ("docker",)),
        ("getUserName", ("getusernam", "get", "user", "name")),
    ]


TEXTS = st.one_of(
    st.text(max_size=80),
    st.text("abcXYZ019_'+#-./ \t数据かナ가ทé\u0301’ß½ﬁ①👍", max_size=60),
    st.text("abst'’‘“”–—…•\u00a0 #+", max_size=60),
)


@pytest.mark.slow
@given(TEXTS)
@example("゛ﾞ㎏ Ⅷ ㍻ ﷺ İ ŉ")
@example("a\x00b\ud800c")
@settings(max_examples=examples(400))
def test_tokens_are_plain(text: str) -> None:
    """A token is short, folded, has no ASCII character but a-z and 0-9, and stays itself when cut again."""
    for token in (*tokenize(text), *parts(text)):
        assert 1 <= len(token) <= LONGEST_TOKEN
        assert all(c.isalnum() and not c.isupper() for c in token if c.isascii())
        assert not token.isspace()


@pytest.mark.slow
@given(TEXTS)
@example("0A’")
@settings(max_examples=examples(400))
def test_spans_and_segments_agree(text: str) -> None:
    """What is marked is what was indexed."""
    from_spans = [token for span in token_spans(text) for token in span.tokens]
    assert sorted(from_spans) == sorted(
        tokenize(text) + [t for s in token_spans(text) for t in parts(text[s.start : s.end])]
    )


@given(st.text("abcXYZ019_'+#-./ \t\nst", max_size=60), st.integers(0))
@example("Don't use C++ in userProfile,\nnor in\tstudies", 2**20 - 1)
@settings(max_examples=examples(200))
def test_spans_of_some_tokens_are_those_of_all_that_have_them(text: str, chosen: int) -> None:
    """Whoever asks where a few tokens are gets every place of them, in order, and nothing else."""
    every = list(token_spans(text))
    known = sorted({token for span in every for token in span.tokens})
    wanted = {token for number, token in enumerate(known) if chosen >> number & 1}
    assert list(token_spans(text, wanted)) == [span for span in every if not wanted.isdisjoint(span.tokens)]


@given(TEXTS)
@example("1Z㊀'Ⅷ’ 🄉\u0e47")
@settings(max_examples=examples(400))
def test_what_is_indexed_is_what_is_looked_for(text: str) -> None:
    """Each token lies in the table in which a query for it looks."""
    words, pairs, parts = (tokens.split() for tokens in index_tokens(text))
    assert sorted(words + pairs) == sorted(tokenize(text))
    assert all(map(is_unspaced, pairs))
    assert not any(map(is_unspaced, words + parts))


@given(TEXTS)
def test_tokens_are_separated_by_one_space(text: str) -> None:
    """So counting the spaces counts the tokens."""
    assert all(tokens == " ".join(tokens.split()) for tokens in index_tokens(text))


@given(TEXTS)
def test_a_typed_text_finds_itself(text: str) -> None:
    """The tokens of a typed word occur in the text in that order; a single last character is a prefix."""
    indexed = tokenize(text)
    for tokens in query_words(text):
        assert any(_occurs_at(indexed, place, tokens) for place in range(len(indexed)))


def _occurs_at(indexed: list[str], place: int, tokens: tuple[str, ...]) -> bool:
    there = indexed[place : place + len(tokens)]
    if is_single_character(tokens[-1]):
        return there[:-1] == list(tokens[:-1]) and there[-1:] != [] and there[-1].startswith(tokens[-1])
    return there == list(tokens)


@pytest.mark.slow
@given(TEXTS)
@settings(max_examples=examples(400))
def test_tokens_pass_through_the_full_text_table_unchanged(text: str) -> None:
    """Each token is found by its quoted self, and the table contains just these tokens."""
    tokens = tokenize(text)
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE words USING fts5 (text, tokenize = 'ascii', content = '')")
    connection.execute("CREATE VIRTUAL TABLE terms USING fts5vocab (words, row)")
    connection.execute("INSERT INTO words (rowid, text) VALUES (1, ?)", (" ".join(tokens),))
    for token in tokens:
        assert connection.execute("SELECT rowid FROM words (?)", (f'"{token}"',)).fetchall() == [(1,)]
    assert {row[0] for row in connection.execute("SELECT term FROM terms")} == set(tokens)
    connection.close()


@given(TEXTS)
@example("Don't, can't; c++ and userProfile, studies of 12 v2 cafés")
def test_a_text_may_have_every_token_that_it_has(text: str) -> None:
    """The quick look never denies a token; of plain words that are not in the text, it denies most."""
    assert all(may_have_token(text.lower(), token) for token in tokenize(text))
    assert not may_have_token("the lake is big", "migrat")


@pytest.mark.slow
@pytest.mark.parametrize("word", ["x" * 5_000, "数" * 1_500], ids=["letters", "unspaced"])
def test_what_is_large_is_not_remembered(word: str) -> None:
    """A blob in a text must not stay in memory after it was cut."""
    tracemalloc.start()
    # Python keeps some of the small objects that were freed, once.
    assert list(token_spans(f"{word}first"))
    before, _ = tracemalloc.get_traced_memory()
    for number in range(5):
        assert list(token_spans(f"{word}{number}"))
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before < 10_000
