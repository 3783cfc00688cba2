"""The demo model plays its part over the real memory: keeps, answers, searches, sums up."""

import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.app import Memory, Session
from memoranda.compression import prompts
from memoranda.compression.summary import render_sections
from memoranda.compression.summary_check import check_summary
from memoranda.llm.demo import DemoModel
from memoranda.llm.demo.facts import Fact, facts_in, in_second_person
from memoranda.llm.demo.summing_up import summary_for
from memoranda.llm.model import Message
from memoranda.prompt.builder import PromptInputs, build_prompt
from memoranda.prompt.memory_changes import note_of_changes
from memoranda.prompt.settings import PromptSettings
from memoranda.review import prompts as review_prompts
from memoranda.tools import Tool
from tests.llm.conftest import tool, user

MODEL = DemoModel()


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with memoranda.open(tmp_path / "home") as opened:
        yield opened


def say(session: Session, text: str) -> tuple[str, list[str]]:
    """One turn: the answer, and the tools that were called."""
    called: list[str] = []
    with session.turn(text) as turn:
        reply = MODEL.reply(session.prompt, turn.messages, session.tools)
        while reply.tool_calls:
            turn.record(**reply.message())
            for call in reply.tool_calls:
                called.append(call.name)
                answer = session.call(call.name, json.loads(call.arguments))
                turn.record("tool", json.dumps(answer), tool_call_id=call.id, tool_name=call.name)
            reply = MODEL.reply(session.prompt, turn.messages, session.tools)
        turn.done(reply.message())
    return reply.text, called


def test_what_it_is_told_in_one_session_it_knows_in_the_next(memory: Memory) -> None:
    """Facts are kept by the memory tool and answered from the prompt."""
    with memory.session() as first:
        assert say(first, "My name is Ana and I live in Lisbon.") == (
            "I'll remember that: Your name is Ana.\nI'll remember that: You live in Lisbon.", ["memory"],
        )  # fmt: skip
        say(first, "Please remember that we deploy on Fridays. I prefer short answers.")
    assert memory.entries("user") == ("User's name is Ana.", "User lives in Lisbon.", "User prefers short answers.")
    assert memory.entries("memory") == ("The team deploys on Fridays.",)
    with memory.session() as second:
        assert say(second, "Hello") == ("Hello, Ana! What shall we work on?", [])
        assert say(second, "Where do I live?") == ("You live in Lisbon.", [])
        assert say(second, "When do we deploy?") == ("The team deploys on Fridays.", [])
        assert "You prefer short answers." in say(second, "What do you know about me?")[0]


def test_what_was_said_and_not_kept_it_finds_by_searching(memory: Memory) -> None:
    """It answers with the words of the past, and says so when there are none."""
    with memory.session() as first:
        say(first, "The queue had a deadlock. We fixed it by locking jobs before runs.")
    with memory.session() as second:
        answer, called = say(second, "How did we fix the deadlock?")
        assert called == ["session_search"]
        assert "“The queue had a deadlock. We fixed it by locking jobs before runs.”" in answer
        assert "found nothing" in say(second, "Did we ever talk about zebras?")[0]
    assert memory.entries("memory") == ()


def test_a_fact_that_changed_takes_the_place_of_the_old_one(memory: Memory) -> None:
    """And one that is to be forgotten is removed."""
    with memory.session() as session:
        say(session, "My editor is Vim.")
        assert "Your editor is Helix. (It was: User's editor is Vim.)" in say(session, "My editor is now Helix.")[0]
        assert say(session, "My editor is Helix.") == ("I know that already: Your editor is Helix.", [])
        assert say(session, "Which editor do I use?")[0] == "Your editor is Helix."
        say(session, "Forget my editor.")
        assert "forget" in say(session, "What is my editor?")[0]
    assert memory.entries("user") == ()


def test_recalled_memory_is_used_and_never_kept() -> None:
    """A fence in the user's message answers a question, but it is nobody's word to save."""
    fenced = "<memory-context>\n[Recalled memory: reference]\n\nMy locker number is 4711.\n</memory-context>"
    asked = user(f"What is the number of my locker?\n\n{fenced}")
    assert "4711" in MODEL.reply("", [asked], [tool("session_search")]).text
    assert not MODEL.reply("", [user(f"Hello there\n\n{fenced}")], [tool("memory")]).tool_calls


def test_it_reads_a_whole_prompt_and_the_note_of_what_changed_since(memory: Memory) -> None:
    """What stands behind the entries is none of them; a note of changes counts more than the prompt."""
    memory.remember("User prefers tea.", "user")
    memory.remember("User's editor is Vim.", "user")
    blocks = memory.session().prompt
    ingredients = PromptInputs(memory.home.root, date(2026, 11, 15), memory=[blocks], platform="cli")
    system = build_prompt(PromptSettings(), ingredients).text
    everything = MODEL.reply(system, [user("What do you know about me?")]).text
    assert everything.splitlines()[1:] == ["- You prefer tea.", "- Your editor is Vim."]
    before = {"user": ["User prefers tea.", "User's editor is Vim."]}
    note = note_of_changes(before, {"user": ["User prefers tea.", "User's editor is Helix."]})
    assert "Your editor is Helix." in MODEL.reply(system, [user(f"Which editor do I use?\n\n{note}")]).text


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("I always use tabs.", [Fact("user", "User always uses tabs.")]),
        ("I'm Ana.", [Fact("user", "User's name is Ana.", "User's name is")]),
        ("I'm a nurse from Porto.", [Fact("user", "User is a nurse from Porto.")]),
        ("I'm tired.", []),
        ("I have a problem with the tests today.", []),
        ("Do I prefer tea?", []),
        ("Remember when we met?", []),
        ("remember: the vault is at /srv/vault", [Fact("memory", "The vault is at /srv/vault.")]),
        ("Our port is 15.", [Fact("memory", "The team's port is 15.", "The team's port is")]),
        ("The project uses ruff and mypy.", [Fact("memory", "The project uses ruff and mypy.")]),
        ("记住：我喜欢喝茶", [Fact("memory", "我喜欢喝茶")]),
        ("Merk dir, dass ich Tee mag", [Fact("memory", "ich Tee mag")]),
        ("```\nmy name is code\n```", []),
    ],
)  # fmt: skip
def test_only_what_lasts_is_a_fact(text: str, facts: list[Fact]) -> None:
    """In the third person, about the user or about their work."""
    assert facts_in(text) == facts


def test_facts_are_said_to_the_user_in_the_second_person() -> None:
    """As one speaks."""
    assert in_second_person("User never writes their tests first.") == "You never write your tests first."
    assert in_second_person("The team deploys on Fridays.") == "The team deploys on Fridays."


REQUEST = """<previous-summary>
## Goal
- Fix the deadlock in the queue.
- Latest request: an old one

## Constraints
- Never touch the schema.
</previous-summary>

<transcript>
[3] user: Please also look at src/worker.py. We decided to use port 8443.

[4] assistant: I changed src/worker.py so that jobs come first. The retry test still fails.
  calls memory {"content": "x"}

[5] user: Then fix the retry test.
</transcript>

Write the updated summary now, in at most 200 words, with exactly these headings.

## Goal
- what the user wants

## Constraints
- limits

## Decisions
- decided

## State
- done

## Files
- by name

## Open points
- left"""


def test_a_summary_has_the_headings_that_were_asked_for_and_what_was_said() -> None:
    """The previous summary is taken up, the latest request named, nothing made up."""
    text = MODEL.reply("You keep the running summary.", [user(REQUEST)]).text
    sections = {part.split("\n")[0]: part for part in text.removeprefix("## ").split("\n\n## ")}
    assert list(sections) == ["Goal", "Constraints", "Decisions", "State", "Files", "Open points"]
    assert "Fix the deadlock in the queue." in sections["Goal"]
    assert "Latest request: Then fix the retry test." in sections["Goal"]
    assert "an old one" not in text
    assert "Never touch the schema." in sections["Constraints"]
    assert "port 8443" in sections["Decisions"]
    assert "jobs come first" in sections["State"]
    assert "src/worker.py" in sections["Files"]
    assert "retry test still fails" in sections["Open points"]


def test_a_summary_keeps_to_its_length() -> None:
    """The oldest points go first."""
    lines = "\n\n".join(f"[{number}] assistant: I changed file number {number} as asked." for number in range(300))
    text = summary_for(REQUEST.replace("[3] user", f"{lines}\n\n[3] user"))
    assert len(text.split()) <= 220
    assert "Then fix the retry test." in text


def test_its_summary_is_taken_by_the_compressor() -> None:
    """Asked as the compressor asks, it gives what the compressor calls a good summary."""
    lines = [f"[{number}] user: Please set the limit of shard {number} to {number * 37}." for number in range(100, 140)]
    transcript = "\n\n".join([*lines, "[140] assistant: I changed conf/shards.yaml; all limits are set."])
    reply = MODEL.reply(prompts.SYSTEM, [user(prompts.task("", transcript, words=300, focus="the limits"))])
    sections = check_summary(reply, transcript, 600)
    assert not isinstance(sections, str), sections
    again = prompts.task(render_sections(sections), "[141] user: Now restart shard 7.", words=300)
    assert "Now restart shard 7." in MODEL.reply(prompts.SYSTEM, [user(again)]).text


def test_a_review_keeps_what_the_user_said_and_nothing_else() -> None:
    """By default there is nothing to save; what was saved in the conversation is not saved again."""
    review = user(review_prompts.request(memory=True, skills=False, tools=["memory"]))
    chat: list[Message] = [user("What is 2+2?"), {"role": "assistant", "content": "My name is Eve. Four."}]
    tools = [tool("memory"), tool("session_search")]
    assert MODEL.reply("", [*chat, review], tools).text == "Nothing to save."
    reply = MODEL.reply("", [user("I prefer tea."), *chat, review], tools)
    assert [json.loads(call.arguments)["content"] for call in reply.tool_calls] == ["User prefers tea."]
    saved = json.dumps({"success": True, "target": "user", "changed": [], "current_entries": ["User prefers tea."]})
    done: list[Message] = [reply.message(), {"role": "tool", "tool_call_id": reply.tool_calls[0].id, "content": saved}]
    after = MODEL.reply("", [user("I prefer tea."), *chat, review, *done], tools)
    assert (after.tool_calls, after.text) == ((), "Nothing to save beyond that.")


def test_it_streams_and_counts_like_a_real_one() -> None:
    """In small pieces; what was sent before is read from the cache."""
    model, heard = DemoModel(window=9_000), list[str]()
    said = [user("Hello")]
    first = model.reply("You help. " * 100, said, on_text=heard.append)
    assert "".join(heard) == first.text
    assert max(map(len, heard)) <= 6
    assert (first.usage.cache_read_tokens, model.window) == (0, 9_000)
    second = model.reply("You help. " * 100, [*said, first.message(), user("help")])
    assert second.usage.cache_read_tokens == first.usage.input_tokens
    assert second.usage.cache_write_tokens == second.usage.input_tokens - second.usage.cache_read_tokens


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [{"role": "assistant", "content": None}],
        [{"role": "tool", "tool_call_id": "x", "content": "not json"}],
        [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}],
        [user("Hi"),
         {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "memory", "arguments": "{"}}]},
         {"role": "tool", "tool_call_id": "a", "content": '{"success": false, "error": "full"}'}],
    ],
)  # fmt: skip
def test_it_answers_whatever_it_is_given(messages: list[dict[str, Any]]) -> None:
    """It is only a demo, but it never fails."""
    nothing: tuple[Tool, ...] = ()
    assert MODEL.reply("", messages, nothing).finish_reason == "stop"
