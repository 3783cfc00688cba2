"""How `benchmarks.vendors.quality` samples, asks and counts, with invented conversations and a small vendor."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.vendors.quality import measure_search, measure_vendor
from benchmarks.vendors.quality_result import (
    Result,
    contains_evidence,
    format_outcome,
    format_rows,
    make_rows,
    score_answers,
)
from benchmarks.vendors.quality_sample import NOTED, Sample, SampleQuestion, SampleTurn, load_sample, pair_messages
from benchmarks.vendors.real_vendor import CannotRun, RealVendor
from tests.external.vendors.acme import AcmeDouble, AcmeProvider
from tests.external.vendors.test_scenario import RunningAcme, bundle

EVIDENCE = "I finally bought the green Brompton bicycle from the shop near the harbour."


def question(number: int, *evidence: str, set_name: str = "locomo") -> SampleQuestion:
    sessions = frozenset({f"session-{number}"})
    return SampleQuestion(f"q{number}", set_name, "single-hop", f"Question {number}?", evidence, sessions)


def test_a_message_is_found_word_for_word() -> None:
    """A recalled text that quotes the message contains it, whatever surrounds it and however lines break."""
    assert contains_evidence(f"- user: {EVIDENCE.replace(' green', chr(10) + 'green')} (Acme, 2026-01-01)", EVIDENCE)


def test_a_message_is_found_in_other_words_of_the_same_line() -> None:
    """One line with most content words is enough."""
    assert contains_evidence("- The user bought a green Brompton bicycle at the harbour (Acme, score 0.80)", EVIDENCE)


def test_a_message_is_found_in_facts_that_were_extracted_from_it() -> None:
    """Short lines that consist of the message's words count together."""
    assert contains_evidence("- bought a Brompton (Acme)\n- green bicycle (Acme)\n- shop near harbour (Acme)", EVIDENCE)


def test_words_scattered_over_other_lines_are_not_the_message() -> None:
    """A long text that has the words in lines about something else does not contain the message."""
    lines = ["the green door of our office is open", "we bought seventeen chairs for the kitchen"]
    lines += ["her Brompton was stolen last winter in Ghent", "a bicycle lane will be built along the river"]
    lines += ["the shop has closed for the holidays again", "our harbour tour was cancelled because of rain"]
    assert not contains_evidence("\n".join(lines), EVIDENCE)


def test_a_message_of_few_words_must_be_quoted() -> None:
    """Two content words occur anywhere, so only the text itself counts."""
    assert not contains_evidence("- Clara moved to Lisbon with her two cats", "In Lisbon!")
    assert contains_evidence("- Clara: in Lisbon! she said", "In Lisbon!")


def test_chance_is_counted_with_the_answer_to_an_unrelated_question() -> None:
    """A memory that always recalls the same text finds as much by chance as on purpose."""
    questions = [question(1, EVIDENCE), question(2, "My sister Clara lives in Lisbon with two cats.")]
    always = [EVIDENCE, EVIDENCE]
    first, second = score_answers(questions, always, [10, 10], [0.1, 0.1])
    assert (first.found, first.by_chance) == (frozenset({0}), 1)
    assert (second.found, second.by_chance) == (frozenset(), 0)


def test_questions_that_all_share_a_session_have_no_unrelated_one() -> None:
    """The figure for chance is refused instead of invented."""
    with pytest.raises(ValueError, match="larger sample"):
        score_answers([question(1, EVIDENCE)], [EVIDENCE], [1], [0.1])


def test_the_table_counts_what_each_memory_finds_alone() -> None:
    """What both find counts once, and what only one finds is its own."""
    clara = "My sister Clara lives in Lisbon with two cats."
    questions = [question(1, EVIDENCE, clara), question(2, "The zebra in the zoo is called Otto.")]
    ours, other = Result("ours"), Result("other")
    ours.answers = score_answers(questions, [EVIDENCE, ""], [100, 0], [0.1, 0.1])
    other.answers = score_answers(questions, [clara, ""], [10, 0], [0.1, 0.1])
    _, row = make_rows(ours, [other], ours)
    assert row["evidence"] == 3
    assert (row["found"], row["together"], row["only_here"], row["only_ours"]) == (1, 2, 1, 1)
    assert row["in_neither"] == 1
    assert make_rows(ours, [other], other)[1]["in_neither"] == 0
    assert (row["questions_helped"], row["tokens"], row["empty"]) == (1, 5, 1)
    assert "| locomo | other | 1 of 3 | 2 of 3 |" in format_rows([row])


def test_messages_become_turns() -> None:
    """Consecutive messages of one role are one, and a missing side is filled, so that no vendor gets an empty one."""
    roles = ("assistant", "user", "user", "assistant", "user")
    messages = [{"role": role, "text": str(number)} for number, role in enumerate(roles)]
    assert pair_messages(messages) == [(NOTED, "0"), ("1\n2", "3"), ("4", NOTED)]


def session(name: str, *texts: str) -> dict[str, Any]:
    roles = ("user", "assistant")
    messages = [
        {"id": f"{name}#{number}", "role": roles[number % 2], "speaker": "Ana", "text": text}
        for number, text in enumerate(texts)
    ]
    return {"id": name, "ts": "2026-01-01T10:00:00", "messages": messages}


def write_set(folder: Path, name: str, store: str, sessions: list[dict[str, Any]]) -> None:
    queries = [
        {
            "id": f"{name}-{each['id']}",
            "store": store,
            "q": "What?",
            "type": "kind",
            "gold_msgs": [f"{each['id']}#0"],
            "gold_sessions": [each["id"]],
        }
        for each in sessions
    ]
    data = {"name": name, "stores": [{"id": store, "sessions": sessions}], "queries": queries}
    (folder / f"{name}.dev.json.gz").write_bytes(gzip.compress(json.dumps(data).encode()))


def test_the_sample_has_the_evidence_of_its_questions(tmp_path: Path) -> None:
    """Every message of evidence is in a turn of the sample, and the number of sessions is as wanted."""
    write_set(tmp_path, "locomo", "conv-30", [session(f"S{number}", f"fact {number}", "yes") for number in range(4)])
    write_set(tmp_path, "lme_pool", "pool", [session(f"P{number}", f"pool {number}", "ok") for number in range(9)])
    sample = load_sample(tmp_path, locomo=2, longmemeval=2, sessions=5)
    assert [each.set_name for each in sample.questions] == ["locomo"] * 2 + ["longmemeval"] * 2
    written = "\n".join(turn.user for turn in sample.turns)
    assert all(text in written for each in sample.questions for text in each.evidence)
    assert len({turn.session for turn in sample.turns}) == 4 + 5
    assert {turn.assistant for turn in sample.turns if turn.session.startswith("locomo")} == {NOTED}
    assert {name for each in sample.questions for name in each.sessions} <= {turn.session for turn in sample.turns}


def test_our_search_is_asked_as_a_model_asks_it(tmp_path: Path) -> None:
    """It finds what was recorded, and the tokens are those of the whole answer."""
    texts = {"session-1": EVIDENCE, "session-2": "The zebra in the zoo is called Otto."}
    turns = tuple(SampleTurn(name, 1_000.0, text, NOTED) for name, text in texts.items())
    asked = (
        SampleQuestion("q1", "locomo", "kind", "Which bicycle was bought?", (EVIDENCE,), frozenset({"session-1"})),
        SampleQuestion("q2", "locomo", "kind", "Zebra?", (texts["session-2"],), frozenset({"session-2"})),
    )
    first, following, messages = measure_search(Sample(turns, asked), tmp_path)
    assert [answer.found for answer in first.answers] == [frozenset({0})] * 2
    assert all(answer.tokens > 50 for answer in first.answers)
    assert "2 of 2 sessions" in format_outcome(first)
    assert [answer.found for answer in following.answers] == [frozenset()] * 2
    assert [answer.found for answer in messages.answers] == [frozenset({0})] * 2
    assert messages.texts[1] == "- The zebra in the zoo is called Otto. (memoranda, 1970-01-01)"


def test_a_vendor_gets_every_turn_and_is_asked_every_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The turns arrive through the provider, and what it recalls is compared with the evidence."""
    bundle(monkeypatch, AcmeProvider)
    zebra = "The zebra in the zoo is called Otto."
    turns = (SampleTurn("session-1", 1_000.0, EVIDENCE, NOTED), SampleTurn("session-2", 2_000.0, zebra, NOTED))
    asked = (
        SampleQuestion("q1", "locomo", "kind", "Which bicycle was bought?", (EVIDENCE,), frozenset({"session-1"})),
        SampleQuestion("q2", "locomo", "kind", "What is the zebra called?", (zebra,), frozenset({"session-2"})),
    )
    with AcmeDouble.start() as double:
        result = measure_vendor(RunningAcme(tmp_path / "cache", double), Sample(turns, asked), tmp_path / "home")
        stored = "\n".join(double.stored_texts())
    assert (result.reason, result.failures) == ("", 0)
    assert EVIDENCE in stored
    assert zebra in stored
    assert [answer.found for answer in result.answers] == [frozenset({0})] * 2


class AbsentVendor(RealVendor):
    name = "absent"
    title = "Absent, server"
    stopped = False

    def install(self) -> None:
        raise CannotRun("npm is not installed")

    def start(self) -> None:
        raise AssertionError("it is not installed")

    def stop(self) -> None:
        self.stopped = True

    def settings(self, url: str) -> dict[str, Any]:
        return {}

    def stored_texts(self) -> list[str]:
        return []


def test_a_vendor_that_cannot_run_says_why(tmp_path: Path) -> None:
    """It has no figures, its reason is printed, and it is stopped."""
    vendor = AbsentVendor(tmp_path)
    result = measure_vendor(vendor, Sample((), ()), tmp_path / "home")
    assert vendor.stopped
    assert format_outcome(result) == "Absent, server: not run: npm is not installed"
    assert make_rows(Result("ours"), [result], Result("also ours")) == []
