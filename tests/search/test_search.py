"""Searching real stores: stages, folding, filters, and the probes of everyday use."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from memoranda.memory.record.scope import Scope
from memoranda.search.guidance import ALL_WORDS, ANY_WORD, AS_TYPED, NEARBY, NOT_EXACT, NOT_FOUND, WITHOUT_SMALL
from memoranda.search.index.postings import Filters
from memoranda.search.ranking import Sort
from memoranda.search.search import NOT_ALL
from tests.search.library import DAY, NOW, Library


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    library = Library(tmp_path)
    yield library
    library.close()


def test_everything_in_one_message_comes_first(library: Library) -> None:
    """Where all words are together in one message, fewer words are not shown."""
    library.add("both", "The docker registry is full.")
    library.add("one", "We use docker.")
    found = library.find("docker registry")
    assert [hit.session_id for hit in found.hits] == ["both"]
    assert found.how == ALL_WORDS
    assert found.hits[0].message_id == library.ids["both"][0]


def test_words_in_neighbouring_messages_are_a_full_match(library: Library) -> None:
    """A question and its answer count together."""
    library.add("spread", "What about the helmfile?", {"role": "assistant", "content": "Rename the parrot release."})
    library.add("one", "A parrot.")
    found = library.find("helmfile parrot")
    assert [hit.session_id for hit in found.hits] == ["spread"]
    assert found.how == NEARBY


def test_fewer_words_are_better_than_nothing(library: Library) -> None:
    """The answer says which words were found and which occur nowhere."""
    library.add("one", "The parrot sleeps.")
    found = library.find("parrot zeppelin")
    assert [hit.session_id for hit in found.hits] == ["one"]
    assert found.how == "some words: parrot"
    assert found.missing == ("zeppelin",)
    assert found.terms == ("parrot", "zeppelin")


def test_words_that_never_occur_find_nothing(library: Library) -> None:
    """Not even other matches are returned for them."""
    library.add("one", "The parrot sleeps.")
    found = library.find("zeppelin hangar")
    assert (found.hits, found.how, found.matched_sessions) == ((), NOT_FOUND, 0)


def test_a_long_question_is_not_answered_by_one_common_word(library: Library) -> None:
    """A tiny share of a question is noise."""
    for number in range(60):
        library.add(f"s{number}", "The time is now.", "Another message about time.")
    found = library.find("What time does the zeppelin hangar in Friedrichshafen open its museum wing for pensioners?")
    assert found.hits == ()


def test_alternatives_prefer_who_has_both(library: Library) -> None:
    """OR finds any, and both before one."""
    library.add("one", "docker only")
    library.add("both", "docker and kubernetes")
    found = library.find("docker OR kubernetes OR nomad")
    assert [hit.session_id for hit in found.hits] == ["both", "one"]
    assert found.how == ANY_WORD


def test_grouping_changes_what_is_found(library: Library) -> None:
    """(apple OR banana) AND cherry needs the cherry."""
    library.add("apple", "An apple.")
    library.add("both", "An apple and a cherry.")
    assert library.names("(apple OR banana) AND cherry") == ["both"]
    assert set(library.names("apple OR (banana AND cherry)")) == {"apple", "both"}


def test_what_is_excluded_stays_excluded(library: Library) -> None:
    """NOT leaves messages out, in the strict and in the relaxed stage, in any script."""
    library.add("both", "广西的桂林 python java")
    library.add("one", "广西 python")
    assert library.names("广西 NOT 桂林") == ["one"]
    assert library.names("python -java") == ["one"]
    assert library.names("what about python and zeppelins -java") == ["one"]
    assert library.names("python NOT python") == []


def test_a_phrase_must_occur_unless_it_occurs_nowhere(library: Library) -> None:
    """Quoted words must be side by side; if they never are, they are searched as words, and the answer says so."""
    library.add("apart", "a deploy that was green and blue")
    assert library.names('"blue green" deploy') == ["apart"]
    assert library.find('"blue green" deploy').how.startswith(NOT_EXACT)
    library.add("phrase", "a blue green deploy")
    found = library.find('"blue green" deploy')
    assert [hit.session_id for hit in found.hits] == ["phrase"]
    assert found.how == AS_TYPED
    assert library.names('what did we say about the "blue green" deploy yesterday') == ["phrase"]


@pytest.mark.parametrize("query", ['"blue green deploy" mondays', 'where did we say "blue green deploy" on mondays'])
def test_a_conversation_is_shown_by_the_message_with_the_quoted_phrase(library: Library, query: str) -> None:
    """Also if another message of it has more of the other words, and if the order is by time."""
    long = "it was a blue green deploy " + "and so on " * 100
    _, phrase, _, _ = library.add("s", "mondays", long, "mondays", "where did we say mondays, on mondays")
    for sort in (None, "newest", "oldest"):
        assert [hit.message_id for hit in library.find(query, sort=sort).hits] == [phrase]


@pytest.mark.parametrize(("sort", "note"), [(None, NOT_ALL), ("newest", NOT_ALL), ("oldest", None)])
def test_a_search_says_that_only_the_newest_matches_were_compared(
    library: Library, sort: str | None, note: str | None
) -> None:
    """Many conversations have the phrase, and together more messages than are read."""
    for number in range(31):
        library.add(f"s{number}", *[f"a blue green deploy {place}" for place in range(10)])
    found = library.find('"blue green deploy"', sort=sort)
    assert found.note == note


def test_a_question_finds_its_answer(library: Library) -> None:
    """Small words do not matter, and the answer says so."""
    library.add("deadlock", "The payment worker had a deadlock.", "We fixed it by ordering the locks.")
    library.add("other", "How did the dinner go? We had fish.")
    found = library.find("How did we fix the deadlock in the payment worker?")
    assert found.hits[0].session_id == "deadlock"
    assert found.how == WITHOUT_SMALL


@pytest.mark.slow
@pytest.mark.parametrize(
    ("typed", "text"),
    [
        ("what's the zanzibar rollout?", "The zanzibar rollout is on Monday."),
        ("zanzibar, rollout", "The zanzibar rollout is on Monday."),
        ("ops/zanzibar.yaml", "See ops/zanzibar.yaml for it."),
        ("https://zanzibar.example/x?y=1", "Open https://zanzibar.example/x?y=1 please."),
        ("quokka@example.com", "Write to quokka@example.com now."),
        ("issue #48151", "That is issue #48151."),
        ("$ZANZIBAR_TOKEN", "export ZANZIBAR_TOKEN=abc"),
        ("zanzibar -word", "zanzibar alone"),
        ("migrate the ledger", "We migrated the ledger."),
        ("invoice", "All invoices are paid."),
        ("profile loader", "The getUserProfile loader broke."),
        ("When did we move the ledger to Postgres?", "The ledger moved to Postgres in March."),
        ("docker", "我们使用docker部署服务"),
        ("数据库迁移？", "昨天完成了数据库迁移。"),
        ("怎么做数据库迁移", "数据库迁移要先备份。"),
        ("helmfile 鹦鹉", "helmfile 里的鹦鹉发布"),
        ("数据库*", "数据库备份完成"),
        ('"数据库 备份"', "数据库备份完成"),
        ("鹦鹉", "helmfile 里的鹦鹉发布"),
        ("鹦", "helmfile 里的鹦鹉发布"),
        ("データベース移行", "昨日データベース移行をした"),
        ("데이터베이스", "어제 데이터베이스 이전"),
        ("ทดสอบ", "วันนี้ทดสอบระบบใหม่"),
    ],
)
def test_probes_of_everyday_use(library: Library, typed: str, text: str) -> None:
    """Punctuation, word forms, questions and every script find the planted message first."""
    for number in range(5):
        library.add(f"noise{number}", "Lunch was good, the weather too.", "天气很好", "We discussed the word list.")
    library.add("planted", "Good morning.", text, "Thank you.")
    hit = library.find(typed).hits[0]
    assert (hit.session_id, hit.message_id) == ("planted", library.ids["planted"][1])


def test_arguments_of_tools_are_found(library: Library) -> None:
    """What an assistant passed to a tool can be found, in any script."""
    call = {"id": "1", "function": {"name": "terminal", "arguments": '{"command": "数据库备份 now"}'}}
    library.add("call", {"role": "assistant", "content": None, "tool_calls": [call]})
    assert library.names("数据库备份") == ["call"]


def test_a_noisy_session_does_not_hide_the_other(library: Library) -> None:
    """Four hundred mentions in one session leave room for the one that answers."""
    library.add("noisy", *(f"zebra log line {number}" for number in range(400)))
    library.add("quiet", "The zebra crossing is repainted in June.")
    assert set(library.names("zebra")) == {"noisy", "quiet"}
    assert library.names("zebra crossing") == ["quiet"]


@pytest.mark.slow
def test_the_newest_matches_do_not_hide_the_older_ones(library: Library) -> None:
    """Thousands of newer mentions in one session leave room for an older conversation."""
    library.add("quiet", "The zebra crossing is repainted in June.", time=NOW - 300 * DAY)
    library.add("noisy", *(f"zebra log line {number}" for number in range(3_500)))
    library.index.catch_up()
    for typed in ("zebra", "what about the zebra?", "zebra OR lion"):
        assert set(library.names(typed)) == {"noisy", "quiet"}
    assert library.names("zebra", sort="oldest") == ["quiet", "noisy"]


@pytest.mark.slow
def test_scheduled_jobs_rank_below_people(library: Library) -> None:
    """A hundred runs of a job do not push a conversation down or out."""
    library.add("person", "Somebody long ago asked, among many other things, about the zebra report and what it needs.")
    for number in range(120):
        library.add(f"job{number}", "zebra report", source="cron", time=NOW - DAY)
    assert library.names("zebra report")[0] == "person"
    assert len(library.names("zebra report")) == 10
    assert library.names("what about the zebra report?")[0] == "person"


def test_a_compression_chain_is_one_conversation(library: Library) -> None:
    """Sessions of one conversation are one hit, with all their matches."""
    library.add("root", "zebra one", "zebra two")
    library.store.sessions.end_session("root", "compression")
    library.store.sessions.create_session("next", "cli", parent_session_id="root")
    library.store.messages.append_message("next", "user", "zebra three")
    (hit,) = library.find("zebra").hits
    assert (hit.conversation_id, hit.matches) == ("root", 3)


def test_titles_count(library: Library) -> None:
    """Part of a title finds its conversation, and so says the role."""
    library.add("titled", "Hello.", title="Zanzibar rollout plan")
    (hit,) = library.find("zanzibar rollout").hits
    assert (hit.session_id, hit.role, hit.message_id, hit.matches) == ("titled", "session_title", None, 0)
    assert library.names("zanzibar", filters=Filters(Scope.everyone(), titles=False)) == []


def test_hidden_messages_are_not_found(library: Library) -> None:
    """Messages in the model's context are omitted; the rest of the conversation is not."""
    first, second = library.add("now", "The zebra is striped.", "The zebra eats.")
    assert library.names("zebra", filters=replace(library.everyone, without=frozenset({first, second}))) == []
    (hit,) = library.find("zebra", filters=replace(library.everyone, without=frozenset({second}))).hits
    assert hit.message_id == first


def test_sorting_by_time(library: Library) -> None:
    """Newest and oldest order what matches strictly by the time of the match."""
    library.add("old", "zebra", time=NOW - 9 * DAY)
    library.add("new", "a zebra among many other words that make it long", time=NOW - DAY)
    library.add("middle", "zebra zebra", time=NOW - 5 * DAY)
    library.add("none", "lion", time=NOW)
    assert library.names("zebra", sort="newest") == ["new", "middle", "old"]
    assert library.names("zebra", sort="oldest") == ["old", "middle", "new"]
    assert library.names("zebra OR lion", sort="newest") == ["none", "new", "middle", "old"]
    assert library.names("what about the zebra?", sort="oldest") == ["old", "middle", "new"]


def test_filters_apply_in_every_stage(library: Library) -> None:
    """Source, time and role limit strict and relaxed searches alike."""
    library.add("cli", "zebra crossing", time=NOW - 9 * DAY)
    library.add("chat", "zebra crossing", source="telegram", time=NOW - DAY)
    for typed in ("zebra crossing", "where is the zebra crossing?", "zebra zeppelin", "zebra OR lion"):
        assert library.names(typed, filters=Filters(Scope.everyone()).with_values("source", {"cli"})) == ["cli"]
        assert library.names(typed, filters=Filters(Scope.everyone(), since=NOW - 2 * DAY)) == ["chat"]
        assert library.names(typed, filters=Filters(Scope.everyone(), roles=frozenset({"assistant"}))) == []
        assert library.names(typed, filters=Filters(Scope.of("somebody"))) == []


def test_the_signals_explain_the_score(library: Library) -> None:
    """Every part of a score has a name."""
    library.add("one", "zebra crossing", "and the crossing again")
    (hit,) = library.find("the zebra crossing").hits
    assert {"message", "neighbours", "conversation", "coverage"} <= set(hit.signals)
    assert hit.score > 0


def test_messages_by_page_and_by_time(library: Library) -> None:
    """At the message level a page follows the other, and a negative limit means all."""
    ids = library.add("one", *(f"zebra number {number}" for number in range(10)))
    everyone = library.everyone
    found = list(library.search.messages("zebra", everyone, limit=4).ids) + list(
        library.search.messages("zebra", everyone, limit=20, offset=4).ids
    )
    assert sorted(found) == ids
    assert list(library.search.messages("zebra", everyone, limit=-1, sort="oldest").ids) == ids
    assert list(library.search.messages("zebra", everyone, limit=2, sort="newest").ids) == ids[:-3:-1]
    assert list(library.search.messages("...", everyone, limit=5).ids) == []
    assert list(library.search.messages("zebra zeppelin", everyone, limit=-1).ids) != []


def test_a_question_finds_messages_that_have_only_some_of_its_words(library: Library) -> None:
    """Even if one message has all of them, the others follow; keywords find only what has all of them."""
    ids = library.add("one", "the zebra escaped from the zoo", "the zebra is back", "the zoo is closed")
    assert (
        list(library.search.messages("When did the zebra escape from the zoo?", library.everyone, limit=9).ids) == ids
    )
    assert list(library.search.messages("zebra zoo", library.everyone, limit=9).ids) == ids[:1]


def test_what_a_sentence_quotes_is_meant_literally_among_messages_too(library: Library) -> None:
    """The words around it need not all occur."""
    ids = library.add("one", "the great zebra escaped", "a zebra that is great", "the great zebra sleeps")
    found = library.search.messages('Where did the "great zebra" escape to yesterday?', library.everyone, limit=9)
    assert list(found.ids) == [ids[0], ids[2]]
    assert list(library.search.messages('"great zebra" yesterday', library.everyone, limit=9).ids) == []


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("userProfile", ["camel"]),
        ("UserProfile", ["camel"]),
        ("HttpRequest", ["camel"]),
        ("loadUser", ["camel", "snake"]),
        ("loadUserSettings", ["snake"]),
        ("load_user", ["camel", "snake"]),
        ("3f2a9bc", ["hash"]),
        ("profileUser", []),
    ],
)
def test_names_in_code_are_found_by_their_parts(library: Library, typed: str, found: list[str]) -> None:
    """Several humps of a longer name, the same name in snake_case, and a hash by its beginning."""
    library.add("camel", "Please look at loadUserProfile and XMLHttpRequest.")
    library.add("snake", "It is load_user_settings there.")
    library.add("hash", "Fixed in 3f2a9bc1d0e4.")
    answer = library.find(typed)
    assert sorted(hit.session_id for hit in answer.hits) == found
    assert not found or answer.how == "all words"


def _recorded_backwards(library: Library, said: str) -> None:
    """Sixty conversations with fifty messages each, of which the newest was recorded first."""
    for day in range(60):
        library.add(f"day{day:02}", *(f"{said} {number}" for number in range(50)), time=NOW - (day + 1) * DAY)
    library.index.catch_up()


@pytest.mark.slow
@pytest.mark.parametrize("question", ["server config", "server", "how did we deploy the server config?"])
def test_the_newest_is_what_was_said_last_not_what_was_recorded_last(library: Library, question: str) -> None:
    """History that was imported comes in any order."""
    _recorded_backwards(library, "server config deploy step")
    newest = [f"day{day:02}" for day in range(5)]
    assert library.names(question, sort="newest", limit=5) == newest
    assert library.names(question, sort="newest", limit=30)[:5] == newest
    found = list(library.search.messages(question, library.everyone, limit=3, sort="newest", now=NOW).ids)
    assert found == library.ids["day00"][:-4:-1]


@pytest.mark.slow
def test_the_oldest_is_what_was_said_first(library: Library) -> None:
    """However much was said since."""
    for day in range(80):
        said = (f"server config deploy step {number}" for number in range(50))
        library.add(f"day{day:02}", *said, time=NOW - (90 - day) * DAY)
    library.index.catch_up()
    for question in ("server config", "server", "how did we deploy the server config?"):
        assert library.names(question, sort="oldest", limit=2) == ["day00", "day01"]


@pytest.mark.slow
@pytest.mark.parametrize("question", ["quail", "quail service", "the quail service of the zeppelin"])
@pytest.mark.parametrize("noisy", [1, 4])
def test_no_session_floods_the_others(library: Library, question: str, noisy: int) -> None:
    """An older conversation is found despite thousands of newer matches."""
    library.add(
        "answer", "how do I restart the quail service?", "restart the quail service by quailctl", time=NOW - 60 * DAY
    )
    for number in range(noisy):
        lines = ({"role": "tool", "content": f"quail service log line {line}"} for line in range(4_000 // noisy))
        library.add(f"noisy{number}", *lines, time=NOW - 20 * DAY)
    for number in range(12):
        library.add(f"passing{number}", "by the way the quail service was mentioned today", time=NOW - DAY)
    library.index.catch_up()
    found = library.find(question, limit=20)
    assert "answer" in [hit.session_id for hit in found.hits]
    assert found.matched_sessions == 13 + noisy
    assert found.note is None


@pytest.mark.slow
def test_scheduled_jobs_rank_below_people_when_both_sources_are_named(library: Library) -> None:
    """They cannot crowd them out."""
    library.add("person", "the quail service", time=NOW - 60 * DAY)
    for number in range(60):
        library.add(f"job{number}", *["quail service check"] * 20, source="cron", time=NOW - DAY)
    filters = library.everyone.with_values("source", {"cli", "cron"})
    assert library.names("quail service", filters=filters)[0] == "person"
    only = library.everyone.with_values("source", {"cron"})
    assert len(library.names("quail service", filters=only)) == 10


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ('"docker部署"', ["said"]),
        ('"数据库迁移"', ["said"]),
        ('"数据库迁"', ["said"]),
        ('"部署 数据"', []),
        ('"数据库迁移" NOT docker', []),
    ],
)
def test_a_phrase_without_spaces_is_found_in_its_order(library: Library, typed: str, found: list[str]) -> None:
    """Not wherever its pairs of characters happen to be."""
    library.add("said", "我们docker部署了，数据库迁移完成")
    library.add("scattered", "docker 很慢。迁移数据之前先备份，据库房的人说，库迁就移走，今天部署失败")
    library.add("people", "人人都好")
    answer = library.find(typed)
    exactly = [hit.session_id for hit in answer.hits] if answer.how == "exactly as typed" else []
    assert exactly == found


@pytest.mark.slow
@pytest.mark.parametrize("sort", [None, "newest", "oldest"])
@pytest.mark.parametrize("text", ["heron sighting", "heron", "which heron sighting was it?"])
def test_the_pages_of_messages_are_all_of_them_once(library: Library, sort: Sort | None, text: str) -> None:
    """However many there are; a message is on one page, and on which one does not depend on how one asks."""
    for day in range(20):
        library.add(f"day{day}", *(f"heron sighting {number}" for number in range(100)), time=NOW - (day + 1) * DAY)
    library.index.catch_up()
    whole = list(library.search.messages(text, library.everyone, limit=-1, sort=sort, now=NOW).ids)
    paged: list[int] = []
    for offset in range(0, 2_100, 150):
        paged += list(library.search.messages(text, library.everyone, limit=150, offset=offset, sort=sort, now=NOW).ids)
    assert paged == whole
    assert len(set(paged)) == 2_000
