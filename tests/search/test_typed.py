"""What people and models really type: every input finds what a person expects, and none is an error."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memoranda.search.guidance import NOT_FOUND
from memoranda.search.search import NOTHING_TYPED
from tests.examples import examples
from tests.search.library import Library

pytestmark = pytest.mark.slow

TEXTS = {
    "deploy": "We ship with docker. The deployment starts from the main branch; how to deploy is in the README.",
    "phrase": "That is the exact phrase we agreed on.",
    "python": "The parser is written in python.",
    "java": "We compared python with java.",
    "hello": "Hello, world! And then what: the build is not working.",
    "chat": "The chat-send endpoint of P2.2 fails in my-app.config.ts, see snake_case_name and __init__.",
    "foo": "foo and baz-qux with foo-bar, run with --flag. foo:bar was TODO: fix it, content:secret",
    "letters": "Options a, b and c: a^2, a&b, a=b, a;b, a|b, a,b, a.b. and [x].",
    "odd": "((unbalanced {curly} ^start +plus C++ *suffix, unterminated: say hi there",
    "dont": "I don't know what's the plan.",
    "paths": "See src/main.py, /etc/hosts, ~/x and https://example.com/a?b=1, or write foo@bar.com about #1234.",
    "shell": "echo $HOME is 50% <tag> `cmd` !important",
    "sql": "it's; DROP TABLE messages;-- and 1=1 \\ backslash",
    "numbers": "v1.2.3-rc.1 came on 2026-05-04, pi is 3.14, e.g. this",
    "zh": "今天完成了数据库迁移，使用docker部署了。部署_v2，数据-库",
    "unicode": "“smart quotes” café naïve, emoji 🎉 party 👨‍👩‍👧 fullwidth zero tab sep newline Q0",
    "joined": "fooANDbar is one word",
    "only_foo": "Nothing but foo here.",
}
NOWHERE = "nowhere"
# What is typed, a session that must be found (None: there is nothing to look for), and one that must not.
TYPED: list[tuple[str, str | None, str | None]] = [
    ("docker deployment", "deploy", "python"),
    ('"exact phrase"', "phrase", None),
    ("docker OR kubernetes", "deploy", None),
    ("python NOT java", "python", "java"),
    ("deploy*", "deploy", None),
    ("hello AND", "hello", None),
    ("OR world", "hello", None),
    ("NOT foo", "only_foo", None),
    ("and then what", "hello", None),
    ("not working", "hello", None),
    ("is it working or not", "hello", None),
    ("hello AND AND world", "hello", None),
    ("a OR OR b", "letters", None),
    ("AND", None, None),
    ("OR NOT", None, None),
    ("NOT", None, None),
    ("chat-send", "chat", None),
    ("P2.2", "chat", None),
    ("my-app.config.ts", "chat", None),
    ("snake_case_name", "chat", None),
    ("__init__", "chat", None),
    ("-foo", "only_foo", None),
    ("foo -bar", "only_foo", "foo"),
    ("--flag", "foo", None),
    ("a-", "letters", None),
    ("foo-", "only_foo", None),
    ("foo:bar", "foo", None),
    ("TODO: fix", "foo", None),
    ("content:secret", "foo", None),
    ("(a OR b) AND c", "letters", None),
    ("((unbalanced", "odd", None),
    ("{curly}", "odd", None),
    ("^start", "odd", None),
    ("a^2", "letters", None),
    ("+plus", "odd", None),
    ("C++", "odd", None),
    ("*", None, None),
    ("***", None, None),
    ("* foo", "only_foo", None),
    ("foo***", "only_foo", None),
    ("de*ploy", "deploy", None),
    ("*suffix", "odd", None),
    ('"unterminated', "odd", None),
    ('say "hi" "there', "odd", None),
    ('""', None, None),
    ('"""', None, None),
    ('"a""b"', "letters", None),
    ('"foo-bar" baz-qux', "foo", None),
    ('"deploy"*', "deploy", None),
    ("NEAR(a b, 5)", "letters", None),
    ("NEAR(a b)", "letters", None),
    ("don't", "dont", None),
    ("what's the plan", "dont", None),
    ("how do I deploy?", "deploy", None),
    ("Hello, world!", "hello", None),
    ("src/main.py", "paths", None),
    ("/etc/hosts", "paths", None),
    ("https://example.com/a?b=1", "paths", None),
    ("foo@bar.com", "paths", None),
    ("#1234", "paths", None),
    ("$HOME", "shell", None),
    ("50%", "shell", None),
    ("a&b", "letters", None),
    ("a|b", "letters", None),
    ("a=b", "letters", None),
    ("<tag>", "shell", None),
    ("[x]", "letters", None),
    ("a;b", "letters", None),
    ("~/x", "paths", None),
    ("`cmd`", "shell", None),
    ("it's; DROP TABLE messages;--", "sql", None),
    ("' OR 1=1 --", "sql", None),
    ("\\ backslash", "sql", None),
    ("v1.2.3-rc.1", "numbers", None),
    ("2026-05-04", "numbers", None),
    ("3.14", "numbers", None),
    ("...", None, None),
    ("---", None, None),
    ("a.b.", "letters", None),
    ("e.g. this", "numbers", None),
    ("数据库", "zh", None),
    ("数据库迁移", "zh", None),
    ("数据-库", "zh", None),
    ("部署_v2", "zh", None),
    ("使用docker部署", "zh", None),
    ("docker 部署", "zh", None),
    ("“smart quotes”", "unicode", None),
    ("café naïve", "unicode", None),
    ("emoji 🎉 party", "unicode", None),
    ("🎉", "unicode", None),
    ("👨‍👩‍👧", "unicode", None),
    ("ｆｕｌｌｗｉｄｔｈ", "unicode", None),
    ("\u200bzero", "unicode", None),
    ("tab\tsep\nnewline", "unicode", None),
    ("\0Q0\0 x", "unicode", None),
    ("\0", None, None),
    ("AND\tfoo", "only_foo", None),
    ("fooANDbar", "joined", "foo"),
    ("foo and bar", "foo", None),
    ("foo And bar", "foo", None),
    ("foo NOT", "only_foo", None),
    ("foo not", "only_foo", None),
    ("!important", "shell", None),
    ("a,b", "letters", None),
    ("a, b", "letters", None),
    ("(", None, None),
    (")", None, None),
    ("x" * 3000, NOWHERE, None),
    ("a-" * 1500, "letters", None),
    ('"' * 2001, None, None),
    ("a b " * 600, "letters", None),
]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    library = Library(tmp_path_factory.mktemp("typed"), {name: [text] for name, text in TEXTS.items()})
    yield library
    library.close()


def test_all_the_inputs_are_here() -> None:
    """Hard ones included."""
    assert len(TYPED) == 111


def test_an_input_finds_what_a_person_expects(library: Library) -> None:
    """Punctuation, operators and scripts of every kind lead to the one conversation that has it."""
    for typed, found, not_found in TYPED:
        answer = library.find(typed)
        names = [hit.session_id for hit in answer.hits]
        if found is None or found is NOWHERE:
            assert (names, answer.how) == ([], NOT_FOUND if found else NOTHING_TYPED)
        else:
            assert found in names
            assert not_found not in names


def test_messages_are_found_by_the_same_inputs(library: Library) -> None:
    """The message level answers whenever the conversation level does."""
    for typed in [typed for typed, _, _ in TYPED]:
        found = list(library.search.messages(typed, library.everyone, limit=50).ids)
        assert len(found) == len(set(found))
        assert bool(found) == bool(library.find(typed).hits)


@given(
    text=st.text(max_size=60)
    | st.lists(st.sampled_from(["AND", "OR", "NOT", "(", ")", '"', "*", "-", "foo", "数据", "a", "the", "de*"])).map(
        " ".join
    )
    | st.lists(st.sampled_from([typed for typed, _, _ in TYPED[:107]]), max_size=3).map("".join)
)
@settings(max_examples=examples(4_000))
def test_no_text_is_an_error(library: Library, text: str) -> None:
    """Whatever is typed, the answer is an answer."""
    answer = library.find(text, limit=3)
    assert len(answer.hits) <= 3
    assert len({hit.conversation_id for hit in answer.hits}) == len(answer.hits)


def test_an_excluded_phrase_excludes_only_what_has_it_however_often_it_was_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every message with its words is compared, in as many steps as it takes; one with the words apart is found."""
    monkeypatch.setattr("memoranda.search.index.reader._COMPARED_AT_ONCE", 3)
    with closing(Library(tmp_path)) as library:
        library.add("other", "A zebra walks near the lake, which is big.")
        for number in range(8):
            library.add(f"lake{number}", "The zebra walks near the big lake alone.")
        library.add("barn", "The zebra sleeps in the barn.")
        found = library.find('zebra alone -"big lake"')
    assert {hit.session_id for hit in found.hits} == {"other", "barn"}
    assert found.note is None
