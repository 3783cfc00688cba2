"""Head, middle and tail are cut where nothing belongs together."""

import pytest

from memoranda.agent.compression.plan import CompressionPlan, cut_positions, make_plan
from memoranda.agent.compression.settings import CompressionSettings
from tests.agent.compression.conftest import calls, chatter, numbered, result, said

pytestmark = pytest.mark.slow

CHOSEN = CompressionSettings()


def _plan(messages: list[dict[str, object]], window: int = 20_000, summaries: tuple[int, ...] = ()) -> CompressionPlan:
    plan = make_plan(numbered(messages, summaries=summaries), CHOSEN, window)
    assert plan is not None
    return plan


def test_the_first_three_and_at_least_the_last_six_stay() -> None:
    """By default, when they fit; short last messages leave room for more of them."""
    plan = _plan(chatter(100, 20))
    assert [each.id for each in plan.head] == [100, 103, 106]
    assert len(plan.tail) >= 6
    assert plan.request is None
    assert len(plan.head) + len(plan.middle) + len(plan.tail) == 200


def test_fewer_stay_when_they_do_not_fit() -> None:
    """By the room for them, and never none of the last."""
    plan = _plan(chatter(20, 1_500), window=8_000)
    assert plan.head == ()
    assert len(plan.tail) == 1


def test_a_call_stays_with_its_results() -> None:
    """Parallel ones, those that come late, and those with an id that is used again."""
    messages = [said("user", "a"), calls("1", "2"), result("2"), result("1"), said("user", "b"), calls("1"),
                said("user", "c"), result("1"), said("assistant", "d")]  # fmt: skip
    assert cut_positions(messages) == [0, 1, 4, 5, 8, 9]


def test_a_result_without_a_call_stays_with_the_message_before_it() -> None:
    """An interrupted turn may leave one; an unanswered call can be separated."""
    assert cut_positions([calls("x"), said("user", "a"), result("y"), said("user", "b")]) == [0, 1, 3, 4]
    assert cut_positions([result("y"), said("user", "b")]) == [0, 1, 2]
    assert cut_positions([]) == [0]


def test_the_latest_request_stays_however_long_ago_it_was() -> None:
    """A long run of tools after it does not push it out, and is itself summarised."""
    work = [message for step in range(200) for message in (calls(f"c{step}"), result(f"c{step}", "output " * 30))]
    messages = [*chatter(5), said("user", "Please port the parser."), *work]
    plan = _plan(messages, window=8_000)
    assert plan.request is not None
    assert plan.request.message["content"] == "Please port the parser."
    assert plan.request in plan.kept and plan.request not in plan.summarised
    assert len(plan.summarised) > 300


def test_an_image_is_a_request() -> None:
    """Also without words; an empty message is none."""
    image = said("user", [{"type": "image_url", "image_url": {"url": "data:"}}])
    plan = _plan([*chatter(3), image, *(said("assistant", "word " * 300) for _ in range(30))], window=8_000)
    assert plan.request is not None
    assert plan.request.message == image
    plan = _plan([*chatter(60), said("user", "  ")])
    assert plan.tail[-1].message["content"] == "  "


def test_an_earlier_summary_is_continued() -> None:
    """It is neither kept nor summarised again; the head ends before it."""
    messages = [*chatter(1), said("user", "a summary"), *chatter(50)]
    plan = _plan(messages, summaries=(2,))
    assert [each.message["content"] for each in plan.previous] == ["a summary"]
    assert len(plan.head) == 2
    assert all(not each.is_summary for each in (*plan.head, *plan.middle, *plan.tail))


def test_a_summary_is_not_a_request() -> None:
    """This is true although its role is user."""
    messages = [said("user", "the real one"), said("user", "a summary"), *(said("assistant", "x " * 900),) * 9]
    plan = _plan(messages, window=4_000, summaries=(1,))
    assert [each.message["content"] for each in plan.head] == ["the real one"]
    assert plan.request is None


def test_there_is_no_plan_without_a_middle() -> None:
    """The conversation is empty or too short."""
    assert make_plan([], CHOSEN, 8_000) is None
    assert make_plan(numbered(chatter(2)), CHOSEN, 100_000) is None
    assert make_plan(numbered([said("user", "a summary")], summaries=(0,)), CHOSEN, 8_000) is None


def test_one_piece_that_cannot_be_cut_is_kept_whole() -> None:
    """However long it is."""
    messages = [*chatter(10), calls(*map(str, range(40))), *(result(str(each), "output " * 50) for each in range(40))]
    plan = _plan(messages, window=4_000)
    assert len(plan.tail) == 41


def test_a_long_context_is_planned_quickly() -> None:
    """Ten thousand messages, without looking at each pair of them."""
    plan = _plan([*chatter(5_000, 5)], window=200_000)
    assert len(plan.middle) > 5_000
