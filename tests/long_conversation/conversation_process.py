"""One process of the long conversation: it resumes where the record ends, and continues to the end of the story."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from memoranda.agent.events import Event, ToolReturned
from memoranda.api.memory import Memory, open_memory
from memoranda.api.session import Session
from memoranda.home.session_db import SessionDB
from memoranda.models.anthropic.client import AnthropicMessages
from memoranda.models.model import ChatModel
from memoranda.models.settings import ModelSettings
from tests.external.plugins import add_plugin
from tests.long_conversation import provider, story
from tests.long_conversation.acknowledgements import Acknowledged, announce

SETTINGS = """\
memory:
  provider: {provider}
budget:
  daily_usd: none
  daily_tokens: none
"""
MODEL = "claude-sonnet-4-5"


def make_home(home: Path) -> None:
    """A home with the witnessed provider, which knows something, and no budget that a long day could spend."""
    add_plugin(home, provider.NAME, provider.PLUGIN)
    (home / "config.yaml").write_text(SETTINGS.format(provider=provider.NAME))
    known = provider.Witnessed()
    known.initialize("before", hermes_home=str(home))
    for fact in story.KNOWN:
        known.handle_tool_call("fact_store", {"action": "add", "content": fact})
    known.shutdown()


def client(address: str) -> AnthropicMessages:
    return AnthropicMessages(ModelSettings(name=MODEL, base_url=address, window=story.WINDOW, tries=1), "key")


def take_up(memory: Memory) -> Session:
    """The session in which the conversation stands now."""
    tip = memory.sessions.get_compression_tip(story.FIRST_SESSION)
    return memory.session(source="cli", model=MODEL, session_id=tip or story.FIRST_SESSION)


def resume_conversation(
    home: Path,
    address: str,
    acknowledged: Acknowledged,
    *,
    to: int = story.TURNS,
    model: Callable[[ChatModel, Memory], ChatModel] = lambda model, memory: model,
) -> None:
    """Tell the story from where it stands; `model` may put something around the client."""
    with open_memory(home) as memory:
        session = take_up(memory)
        _acknowledge(session, acknowledged)

        def listen(event: Event) -> None:
            if isinstance(event, ToolReturned) and event.call.name == "memory" and event.result["success"]:
                acknowledged.saved(story.entry_of(int(event.call.id.split("-")[1])))

        agent = memory.agent(
            model(client(address), memory), session=session, tools=[story.LOG_TOOL], on_text=lambda text: None,
            on_event=listen,
        )  # fmt: skip
        turn, attempt = next_turn(memory.sessions)
        while turn < to:
            announce(f"turn {turn}")
            agent.turn(story.numbered(turn, attempt))
            turn, attempt = turn + 1, 0


def next_turn(db: SessionDB) -> tuple[int, int]:
    """The turn that is next by the record, and how often it was asked before."""
    asked = {number: done for number, done in turns(db)}
    if not asked:
        return 0, 0
    turn, attempt = max(asked)
    return (turn + 1, 0) if asked[turn, attempt] else (turn, attempt + 1)


def turns(db: SessionDB) -> list[tuple[tuple[int, int], bool]]:
    """Every turn of the record, and whether it was answered."""
    found: list[tuple[tuple[int, int], bool]] = []
    for message in recorded(db):
        number = story.number_of(str(message["content"])) if message["role"] == "user" else None
        if number is not None:
            found.append((number, False))
        elif message["role"] == "assistant" and not message.get("tool_calls"):
            found[-1] = (found[-1][0], True)
    return found


def recorded(db: SessionDB) -> list[dict[str, Any]]:
    """Everything that was said, once, in order, whatever session it is in."""
    every = [each for session in db.get_compression_lineage(story.FIRST_SESSION) for each in db.get_messages(session)]
    return sorted(
        (each for each in every if not each["copy_of"] and not each["is_summary"]), key=lambda each: each["id"]
    )


def _acknowledge(session: Session, acknowledged: Acknowledged) -> None:
    """Have everything noted that the session says it has recorded."""
    record_all = session.record_all

    def noted(messages: Sequence[Mapping[str, Any]]) -> list[int]:
        ids = record_all(messages)
        acknowledged.messages(ids, messages)
        return ids

    session.record_all = noted  # type: ignore[method-assign]
