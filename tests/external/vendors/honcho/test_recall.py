"""Honcho's provider recalls as much and as often as the settings say.

Recall asks Honcho as often as the settings say.
"""

from itertools import pairwise

import pytest

from memoranda.errors import TemporaryProviderError
from memoranda.external.vendors.honcho.recall import Cadence, pass_levels, reasoning_level
from tests.external.vendors.honcho.double import HonchoDouble
from tests.external.vendors.honcho.home import ASSISTANT, Home, call_tool, send_turn

pytestmark = pytest.mark.slow


def test_recall_has_card_conclusions_and_words_of_other_sessions(home: Home) -> None:
    """Each with its kind and time; the messages of this session are in the conversation anyway."""
    send_turn(home.start(session_id="s0"), "I drink green tea.", session_id="s0")
    provider = home.start()
    send_turn(provider, "The zebra drinks water.", "k2")
    call_tool(provider, "honcho_profile", card=["Lives in Lisbon"])
    recalled = provider.prefetch("What green drink is there?", session_id="s1").splitlines()
    assert recalled[0] == "- Lives in Lisbon (Honcho, card)"
    assert "- I drink green tea. (Honcho, user said, 2026-11-16)" in [
        line.replace(line[-11:-1], "2026-11-16") for line in recalled
    ]
    assert any("(Honcho, conclusion, " in line for line in recalled)
    assert not any(line.startswith("- The zebra") for line in recalled)


def test_what_is_found_in_time_is_recalled(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """The card, if the search for conclusions fails; without a card the recall fails, and the next turn tries again."""
    provider = home.start(contextCadence=5)
    send_turn(provider, "I drink green tea.")
    monkeypatch.setattr(home.workspace, "_query_conclusions", lambda body: (500, {"detail": "too slow"}))
    with pytest.raises(TemporaryProviderError):
        provider.prefetch("Which green tea?", session_id="s1")
    call_tool(provider, "honcho_profile", card=["Lives in Lisbon"])
    assert provider.prefetch("Which green tea?", session_id="s1") == "- Lives in Lisbon (Honcho, card)"


def test_unrelated_messages_are_not_recalled(home: Home) -> None:
    """Honcho's search returns the nearest ones, however far they are."""
    send_turn(home.start(session_id="s0"), "I drink green tea.", session_id="s0")
    assert home.start().prefetch("How tall is the tower?", session_id="s1") == ""


def test_the_model_of_honcho_answers_after_a_turn_for_the_next_one(home: Home) -> None:
    """In the next recall of the same session, and once."""
    provider = home.start()
    send_turn(provider, "I drink green tea.")
    provider.queue_prefetch("What do I drink?", session_id="s1")
    assert home.workspace.chats[0]["observer"] == ASSISTANT
    assert home.workspace.chats[0]["target"] == "default"
    assert "What do I drink?" in home.workspace.chats[0]["query"]
    assert "messages are known" in provider.prefetch("Which tea?", session_id="s1")
    assert "messages are known" not in provider.prefetch("Which tea?", session_id="s1")


def test_the_model_is_asked_as_often_as_the_settings_say(home: Home) -> None:
    """Not at all with 0, in several passes with a depth, and not about a word of assent."""
    never = home.start(dialecticCadence=0)
    send_turn(never, "I drink green tea.")
    never.queue_prefetch("What do I drink?", session_id="s1")
    assert home.workspace.chats == []
    deep = home.start(dialecticDepth=3, dialecticReasoningLevel="medium")
    deep.queue_prefetch("ok, thanks", session_id="s1")
    deep.queue_prefetch("/compress", session_id="s1")
    assert home.workspace.chats == []
    deep.queue_prefetch("What do I drink?", session_id="s1")
    assert [chat["reasoning_level"] for chat in home.workspace.chats] == ["minimal", "medium", "low"]
    assert "An earlier answer was" in home.workspace.chats[1]["query"]


def test_context_is_asked_for_as_often_as_the_settings_say(home: Home, double: HonchoDouble) -> None:
    """In between the last one is shown again; with first-turn it is shown once."""
    send_turn(home.start(session_id="s0"), "I drink green tea.", session_id="s0")
    slow = home.start(contextCadence=3)
    first = slow.prefetch("Which green tea?", session_id="s1")
    before = len(double.requests)
    assert slow.prefetch("Which green car?", session_id="s1") == first != ""
    assert len(double.requests) == before
    assert slow.prefetch("ok", session_id="s1") == ""
    slow.prefetch("Which green car?", session_id="s1")
    assert len(double.requests) > before
    once = home.start(injectionFrequency="first-turn")
    assert once.prefetch("Which green tea?", session_id="s1") == first
    assert once.prefetch("Which green tea?", session_id="s1") == ""


def test_a_mode_and_a_token_limit_narrow_the_common_limits(home: Home) -> None:
    """The prompt names the tools only if the model has them."""
    assert home.start(contextTokens=500).limits() == {"mode": "hybrid", "recall_chars": 2_000}
    context, tools = home.start(recallMode="context"), home.start(recallMode="tools")
    assert (context.limits(), tools.limits()) == ({"mode": "context"}, {"mode": "tools"})
    assert "honcho_search" not in context.system_prompt_block()
    assert "honcho_search" in tools.system_prompt_block()


def test_a_refresh_is_due_every_few_turns() -> None:
    """In each session by itself."""
    cadence = Cadence(3)
    assert [turn for turn in range(8) if cadence.take("a", turn)] == [0, 3, 6]
    assert cadence.take("b", 0)


def test_empty_answers_make_it_rarer_up_to_a_limit() -> None:
    """An answer with content ends that."""
    cadence = Cadence(1)
    due = []
    for turn in range(60):
        if cadence.take("a", turn):
            due.append(turn)
            cadence.answered("a", empty=True)
    assert due[:5] == [0, 1, 3, 6, 10]
    assert max(later - earlier for earlier, later in pairwise(due)) == 8
    cadence.answered("a", empty=False)
    assert cadence.take("a", 100) and cadence.take("a", 101)


def test_a_reset_makes_every_session_due() -> None:
    """A session that was rewound asks again."""
    cadence = Cadence(5)
    assert cadence.take("a", 0) and not cadence.take("a", 1)
    cadence.reset()
    assert cadence.take("a", 1)


def test_long_messages_get_more_reasoning_up_to_the_cap() -> None:
    """Never less than the level of the settings."""
    assert reasoning_level("short", "low", "high", heuristic=True) == "low"
    assert reasoning_level("x" * 120, "low", "high", heuristic=True) == "medium"
    assert reasoning_level("x" * 400, "low", "high", heuristic=True) == "high"
    assert reasoning_level("x" * 400, "low", "medium", heuristic=True) == "medium"
    assert reasoning_level("x" * 400, "low", "high", heuristic=False) == "low"
    assert reasoning_level("x" * 400, "max", "high", heuristic=True) == "max"


def test_a_deeper_dialectic_has_more_passes() -> None:
    """The last of three is a cheap check."""
    assert [pass_levels(depth, "high") for depth in (1, 2, 3)] == [
        ["high"],
        ["minimal", "high"],
        ["minimal", "high", "low"],
    ]
