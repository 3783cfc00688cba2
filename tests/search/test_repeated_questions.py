"""A repeated question does not answer itself, however often and in whatever words it was asked."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import memoranda
from memoranda.home.session_db import SessionDB
from memoranda.search.index.postings import Filters
from memoranda.search.query import content_words
from memoranda.search.relevance import judge_prompt
from memoranda.search.repeated_questions import is_asking, own_words
from tests.search.conftest import Call
from tests.search.past import BEGIN, tell

pytestmark = pytest.mark.slow

_DAY = 86_400.0
_QUESTION = "How did we fix the deadlocks of the import worker?"
_ORIGINAL = [
    "Our import workers hang about once a day. All eight are alive but nothing moves.",
    "A deadlock: the worker takes the ledger lock before the queue lock.",
    "And now?",
    "Taking both in one order, queue first, cures it.",
]
_ASKINGS = {
    "same words": (_ORIGINAL, (_QUESTION,)),
    "reworded": (
        _ORIGINAL,
        (
            _QUESTION,
            "What was the fix for the import worker deadlock?",
            "how was the deadlock in the import worker fixed",
            "Do you remember how we fixed the deadlocked import workers?",
        ),
    ),
    "Chinese": (
        ["导入进程每天都会死锁一次。", "两把锁要按同一个顺序拿，先队列后账本。"],
        ("我们是怎么解决导入进程死锁的？", "导入进程的死锁是怎么解决的？", "上次导入进程死锁，我们怎么解决的？"),
    ),
    "Japanese": (
        ["ワーカーのデッドロックが毎日起きます。", "両方のロックを同じ順番で取ると直ります。"],
        ("ワーカーのデッドロックはどう直しましたか？", "ワーカーのデッドロックをどう直しましたか？"),
    ),
}


@pytest.fixture
def db(tmp_path: Path) -> Iterator[SessionDB]:
    with SessionDB(tmp_path / "state.db") as db:
        yield db


def _ask_often(db: SessionDB, questions: tuple[str, ...], reply: str, count: int = 20) -> None:
    for number in range(count):
        tell(db, f"asking-{number}", [questions[number % len(questions)], reply], at=BEGIN + (number + 1) * _DAY)


_REPEATED = {
    "Chinese": "以前的对话里说：两把锁要按同一个顺序拿。",
    "Japanese": "以前の会話では、両方のロックを同じ順番で取ると直りました。",
}


@pytest.mark.parametrize("reply", ["I do not know.", None])
@pytest.mark.parametrize("kind", _ASKINGS)
def test_after_twenty_askings_the_original_comes_first(db: SessionDB, call: Call, kind: str, reply: str | None) -> None:
    """And all the askings together are one result, which says how many there are. They got no reply, or repeat it."""
    reply = reply or _REPEATED.get(kind, "From an earlier conversation: queue first, in one order.")
    original, questions = _ASKINGS[kind]
    tell(db, "original", original)
    tell(db, "other", ["Where is the release checklist?", "In docs/release.md."])
    _ask_often(db, questions, reply)
    for question in questions:
        results = call(query=question)["results"]
        assert results[0]["session_id"] == "original"
        assert [result.get("asked") for result in results if result["session_id"].startswith("asking")] in ([], [20])


_TERSE = {
    "What is the wifi password of the office?": "tulip-42",
    "Which port does the staging database use?": "5544.",
    "Did we choose Kafka or NATS for telemetry?": "NATS.",
    "Wie heißt die Katze von Frau Lindner?": "Minka.",
}


@pytest.mark.parametrize("question", _TERSE)
def test_a_question_is_found_by_its_own_words(db: SessionDB, call: Call, question: str) -> None:
    """However short its answer is, and although others share some of its words."""
    for number, (asked, reply) in enumerate(_TERSE.items()):
        tell(db, asked, [asked, reply], at=BEGIN + number)
    tell(db, "wifi", ["The wifi of the office is slow; we changed the password policy for the office.", "Noted."])
    tell(db, "port", ["The staging database moved to another port, which the firewall blocks.", "I see."])
    tell(db, "kafka", ["Kafka for telemetry is what others choose.", "It is common."])
    tell(db, "katze", ["Frau Lindner hat angerufen, die Katze ist weg.", "Schade."])
    first = call(query=question)["results"][0]
    assert first["session_id"] == question and first["matched_role"] == "assistant"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Node 18.", "Node 22, since last week."),
        ("Bun.", "Deno."),
        ("That depends on the machine, have a look at the package file.", "Node 22."),
    ],
)
def test_another_value_replaces_an_older_answer(db: SessionDB, call: Call, old: str, new: str) -> None:
    """The older one follows: what was true then."""
    question = "Which runtime does the shop run on?"
    tell(db, "old", [question, old])
    tell(db, "new", [question, new], at=BEGIN + _DAY)
    assert [result["session_id"] for result in call(query=question)["results"]] == ["new", "old"]


@pytest.mark.parametrize(
    "reply",
    [
        "I do not see that in this repository.",
        "Sure! What would you like to know about the pods?",
        "I would need the manifest to answer this. Could you paste it?",
        "That depends on the cluster. Have a look at the dashboard or at the manual.",
        "Error: the tool call timed out.",
        "Dazu liegen mir leider keine Informationen vor.",
        "No tengo ese dato en los archivos del proyecto.",
        "その情報は見当たりません。",
        "I went through 14 files and 3 commits; limits are handled outside the repository.",
        "The search returned zero results across 212 notes.",
        "Pods of that size usually get 2 to 4 Gi, depending on the nodes.",
        "Maalesef bu konuda kayıtlarımda bilgi bulunmuyor.",
        "",
    ],
)
def test_a_failed_asking_does_not_cost_the_answer(tmp_path: Path, reply: str) -> None:
    """In whatever language it failed."""
    question = "What memory limit do the render pods have?"
    with SessionDB(tmp_path / "state.db") as db:
        tell(db, "answered", [question, "1.5 Gi since the crash in March."])
        tell(db, "failed", [question, reply], at=BEGIN + _DAY)
        found = db.find(question, Filters(db.scope), limit=3).hits
    assert found[0].session_id == "answered"


@pytest.mark.parametrize(
    ("question", "answer", "keywords"),
    [
        ("Is Willa allergic to walnuts?", "No, not to walnuts; it is sesame she reacts to.", "Willa walnuts allergic"),
        ("Why did the renewal fail in June?", "Port 80 was closed, so it could not be answered.", "renewal fail June"),
        ("Wer führt im Verein das Kassenbuch?", "Nicht mehr Herr Drossel, sondern Anke Pietsch.", "Kassenbuch Verein"),
        ("Onde guardámos o toldo da caravana?", "Na garagem do tio, pendurado no teto.", "toldo caravana"),
        ("Come si chiama il rifugio del lago?", "Rifugio Tre Larici.", "rifugio lago"),
        ("客厅窗帘的尺寸是多少？", "宽三米六，高两米七。", "客厅 窗帘 尺寸"),
        ("What fuel does the hedge cutter take?", "1:50.", "hedge cutter fuel"),
    ],
)
def test_an_answer_that_denies_something_is_an_answer(
    db: SessionDB, call: Call, question: str, answer: str, keywords: str
) -> None:
    """What does not answer is a reply in which the assistant speaks of itself, or one that only says what is usual."""
    tell(db, "answered", [question, answer])
    replies = ("Let me check.", "I'm sorry, I can't know that. Please check the labels.", "Um momento, vou verificar.")
    for number, reply in enumerate((*replies, "The mix is printed on most machines near the cap.")):
        tell(db, f"failed-{number}", [question, reply], at=BEGIN + (number + 1) * _DAY)
    assert call(query=question)["results"][0]["session_id"] == "answered"
    assert call(query=keywords)["results"][0]["session_id"] == "answered"


def test_the_same_answer_to_two_questions_is_an_answer_to_each(db: SessionDB, call: Call) -> None:
    """The second one does not repeat the first."""
    tell(db, "staging", ["Which port does the staging database use?", "5433."])
    tell(db, "production", ["Which port does the production database use?", "5433."], at=BEGIN + _DAY)
    for name in ("staging", "production"):
        assert call(query=f"Which port does the {name} database use?")["results"][0]["session_id"] == name


def test_a_reply_with_another_number_is_an_answer(db: SessionDB, call: Call) -> None:
    """Although an older conversation about the same says all of its other words, and the number is common."""
    for number in range(30):
        tell(db, f"note{number}", [f"Version 1.3 of note {number}, see 3.", "I see."])
    noise = "Usually it is air in the pipes. A pressure of 1 bar on the gauge when cold is not dangerous, 2 bar is."
    tell(db, "noise", ["The boiler makes a knocking noise every morning.", noise])
    tell(db, "asked", ["How much pressure should the boiler gauge show when cold?", "1.3 bar."], at=BEGIN + _DAY)
    assert call(query="boiler gauge pressure cold")["results"][0]["session_id"] == "asked"


def test_keywords_find_the_original_too(db: SessionDB, call: Call) -> None:
    """Though only the askings have all of them in one message."""
    tell(db, "original", _ORIGINAL)
    _ask_often(db, (_QUESTION,), "I do not know.")
    assert call(query="import worker deadlock fix")["results"][0]["session_id"] == "original"
    assert call(query="fix deadlock worker")["results"][0]["session_id"] == "original"


_ANSWERS = {
    "English": (
        ["It hangs once a day.", "The worker takes the ledger lock before the queue lock; take both in one order."],
        "From an earlier conversation: {} Shall I go on?",
        ("Which tests would you add?", "Explain it to a colleague.", "What is dangerous about threads?"),
        ("ledger lock queue lock order", "ledger lock before queue lock", "How was the order of the locks settled?"),
    ),
    "Chinese": (
        ["每天都会卡住一次。", "导入进程先拿账本锁再拿队列锁，两把锁要按同一个顺序拿。"],
        "以前的对话里说：{}",
        ("要加什么测试？", "请给新同事解释一下。", "多线程有什么危险？"),
        ("账本锁 队列锁 顺序", "账本锁和队列锁的顺序"),
    ),
}


def _recall_often(db: SessionDB, kind: str, count: int = 20) -> tuple[str, ...]:
    """Record an original, and later turns that ask other things, search, and answer with the words of the original."""
    original, form, prompts, queries = _ANSWERS[kind]
    tell(db, "original", original)
    for number in range(count):
        query = queries[number % len(queries)]
        call = {"id": "call_1", "function": {"name": "session_search", "arguments": json.dumps({"query": query})}}
        messages = [
            prompts[number % len(prompts)],
            ("assistant", "", {"tool_calls": [call]}),
            ("tool", original[1], {"tool_name": "session_search", "tool_call_id": "call_1"}),
            ("assistant", form.format(original[1])),
        ]
        tell(db, f"recalling-{number}", messages, at=BEGIN + (number + 1) * _DAY)
    return queries


@pytest.mark.parametrize("kind", _ANSWERS)
def test_what_was_recalled_often_comes_before_what_repeats_it(db: SessionDB, call: Call, kind: str) -> None:
    """And the result says how many conversations repeat it."""
    for query in _recall_often(db, kind):
        results = call(query=query)["results"]
        assert (results[0]["session_id"], results[0]["repeated"]) == ("original", 20)
        assert len(results) == 1 or "repeated" not in results[1] or results[1]["matched_role"] == "user"


@pytest.mark.parametrize("kind", _ANSWERS)
def test_what_was_recalled_often_stays_evidence(tmp_path: Path, kind: str) -> None:
    """The words that were repeated do not become common: against a word that never occurs, they weigh the same."""
    shares = []
    for count in (0, 20):
        with SessionDB(tmp_path / f"state{count}.db") as db:
            for number in range(20):
                tell(db, f"other-{number}", [f"Where is checklist {number}?", f"In docs/release-{number}.md."])
            prompt = f"Did we settle this: {_recall_often(db, kind, count)[0]} zebra?"
            (first, *_) = judge_prompt(db, prompt, Filters(db.scope), limit=3).measured
            assert first.hit.session_id == "original" and first.clears
            shares.append(first.share)
    assert shares[0] < 1 and shares[1] > 0.9 * shares[0]


def test_a_recalling_turn_can_be_read(db: SessionDB, call: Call) -> None:
    """With the query and the results, which no search finds."""
    _recall_often(db, "English", 1)
    read = json.dumps(call(session_id="recalling-0"))
    assert "session_search" in read and "take both in one order" in read


def test_by_time_every_repetition_is_listed(db: SessionDB, call: Call) -> None:
    """Nothing becomes unreachable."""
    _recall_often(db, "English", 5)
    assert len(call(query="ledger lock before queue lock", sort="newest", limit=10)["results"]) == 6


def test_answers_that_share_few_words_stay_different_results(db: SessionDB, call: Call) -> None:
    """A common beginning does not make one the repetition of the other."""
    tell(db, "first", ["Port?", "The staging database listens on port 5433, behind the new VPN in Frankfurt."])
    tell(db, "second", ["Size?", "The staging database listens to nothing today; its disk of 40 GB is full."])
    assert {hit["session_id"] for hit in call(query="staging database listens")["results"]} == {"first", "second"}


def test_by_time_every_asking_is_listed(db: SessionDB, call: Call) -> None:
    """Nothing becomes unreachable."""
    _ask_often(db, (_QUESTION,), "I do not know.", 7)
    listed = call(query=_QUESTION, sort="newest", limit=10)["results"]
    assert [result["session_id"] for result in listed] == [f"asking-{number}" for number in reversed(range(7))]


def test_of_askings_alone_the_one_that_was_answered_is_shown(db: SessionDB, call: Call) -> None:
    """With the answer as snippet, not with the question."""
    tell(db, "first", [_QUESTION, "I could not find anything about that."])
    tell(db, "second", [_QUESTION, "Both locks are taken in one order now."], at=BEGIN + _DAY)
    tell(db, "third", [_QUESTION, "I do not know."], at=BEGIN + 2 * _DAY)
    (result,) = call(query=_QUESTION)["results"]
    assert (result["session_id"], result["matched_role"]) == ("second", "assistant")
    assert "taken in one order" in result["snippet"]
    assert next(message for message in result["messages"] if message.get("anchor"))["role"] == "assistant"


def test_a_question_that_was_asked_once_and_answered_at_length_keeps_its_rank(db: SessionDB, call: Call) -> None:
    """It is where the answer was given, although an older conversation has the same words."""
    opening = "In Rome I recommend this Italian restaurant, which locals love for lunches, dinners and parties: "
    answer = "Trattoria Lucia near the river serves handmade tonnarelli, artichokes, lamb and wine from small cellars; "
    more = (
        "book early, ask for the garden, bring cash, dress warmly, expect candles, music, slow courses, fine desserts."
    )
    tell(db, "older", ["The Italian restaurant in Rome was closed, so we ate at the market.", "Noted."])
    tell(db, "answered", ["Can you recommend an Italian restaurant in Rome?", opening + answer + more], at=BEGIN + _DAY)
    found = call(query="Which Italian restaurant in Rome did you recommend?")["results"]
    assert found[0]["session_id"] == "answered"


def test_different_questions_stay_different_results(db: SessionDB, call: Call) -> None:
    """Sharing some words does not make two questions the same."""
    tell(db, "logging", ["How do we configure the logging of the import worker?", "In worker/logging.toml."])
    tell(db, "memory", ["How much memory does the import worker need?", "About two gigabytes."])
    found = {result["session_id"] for result in call(query="import worker")["results"]}
    assert found == {"logging", "memory"}


def test_a_search_for_what_the_user_said_shows_what_the_user_said(db: SessionDB, call: Call) -> None:
    """A role that is asked for is not replaced by the answer."""
    tell(db, "only", [_QUESTION, "Both locks are taken in one order now."])
    (result,) = call(query="deadlocks", role_filter="user")["results"]
    assert result["matched_role"] == "user" and "deadlocks" in result["snippet"]


def test_questions_are_known_by_their_form() -> None:
    """With and without a question mark."""
    for text in [
        "Where is it?",
        "remind me where it is",
        "在哪里",
        "どこですか",
        "何でしたか。",
        "Wo steht das",
        "So, how did that end",
    ]:
        assert is_asking(text)


@pytest.mark.parametrize(
    "text", ["It is in the drawer.", "Take both locks in one order.", "在抽屉里。", "何度も試して直した。"]
)
def test_statements_are_not_questions(text: str) -> None:
    """This is true even for short ones."""
    assert not is_asking(text)


@pytest.mark.parametrize(
    ("reply", "answers"),
    [
        ("I do not know.", False),
        ("我没有找到相关的内容。", False),
        ("The deadlocks of the import worker?", False),
        ("Both locks are taken in one order.", True),
        ("两把锁按同一个顺序拿。", True),
    ],
)
def test_an_answer_says_more_than_its_question(reply: str, answers: bool) -> None:
    """And more than that nothing is known."""
    assert bool(own_words(reply, content_words(_QUESTION))) is answers


def test_what_a_developer_tries_first_prints_the_answer(tmp_path: Path) -> None:
    """A turn is recorded, then searched for: the snippet is not the question."""
    with memoranda.open(tmp_path) as memory:
        with memory.session(source="my-agent") as session, session.turn("How did we fix the deadlock?") as turn:
            turn.done("Take the locks in one order: queue, then ledger.")
        assert memory.search("fixing deadlocks")["results"][0]["snippet"].startswith("Take the locks in one order")


def test_a_search_for_one_word_lists_every_session_that_has_it(db: SessionDB, call: Call) -> None:
    """Also sessions that began with the same question: one word asks nothing."""
    for name in ("first", "second"):
        tell(db, name, ["Why does the lock hang?", "It is taken twice."])
    assert {result["session_id"] for result in call(query="lock")["results"]} == {"first", "second"}


def test_related_words_may_find_repeated_answers_alone(db: SessionDB, call: Call) -> None:
    """The typed words occur only in the output of a tool, which repeats nothing."""
    reply = "The vehicle in the garage needs new tyres before winter, and the workshop should check the brakes as well."
    tell(db, "first", ["please help", reply])
    tell(db, "second", ["please help me", reply], at=BEGIN + _DAY)
    tell(db, "tool", [("tool", "car colour")], at=BEGIN + 2 * _DAY)
    for number in range(30):
        tell(db, f"note{number}", [f"note {number} on gardens"], at=BEGIN + 3 * _DAY + number)
    answer = call(query="What is wrong with my car and its colour?")
    assert {"tool", "first"} <= {result["session_id"] for result in answer["results"]}
