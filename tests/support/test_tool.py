"""Every tool of Memoranda has a row of facts, and a tool without one gets the most cautious facts."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import memoranda
from memoranda.agent.loop import Agent
from memoranda.api.memory import Memory
from memoranda.integrations.hooks.events import TOOLS
from memoranda.integrations.mcp.server import describe_tool
from memoranda.integrations.tool_host import ToolHost
from memoranda.models.model import Reply
from memoranda.support.tool import OWN_TOOLS, Tool, ToolFacts, facts_of, own_tool
from memoranda.testing.scripted.model import ScriptedModel

pytestmark = pytest.mark.slow

SOURCE = Path(memoranda.__file__).parent


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with memoranda.open(tmp_path / "home") as opened:
        yield opened


def test_a_tool_that_changes_nothing_needs_only_a_key_that_reads() -> None:
    """And every other tool one that curates."""
    assert {name: facts.scope for name, facts in OWN_TOOLS.items()} == {
        name: "read" if facts.read_only else "curate" for name, facts in OWN_TOOLS.items()
    }


def test_every_tool_that_is_offered_has_its_row(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a session, a review, an agent, a delegate and a tool host; and every row belongs to a tool."""
    agents: list[Agent] = []
    turn = Agent.turn

    def watched_turn(agent: Agent, text: str) -> str:
        agents.append(agent)
        return turn(agent, text)

    monkeypatch.setattr(Agent, "turn", watched_turn)
    offered = [*memory.tools, *ToolHost(memory, source="test").tools()]
    with ScriptedModel([Reply("done")]) as model, memory.session() as session:
        session.record("user", "hello")
        agent = memory.agent(model, session=session)
        (delegate_task,) = (tool for tool in agent.tools if tool.name == "delegate_task")
        delegate_task.call({"task": "Count the tests."})
        offered += [*session.tools, *session.for_review(None).review_tools(), *agent.tools, *agents[-1].tools]
    assert {tool.name for tool in offered} == set(OWN_TOOLS)
    assert [tool.name for tool in offered if tool.facts is not OWN_TOOLS[tool.name]] == []
    assert set(TOOLS.values()) <= {name for name, facts in OWN_TOOLS.items() if facts.for_hosts}


def test_own_tools_are_built_from_their_rows() -> None:
    """Whatever offers them: `Tool` itself is for tools of others, whose names are not written in the source."""
    built = [path for path in SOURCE.rglob("*.py") if re.search(r"(?<!\w)Tool\(\s*\"", path.read_text("utf-8"))]
    assert built == []


def test_a_tool_without_a_row_is_not_one_of_ours() -> None:
    """A new tool fails at once, in the test of its own module."""
    with pytest.raises(KeyError, match="weather"):
        own_tool("weather", "", {}, dict)


def test_nothing_good_is_assumed_of_an_unknown_tool() -> None:
    """It may change and destroy everything, contains the words of anyone, and only the host's agent may call it."""
    tool = Tool("weather", "", {}, dict)
    assert tool.facts == facts_of("weather") == ToolFacts()
    assert (tool.facts.read_only, tool.facts.words, tool.facts.scope) == (False, "others", "curate")
    assert (tool.facts.for_hosts, tool.facts.for_reviews) == (False, False)
    hints = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False, "openWorldHint": True}
    described = describe_tool(tool)
    assert (described["title"], described["annotations"]) == ("weather", hints)


def test_the_facts_of_a_tool_agree_with_each_other() -> None:
    """What only reads destroys nothing over any door, and what other programs get has a title."""
    for name in OWN_TOOLS:
        facts = OWN_TOOLS[name]
        assert facts.read_only or facts.scope == "curate"
        assert bool(facts.title) == facts.for_hosts
        assert not (facts.for_hosts and facts.read_only and facts.destructive)
