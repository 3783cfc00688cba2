"""Background reviews: no user waits for them, none overlap, and an interrupted one is repeated."""

import logging
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from memoranda.agent.review.background import BackgroundReview
from memoranda.agent.review.report import ReviewReport
from memoranda.agent.review.settings import ReviewSettings
from memoranda.agent.session_views import ReviewableSession
from memoranda.errors import ModelOverloadedError
from memoranda.models.model import Message, Reply, ToolCall
from memoranda.models.spending.ledger import Ledger
from memoranda.models.spending.settings import BudgetSettings
from memoranda.support.tool import Tool
from memoranda.testing.scripted.model import Answer, ScriptedModel, Step
from tests.agent.review.sessions import DONE, NOTHING, Talk, add, using
from tests.conftest import tree
from tests.forked import Forked, Say, forking
from tests.timing import GIVE_UP, HANG

EACH_TURN = ReviewSettings(nudge_interval=1, shutdown_seconds=0.2)
OSLO = [using(add("User lives in Oslo.", "user")), DONE]


class Watched:
    """A background review with a scripted model, and its reports."""

    def __init__(
        self, home: Path, steps: Sequence[Step] | Answer, settings: ReviewSettings = EACH_TURN, **more: Any
    ) -> None:
        self.model = ScriptedModel(steps)
        self.reports: list[ReviewReport] = []
        self.review = BackgroundReview(home, lambda taken: self.model, settings, on_report=self.reports.append, **more)

    def turn(self, session: ReviewableSession, *used: str, wait: float = 20) -> list[ReviewReport]:
        """A turn ends, and the review that follows, if any, does."""
        self.review.after_turn(session, used=used)
        assert self.review.wait(wait)
        return self.reports


def test_after_enough_turns_what_was_said_is_saved(tmp_path: Path) -> None:
    """In the background, with a report."""
    talk = Talk(tmp_path, "I live in Oslo.")
    watched = Watched(tmp_path, OSLO, ReviewSettings(nudge_interval=3))
    assert watched.turn(talk) == []
    assert watched.turn(talk) == []
    (report,) = watched.turn(talk)
    assert report.counts() == {"added": 1}
    assert talk.entries("user") == ("User lives in Oslo.",)
    assert watched.review.schedule.history()[0].result == "1 added"
    assert watched.review.close()


def test_the_tools_that_were_sent_are_sent_again(tmp_path: Path) -> None:
    """Also tools that were added to the session's own; none of them works in a review."""
    talk = Talk(tmp_path, "Hello.")
    more = Tool("delegate_task", "Delegate.", {"type": "object"}, lambda arguments: {"success": True, "did": "it"})
    watched = Watched(tmp_path, [using(ToolCall("c1", "delegate_task", "{}")), NOTHING])
    sent = (*talk.tools, more)
    watched.review.after_turn(talk, tools=sent)
    assert watched.review.wait(GIVE_UP)
    assert [[tool.name for tool in request.tools] for request in watched.model.requests] == [
        [tool.name for tool in sent]
    ] * 2
    assert "unavailable" in watched.model.requests[1].messages[-1]["content"]
    assert watched.review.close()


def test_a_turn_does_not_wait_for_its_review(tmp_path: Path) -> None:
    """However long the model takes; and the next turns begin no second one meanwhile."""
    talk = Talk(tmp_path, "I live in Oslo.")
    go_on = threading.Event()

    def slow(*given: Any) -> Reply:
        go_on.wait(HANG)
        return NOTHING

    watched = Watched(tmp_path, [slow, NOTHING])
    began = time.monotonic()
    for _ in range(3):
        watched.review.after_turn(talk)
    assert time.monotonic() - began < GIVE_UP
    assert sum(thread.name == "memoranda-review" for thread in threading.enumerate()) <= 1
    go_on.set()
    assert watched.review.wait(GIVE_UP)
    assert len(watched.model.requests) == 1
    watched.turn(talk)
    assert len(watched.model.requests) == 2
    assert watched.review.close()


def test_a_review_that_failed_is_made_after_the_next_turn(tmp_path: Path) -> None:
    """The failure is reported, and the retry saves the fact."""
    talk = Talk(tmp_path, "I live in Oslo.")
    watched = Watched(tmp_path, [ModelOverloadedError("busy"), Reply("garbage"), *OSLO])
    assert "busy" in watched.turn(talk)[-1].line()
    assert "no sense" in watched.turn(talk)[-1].line()
    assert watched.turn(talk)[-1].counts() == {"added": 1}
    assert watched.review.close()


def test_a_broken_model_never_reaches_the_conversation(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Not even one that breaks its promise to raise nothing but its own errors."""
    talk = Talk(tmp_path, "I live in Oslo.")

    def broken(*given: Any) -> Reply:
        raise ZeroDivisionError("a bug in a client")

    watched = Watched(tmp_path, broken)
    with caplog.at_level(logging.ERROR):
        for _ in range(4):
            watched.turn(talk)
    assert len(watched.model.requests) == 3
    assert "a bug in a client" in caplog.text
    assert "Gave up" in caplog.text
    assert talk.entries("user") == ()
    assert watched.review.close()


def test_a_broken_home_never_reaches_the_conversation(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The log has it."""
    (tmp_path / "home.db").write_bytes(b"not a database at all " * 100)
    with caplog.at_level(logging.ERROR):
        Watched(tmp_path, []).turn(Talk(tmp_path, "Hello."))
    assert "could not be scheduled" in caplog.text


def test_without_budget_no_call_is_made_and_the_review_stays_due(tmp_path: Path) -> None:
    """It runs when there is budget again, and the user sees nothing of the wait."""
    talk = Talk(tmp_path, "I live in Oslo.")
    model = ScriptedModel(OSLO)
    reports: list[ReviewReport] = []
    for budget in (0.0, None):
        ledger = Ledger(tmp_path, BudgetSettings(budget, None))
        review = BackgroundReview(
            tmp_path,
            lambda taken, ledger=ledger: ledger.metered(model, "review", session_id=taken.id, background=True),  # type: ignore[misc]
            EACH_TURN,
            on_report=reports.append,
        )
        review.after_turn(talk)
        assert review.wait(GIVE_UP)
        assert review.close()
        ledger.close()
    assert [(report.postponed, report.counts()) for report in reports] == [(True, {}), (False, {"added": 1})]
    assert reports[0].line() == ""
    assert [(each.name, each.calls) for each in Ledger(tmp_path).totals("purpose")] == [("review", 2)]


def test_closing_waits_briefly_and_the_review_is_due_again(tmp_path: Path) -> None:
    """What comes after the end is thrown away."""
    talk = Talk(tmp_path, "I live in Oslo.")
    go_on, begun = threading.Event(), threading.Event()

    def slow(*given: Any) -> Reply:
        begun.set()
        go_on.wait(HANG)
        return OSLO[0]

    watched = Watched(tmp_path, [slow])
    watched.review.after_turn(talk)
    assert begun.wait(GIVE_UP)
    began = time.monotonic()
    assert not watched.review.close()
    assert time.monotonic() - began < GIVE_UP
    before = tree(tmp_path / "memories")
    go_on.set()
    assert watched.review.wait(GIVE_UP)
    assert tree(tmp_path / "memories") == before
    assert watched.reports[-1].postponed
    watched.review.after_turn(talk)
    later = Watched(tmp_path, OSLO)
    assert later.turn(talk)[-1].counts() == {"added": 1}
    assert later.review.close()
    watched.review.schedule.close()


def test_a_review_of_another_session_is_made_of_that_session(tmp_path: Path) -> None:
    """A review that failed in one conversation runs during another."""
    lost, here = Talk(tmp_path, "I live in Oslo.", session_id="lost"), Talk(tmp_path, "Hello.", session_id="here")
    first = Watched(tmp_path, [ModelOverloadedError("busy")])
    first.turn(lost)
    assert first.review.close()
    second = Watched(tmp_path, [*OSLO, NOTHING], find=lambda session_id, user: lost if session_id == "lost" else None)
    assert [report.session_id for report in second.turn(here)] == ["lost"]
    assert here.entries("user") == ("User lives in Oslo.",)
    assert [report.session_id for report in second.turn(here)] == ["lost", "here"]
    assert second.review.close()


def test_a_review_of_a_deleted_session_is_given_up(tmp_path: Path) -> None:
    """The next review runs."""
    first = Watched(tmp_path, [ModelOverloadedError("busy")])
    first.turn(Talk(tmp_path, "Hello.", session_id="gone"))
    assert first.review.close()
    second = Watched(tmp_path, [NOTHING], find=lambda session_id, user: None)
    assert [report.session_id for report in second.turn(Talk(tmp_path, "Hello.", session_id="here"))] == ["here"]
    assert {past.session_id: past.state for past in second.review.schedule.history()} == {
        "gone": "given up",
        "here": "done",
    }
    assert second.review.close()


def test_two_users_never_meet_in_a_review(tmp_path: Path) -> None:
    """The review of one is made with the words, the tools and the memory of that one."""
    ann = Talk(tmp_path / "ann", "Always answer in Oslo's dialect.", session_id="a", user="ann")
    bob = Talk(tmp_path / "bob", "Always answer in English.", session_id="b", user="bob")
    dialect = [using(add("Always answer in Oslo's dialect.", "user")), DONE]
    watched = Watched(tmp_path, [*dialect, *dialect])
    watched.turn(ann)
    watched.turn(bob)
    assert [report.counts() for report in watched.reports] == [{"added": 1}, {"refused": 1}]
    assert (ann.entries("user"), bob.entries("user")) == (("Always answer in Oslo's dialect.",), ())
    assert watched.review.close()


_DYING = """
import os, sys, time
from pathlib import Path
from tests.agent.review.sessions import DONE, Talk, add, using
from tests.agent.review.test_background import Watched

def die(*given):
    sys.stdout.write("in the review\\n")
    sys.stdout.flush()
    time.sleep(200)

talk = Talk(Path(sys.argv[1]), "I live in Oslo.", session_id="s1")
before = [using(add("User lives in Oslo.", "user"))] if sys.argv[2] == "late" else []
watched = Watched(Path(sys.argv[1]), [*before, die])
watched.turn(talk, wait=60)
"""


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["early", "late"])
def test_a_review_that_was_killed_is_made_again(tmp_path: Path, stage: str) -> None:
    """kill -9 in the middle: the next turn in another process makes up for it, and nothing is saved twice."""
    process = subprocess.Popen([sys.executable, "-c", _DYING, str(tmp_path), stage], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "in the review\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    settings = ReviewSettings(nudge_interval=1000)
    watched = Watched(tmp_path, OSLO, settings)
    talk = Talk(tmp_path, "I live in Oslo.", session_id="s1")
    (report,) = watched.turn(talk)
    assert report.counts() == {"added": 1} if stage == "early" else {"duplicate": 1}
    assert talk.entries("user") == ("User lives in Oslo.",)
    watched.turn(talk)
    assert len(watched.reports) == 1
    assert watched.review.close()


@pytest.mark.slow
def test_while_one_process_reviews_another_does_not(tmp_path: Path) -> None:
    """Its own review stays due until the first is done."""
    process = subprocess.Popen(
        [sys.executable, "-c", _DYING, str(tmp_path), "early"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "in the review\n"
    watched = Watched(tmp_path, [NOTHING, NOTHING])
    talk = Talk(tmp_path, "Hello.", session_id="s2")
    assert watched.turn(talk) == []
    assert watched.model.requests == []
    process.kill()
    process.wait()
    process.stdout.close()
    assert len(watched.turn(talk)) == 1
    assert watched.review.close()


def _restless(home: Path, say: Say) -> None:
    """Review three turns, one memory at a time; says when it begins."""

    def step(system: str, messages: Sequence[Message], tools: Sequence[Tool]) -> Reply:
        time.sleep(0.01)
        done = sum(message["role"] == "tool" for message in messages)
        return using(add(f"User lives in Oslo since {2000 + done}.", "user")) if done < 3 else NOTHING

    talk = Talk(home, *(f"I live in Oslo since {year}." for year in (2000, 2001, 2002)))
    watched = Watched(home, step, ReviewSettings(nudge_interval=1, tries=1000))
    say(b".")
    watched.turn(talk)


@pytest.mark.slow
@forking
def test_however_often_reviews_are_killed_nothing_is_lost_or_saved_twice(tmp_path: Path) -> None:
    """Fifteen kills at random times; the last review is not killed and finds everything in order."""
    chance = random.Random(5)
    for _ in range(15):
        reviewing = Forked(partial(_restless, tmp_path))
        assert reviewing.heard()
        time.sleep(chance.uniform(0, 0.12))
        reviewing.kill()
    assert Forked(partial(_restless, tmp_path)).wait() == 0
    talk = Talk(tmp_path)
    assert talk.entries("user") == tuple(f"User lives in Oslo since {year}." for year in (2000, 2001, 2002))
    assert [change.actor for change in talk.store.journal.changes()] == ["review"] * 3
    watched = Watched(tmp_path, [])
    assert watched.review.schedule.open_reviews(None) == []
    watched.review.schedule.close()
