"""A fact that was stated again comes with its newest statement first, and the older one with its date."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import memoranda
from memoranda.home.session_db import SessionDB
from memoranda.search.index.postings import Filters
from memoranda.search.relevance import CONFIDENCES, judge_prompt
from tests.search.conftest import Call
from tests.search.past import BEGIN, tell

pytestmark = pytest.mark.slow

_DAY = 86_400.0
_CHANGES = {
    "Which Node version does the shop front run on?": (
        "The shop front runs on Node 18. Write the Dockerfile for it.",
        "We moved the shop front from Node 18 to Node 22 today.",
    ),
    "Which Node version does the shop run on?": (
        "The shop runs on Node 18.",
        "We moved the shop from Node 18 to Node 22 today.",
    ),
    "Who is my manager?": ("My manager is Ulrike, she signs the travel requests.", "Bashir is my manager."),
    "How many replicas do the thumbnail workers run with?": (
        "The thumbnail workers run with 4 replicas. What memory do we need?",
        "The thumbnail workers run with 10 replicas. What memory do we need?",
    ),
    "Which editor do I use?": (
        "Format this for my editor, I use Sublime for everything.",
        "I switched to Helix as my editor last month, how do I split a window?",
    ),
    "Which are my office days?": (
        "My office days are Tuesday and Wednesday; plan the gym around that.",
        "My office days have changed to Monday and Thursday. Plan the gym again.",
    ),
    "Which bank has my business account?": (
        "My business account is with Barclays, what is their limit for transfers?",
        "The business account is now with Starling, can I export the statements?",
    ),
    "Who is my landlord?": ("My landlord is called Petra.", "I have a new landlord, Ben."),
    "Who is my sister's landlord?": (
        "My sister Mira's landlord is called Tomasz.",
        "Mira's landlord is now called Ben.",
    ),
    "Womit heizen wir?": ("Wir heizen mit Gas, was kostet das?", "Wir heizen mit einer Wärmepumpe, was kostet das?"),
    "私の出社日はいつですか？": ("私の出社日は月曜と水曜です。", "私の出社日は木曜だけです。"),
}


@pytest.fixture
def db(tmp_path: Path) -> Iterator[SessionDB]:
    with SessionDB(tmp_path / "state.db") as db:
        yield db


@pytest.mark.parametrize("question", _CHANGES)
def test_the_newer_statement_comes_first(db: SessionDB, call: Call, question: str) -> None:
    """With and without a word such as "moved", in any language; the older one follows."""
    old, new = _CHANGES[question]
    tell(db, "old", [old, "Noted."])
    tell(db, "new", [new, "I see."], at=BEGIN + _DAY)
    tell(db, "other", ["Please water the plants.", "Done."], at=BEGIN + 2 * _DAY)
    assert [result["session_id"] for result in call(query=question)["results"]][:2] == ["new", "old"]


def test_a_question_about_the_past_gets_the_best_match(db: SessionDB, call: Call) -> None:
    """What was true then is what it asks for."""
    tell(db, "old", ["My manager is Ulrike.", "Noted."])
    tell(db, "new", ["My manager is Bashir, he came from the Lisbon office.", "I see."], at=BEGIN + _DAY)
    assert call(query="Who was my manager?")["results"][0]["session_id"] == "old"


def test_a_newer_message_about_something_else_stays_behind(db: SessionDB, call: Call) -> None:
    """One common word does not make it a statement of the same."""
    tell(db, "fact", ["The manager of the heron project is Ulrike.", "Noted."])
    tell(db, "noise", ["The project needs a licence file before Friday.", "I see."], at=BEGIN + _DAY)
    assert call(query="Who is the manager of the heron project?")["results"][0]["session_id"] == "fact"


@pytest.mark.parametrize(
    "question, fact, other",
    [
        (
            "Where is the spare key of the archive?",
            "The spare key of the archive is with Mrs. Lindqvist.",
            "The spare key of the bakery is in the blue tin behind the oven.",
        ),
        (
            "Which port does the ingest proxy listen on?",
            "The ingest proxy listens on 8443.",
            "We moved the billing proxy, it listens on 9100 now.",
        ),
        (
            "Quel est le code du garage ?",
            "Le code du garage est 3391, note-le pour les voisins.",
            "Le code du portail est désormais 8127, note-le pour les voisins.",
        ),
    ],
)
def test_a_newer_statement_about_another_thing_stays_behind(
    db: SessionDB, call: Call, question: str, fact: str, other: str
) -> None:
    """It has most of the words, and another one in the place of what the question names."""
    tell(db, "fact", [fact, "Noted."])
    tell(db, "other", [other, "Noted."], at=BEGIN + _DAY)
    assert call(query=question)["results"][0]["session_id"] == "fact"


_LANDLORDS = {
    "my": "My landlord is called Petra.",
    "sister": "My sister Mira's landlord is called Tomasz.",
    "brother": "My brother's landlord is called Ben.",
    "meiner": "Mein Vermieter heißt Jens.",
    "Schwester": "Der Vermieter meiner Schwester heißt Paul.",
}


@pytest.mark.parametrize(
    "question, asked, other",
    [
        ("Who is my sister's landlord?", "sister", "my"),
        ("Who is Mira's landlord?", "sister", "my"),
        ("Who is my landlord?", "my", "sister"),
        ("Who is my sister's landlord?", "sister", "brother"),
        ("Who is Mira's landlord?", "sister", "brother"),
        ("Wie heißt der Vermieter meiner Schwester?", "Schwester", "meiner"),
        ("Wie heißt mein Vermieter?", "meiner", "Schwester"),
    ],
)
@pytest.mark.parametrize("days", [1, -1])
def test_what_belongs_to_another_stays_behind(
    db: SessionDB, call: Call, question: str, asked: str, other: str, days: int
) -> None:
    """Whichever was said later."""
    tell(db, asked, [_LANDLORDS[asked], "Noted."])
    tell(db, other, [_LANDLORDS[other], "Noted."], at=BEGIN + days * _DAY)
    assert call(query=question)["results"][0]["session_id"] == asked


_ASKED = "Which port does the billing service listen on?"


@pytest.mark.parametrize(
    "said, first",
    [
        ("The billing service moved to port 9443.", "said"),
        ("The billing service's port is 9443.", "said"),
        ("Write the notes on the billing service and its port labels.", "answered"),
    ],
)
@pytest.mark.parametrize("failed", [["I don't know that."], ["I don't know that.", "Let me search."]])
def test_a_changed_fact_replaces_what_was_answered_before(
    db: SessionDB, call: Call, said: str, first: str, failed: list[str]
) -> None:
    """If it says that something changed, or gives another number; failed askings do not matter."""
    tell(db, "answered", [_ASKED, "It listens on port 8443."])
    tell(db, "said", [said, "Noted."], at=BEGIN + _DAY)
    for number, reply in enumerate(failed):
        tell(db, f"failed{number}", [_ASKED, reply], at=BEGIN + (2 + number) * _DAY)
    assert call(query=_ASKED)["results"][0]["session_id"] == first


@pytest.mark.parametrize(
    "keywords, old, new",
    [
        (
            "intranet deploy branch",
            "Deploys of the intranet go out from the develop branch.",
            "Deploys of the intranet no longer go out from develop, it's main.",
        ),
        (
            "alpacas vet",
            "Our vet for the alpacas is Dr. Brannigan.",
            "Dr. Brannigan retired, the alpacas see Dr. Mwangi.",
        ),
    ],
)
def test_keywords_list_a_newer_statement_that_lacks_one_of_them(
    db: SessionDB, call: Call, keywords: str, old: str, new: str
) -> None:
    """It comes second: only the older statement has all of them."""
    tell(db, "old", [old, "Noted."])
    tell(db, "new", [new, "I see."], at=BEGIN + _DAY)
    answer = call(query=keywords)
    assert [result["session_id"] for result in answer["results"]] == ["old", "new"]
    assert answer["sessions_matched"] == 2


def test_a_scheduled_job_replaces_nothing(db: SessionDB, call: Call) -> None:
    """It says the same again and again, and states nothing of the user's own."""
    tell(db, "fact", ["Deploys of the intranet go out from the develop branch.", "Noted."])
    tell(db, "job", ["Deploys of the intranet go out from develop, 14 today.", "Done."], at=BEGIN + _DAY, source="cron")
    assert [result["session_id"] for result in call(query="intranet deploy branch")["results"]] == ["fact"]


def test_a_change_of_what_many_say_comes_first(db: SessionDB, call: Call) -> None:
    """If it says so, and matches as well as the older one."""
    tell(db, "old", ["I cycle to work, eleven kilometres.", "Noted."])
    for number, text in enumerate(("The printer at work is slow.", "At work the lift is loud.", "Work has a canteen.")):
        tell(db, f"many{number}", [text, "I see."], at=BEGIN + number)
    for number in range(30):
        tell(db, f"note{number}", [f"Note {number} about gardens.", "I see."])
    tell(db, "new", ["I take the tram to work now.", "I see."], at=BEGIN + _DAY)
    found = [result["session_id"] for result in call(query="How do I get to work?", limit=10)["results"]]
    assert found.index("new") < found.index("old")


def test_a_question_about_a_word_with_a_hyphen_gets_the_newer_statement_first(db: SessionDB, call: Call) -> None:
    """The index has it in pieces, as it has a name with dots, for which nobody asks in a sentence."""
    tell(db, "old", ["Our stand-up is at 9:15, please write the reminder.", "Noted."])
    tell(db, "new", ["The stand-up has been pushed to 10:30; update the reminder.", "I see."], at=BEGIN + _DAY)
    assert [result["session_id"] for result in call(query="when do we have stand-up")["results"]] == ["new", "old"]


def test_a_newer_message_that_shares_characters_stays_behind(db: SessionDB, call: Call) -> None:
    """In scripts without spaces, two texts share pairs of characters by chance."""
    tell(db, "fact", ["京都の大学病院は明治時代に開設された。", "はい。"])
    walk = "昨日の散歩で京都の大学病院の近くに開設された新しい喫茶店に入り、コーヒーと菓子を頼んだ。おいしかった。"
    tell(db, "walk", [walk, "はい。"], at=BEGIN + _DAY)
    assert call(query="京都の大学病院はいつ開設された？")["results"][0]["session_id"] == "fact"


def test_no_prompt_gets_only_the_statement_that_was_replaced(db: SessionDB) -> None:
    """Where the older statement is evidence, the newer one comes before it."""
    tell(db, "old", ["The forecasting service is pinned to Python 3.9.", "Noted."])
    tell(db, "new", ["The forecasting service is on Python 3.12, you may use match.", "Good."], at=BEGIN + _DAY)
    for number in range(30):
        tell(db, f"note{number}", [f"Note {number} about gardens.", "I see."])
    judged = judge_prompt(db, "Which Python is the forecasting service on?", Filters(db.scope), limit=3)
    assert [hit.session_id for hit in judged.hits] == ["new", "old"]


def test_a_question_that_was_answered_clears_the_floor(db: SessionDB) -> None:
    """As bare words and misspelt, too; the same question about someone else does not."""
    tell(db, "asked", ["Which port does the staging replica listen on?", "6543."])
    for number in range(30):
        tell(db, f"note{number}", [f"Note {number} about gardens.", "I see."])
    for prompt in ("which port does the stagign replica listen on", "staging replica port"):
        assert [hit.session_id for hit in judge_prompt(db, prompt, Filters(db.scope), limit=3).hits] == ["asked"]
    assert not judge_prompt(db, "Which port does Carla's door bell listen on?", Filters(db.scope), limit=3).hits


def test_no_result_is_surer_than_the_one_before(db: SessionDB, call: Call) -> None:
    """Whatever put the first one there."""
    for number, (old, new) in enumerate(_CHANGES.values()):
        tell(db, f"old{number}", [old, "Noted."])
        tell(db, f"new{number}", [new, "I see."], at=BEGIN + _DAY)
    for question in _CHANGES:
        sure = [CONFIDENCES.index(result["confidence"]) for result in call(query=question)["results"]]
        assert sure == sorted(sure, reverse=True)


def test_recall_gives_nothing_that_a_search_is_unsure_of(tmp_path: Path) -> None:
    """A search still lists it."""
    with memoranda.open(tmp_path) as memory:
        for prompt, reply in (
            ("Which port does the staging replica listen on?", "6543."),
            ("The garden needs water before the weekend.", "I will remind you."),
        ):
            with memory.session(source="my-agent") as session, session.turn(prompt) as turn:
                turn.done(reply)
        assert memory.recall("Which port does the staging replica listen on?").search["count"] == 1
        prompt = "Write a haiku about the weekend in the mountains, please."
        assert memory.recall(prompt).search["results"] == [] != memory.search(prompt)["results"]


def test_a_newer_statement_comes_first_in_a_script_without_spaces(db: SessionDB, call: Call) -> None:
    """Its words are in pieces for the index, as a name with dots is."""
    tell(db, "old", ["我们的测试服务器放在上海机房。", "好的。"])
    tell(db, "new", ["我们的测试服务器现在放在成都机房了。", "好的。"], at=BEGIN + _DAY)
    results = call(query="我们的测试服务器放在哪个机房？")["results"]
    assert [result["session_id"] for result in results] == ["new", "old"]
