"""A summary is written, read back and updated without growing a summary inside a summary."""

import pytest

from memoranda.agent.compression.prompts import SECTIONS
from memoranda.agent.compression.summariser import check_summary, is_grounded
from memoranda.agent.compression.summary import Pinned, RunningSummary, parse_sections, parse_summaries, render_summary
from memoranda.models.model import Reply, ToolCall
from tests.agent.compression.conftest import sections

pytestmark = pytest.mark.slow

SOURCE = "The user asked to port the parser in src/parser.py. The cache keeps what was read. Version 3.11 is used."
FULL = RunningSummary(
    {name: f"- about {name.lower()}\n- second line" for name in SECTIONS},
    Pinned(("Never push to main.",), ("write the tests", "port it")), 12, 340,
)  # fmt: skip


def test_a_summary_is_parsed_as_it_was_written() -> None:
    """Sections, pinned sentences and the range of messages survive."""
    assert parse_summaries([render_summary(FULL, "s1")]) == FULL
    bare = RunningSummary({name: "" for name in SECTIONS}, Pinned(), 1, 2)
    assert parse_summaries([render_summary(bare, "")]) == bare


def test_a_summary_names_the_messages_it_replaces_and_how_to_read_them() -> None:
    """The range, the session, and the tool."""
    text = render_summary(FULL, "20261115_a")
    for words in ("messages 12 to 340", "session_search", 'session_id "20261115_a"', "around_message_id 12", "query"):
        assert words in text


def test_two_summaries_become_one() -> None:
    """Should there ever be two: lines of both, the range of both."""
    other = RunningSummary({"Goal": "- another goal"}, Pinned(("Always use tabs.",)), 341, 400)
    both = parse_summaries([render_summary(FULL, "s"), render_summary(other, "s")])
    assert (both.first_id, both.last_id) == (12, 400)
    assert both.sections["Goal"].splitlines() == ["- about goal", "- second line", "- another goal"]
    assert both.pinned.rules == ("Never push to main.", "Always use tabs.")


def test_the_summary_of_another_program_is_kept_whole() -> None:
    """As the state of things."""
    assert parse_summaries(["They talked about geese."]).sections["State"] == "They talked about geese."
    assert parse_summaries([]) == RunningSummary()


def test_a_heading_inside_a_section_does_not_split_it() -> None:
    """What a model writes under a heading stays there when it is read back."""
    tricky = RunningSummary({"Goal": "- x\n## State\n- not a section", "State": "- real"}, Pinned(("## Goal",)), 1, 2)
    back = parse_summaries([render_summary(tricky, "s")])
    assert back.sections["State"] == "- real"
    assert "not a section" in back.sections["Goal"]
    assert back.pinned == tricky.pinned


@pytest.mark.parametrize(
    "wrap",
    ["{}", "```markdown\n{}\n```", "<think>hm ## Goal</think>\n{}", "Here it is:\n\n{}", "\n\n{}\n\n"],
)
def test_what_models_put_around_a_summary_is_taken_off(wrap: str) -> None:
    """Fences, thinking and a word in front."""
    assert parse_sections(wrap.format(sections(goal="- port the parser"))) is not None


def test_headings_are_found_in_the_usual_spellings() -> None:
    """Bold, with a colon, at another level, in small letters."""
    text = sections().replace("## Goal", "**Goal:**").replace("## State", "### state:").replace("## Files", "# FILES")
    parsed = parse_sections(text)
    assert parsed is not None
    assert set(parsed.values()) == {"- the parser reads a file"}


def test_an_answer_that_is_not_a_summary_is_refused() -> None:
    """The reason is returned."""
    for reply, why in [
        (Reply(""), "nothing"),
        (Reply("   \n"), "nothing"),
        (Reply("I cannot help with that."), "sections"),
        (Reply('{"goal": "port'), "sections"),
        (Reply(sections().split("## Files")[0]), "sections"),
        (Reply(sections() + "\n\n" + sections()), "sections"),
        (Reply(sections(), finish_reason="length"), "truncated"),
        (Reply("", (ToolCall("1", "memory", "{}"),)), "tool"),
        (Reply(sections(goal="-")), "neither"),
        (Reply(sections(state="- " + "parser " * 3_000)), "too long"),
        (
            Reply(
                sections(
                    **{
                        name.split()[0].lower(): "- quantum geese migrate northwards every winter morning"
                        for name in SECTIONS
                    }
                )
            ),
            "not in the conversation",
        ),
        (Reply(sections(files="- /etc/passwd\n- lib/foo.rs\n- ZX-81234\n- port 99871\n- v7.7.7")), "not in the"),
    ]:
        judged = check_summary(reply, SOURCE, 500)
        assert isinstance(judged, str)
        assert why in judged


def test_a_good_summary_is_taken() -> None:
    """In the words of the conversation, or in other words for the same things."""
    text = sections(goal="- port the parser (src/parser.py)", state="- the cache keeps what was read", open="-")
    judged = check_summary(Reply(text), SOURCE, 500)
    assert isinstance(judged, dict)
    assert judged["Open points"] == ""
    assert check_summary(Reply(text), "", 500) == "the summary mentions things that are not in the conversation"


def test_words_tell_nothing_across_scripts() -> None:
    """A summary in Latin letters of a conversation in Chinese is not refused for its words."""
    assert is_grounded("The user deploys with docker and keeps logs", "我们使用docker部署")
    assert is_grounded("使用docker部署服务", "我们使用docker部署服务到生产环境")
    assert not is_grounded("今天天气很好我们去公园散步吃冰淇淋", "我们使用docker部署服务到生产环境")
