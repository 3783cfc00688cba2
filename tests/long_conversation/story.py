"""What is said in the long conversation: the user's words, and the model's answers as a function of the request.

Every message of the user begins with its turn and how often it was asked, so that an answer depends on nothing but the
request: a process that asks again after a crash gets the same steps.
"""

import json
import re
from dataclasses import dataclass

from memoranda.agent.compression.prompts import SECTIONS
from memoranda.agent.compression.prompts import SYSTEM as SUMMARISE
from memoranda.models.model import Message, Reply, ToolCall
from memoranda.safety.fence import sanitize_context
from memoranda.support.tool import JsonObject, Tool
from memoranda.testing.scripted.steps import ReceivedRequest, Slow, Step

TURNS = 200
FIRST_SESSION = "long-conversation"
# Small enough for several compressions.
WINDOW = 32_000
RULE = "From now on, never restart the ferry scheduler without asking me."
REVIEW = "[Background review."
_SUBJECTS = ("ferry", "harbour", "lighthouse", "dredger", "customs", "pilotage", "towage", "bunker", "crane", "berth",
             "quay", "silo", "weighbridge", "lock", "beacon", "tide")  # fmt: skip
_THINGS = ("manifest", "roster", "tariff", "ledger", "permit", "gauge", "chart", "invoice", "backup", "antenna",
           "checksum", "mirror", "turbine")  # fmt: skip
_TEAMS = ("Anchor", "Bollard", "Capstan", "Davit")
_NUMBERED = re.compile(r"\[(\d+)\.(\d+)\] ")
_CALL_ID = re.compile(r"call-(\d+)-(\d+)-(\d+)")


@dataclass(frozen=True, slots=True)
class Planted:
    """A fact that is said once, and how the user asks for it later."""

    sentence: str
    query: str


def _planted(number: int) -> Planted:
    subject, thing = _SUBJECTS[number % 16], _THINGS[number % 13]
    code = 4_000 + 37 * number
    kinds = (
        f"The {thing} of the {subject} service lies in /srv/{subject}/{thing}-{code}.yaml.",
        f"The {thing} of the {subject} service may take {code} milliseconds at most.",
        f"We decided to keep the {thing} of the {subject} service in SQLite, decision D-{code}.",
        f"The current task is to migrate the {thing} of the {subject} service, ticket OPS-{code}.",
    )
    return Planted(kinds[(number + 2) % 4], f"{subject} {thing}")


FACTS = tuple(_planted(number) for number in range(50))
ENTRIES = tuple(
    f"The {subject} service is run by team {team} and deployed on {day}s."
    for subject, team, day in zip(
        _SUBJECTS,
        _TEAMS * 4,
        ("Monday", "Tuesday", "Wednesday", "Thursday") * 4,
        strict=True,
    )
)

# What the external memory knows before the conversation begins.
KNOWN = tuple(f"{team} is a team with {5 + place} people, who meet at 9:{place}5." for place, team in enumerate(_TEAMS))


def said(turn: int) -> str:
    """What the user says in a turn."""
    subject = _SUBJECTS[turn * 7 % 16]
    if turn % 4 == 1:
        return f"Please note: {FACTS[turn // 4].sentence}" + (f" {RULE}" if turn == 9 else "")
    match turn % 12:
        case 3 | 7 if entry_of(turn):
            return f"Remember this: {entry_of(turn)}"
        case 3 | 7:
            return f"Who runs the {subject} service, and when is it deployed?"
        case 10:
            return f"Keep as a fact that the {subject} service has {turn} users."
    return f"{_TEAMS[turn % 4]} asks about the {subject} service: read part {turn} of its log."


def entry_of(turn: int) -> str:
    """What the user wants remembered in a turn; empty when it is nothing."""
    number = turn // 12 * 2 + (turn % 12 == 7)
    return ENTRIES[number] if turn % 12 in (3, 7) and number < len(ENTRIES) else ""


def steps(turn: int, attempt: int) -> list[Reply]:
    """How the model answers it: calls of tools, one after the other, and words at the end."""
    subject = _SUBJECTS[turn * 7 % 16]
    if turn % 4 == 1:
        return [Reply("I have noted that.")]
    calls: list[tuple[str, JsonObject]]
    match turn % 12:
        case 3 | 7 if entry_of(turn):
            calls = [("memory", {"target": "memory", "action": "add", "content": entry_of(turn)})]
        case 3 | 7:
            return [Reply("It is as you told me earlier; the details are in memory.")]
        case 10:
            fact = f"The {subject} service has {turn} users."
            calls = [("fact_store", {"action": "add", "content": fact})]
        case _:
            calls = [("read_log", {"service": subject, "part": turn * 10 + step}) for step in range(1 + turn % 3)]
    made = [
        Reply("", (ToolCall(f"call-{turn}-{attempt}-{step}", name, json.dumps(arguments)),))
        for step, (name, arguments) in enumerate(calls)
    ]
    return [*made, Reply(f"Done with {len(made)} steps: nothing unusual so far.")]


def numbered(turn: int, attempt: int) -> str:
    """The user's message as it is recorded."""
    return f"[{turn}.{attempt}] {said(turn)}"


def number_of(text: str) -> tuple[int, int] | None:
    """The turn and the attempt that a message of the user belongs to."""
    match = _NUMBERED.match(text)
    return (int(match[1]), int(match[2])) if match else None


def answer(received: ReceivedRequest) -> Step:
    """The script of the server."""
    system, messages, _ = received.conversation
    if system == SUMMARISE:
        return Slow(Reply(_summary_of(str(messages[-1]["content"]))), before=0.03)
    asked = max(place for place, message in enumerate(messages) if message["role"] == "user")
    words = sanitize_context(str(messages[asked]["content"]))
    if words.startswith(REVIEW):
        return Reply("Nothing to save.")
    known = number_of(words)
    if known is None:
        return Reply(f"This is not part of the story: {words[:80]}")
    return steps(*known)[_next_step(messages, asked)]


def _summary_of(request: str) -> str:
    """A summary of what was said, in its own words: the latest lines of the user, under every heading."""
    spoken = re.findall(r"^\[\d+\] user> (.+)$", request, re.MULTILINE)
    return "\n\n".join(f"## {name}\n- {line[:200]}" for name, line in zip(SECTIONS, spoken[-6:] * 6, strict=False))


def _next_step(messages: list[Message], asked: int) -> int:
    last = messages[-1]
    match = _CALL_ID.fullmatch(str(last.get("tool_call_id"))) if last["role"] == "tool" else None
    return int(match[3]) + 1 if match and len(messages) > asked + 1 else 0


def read_log(arguments: object) -> JsonObject:
    """The log of a service, always the same."""
    given = arguments if isinstance(arguments, dict) else {}
    service, part = given.get("service"), int(given.get("part", 0))
    lines = [
        f"{6 + line // 60:02}:{line % 60:02} {service}[{part}] request {part * 97 + line * 13} took {20 + line * 7} ms"
        for line in range(12)
    ]
    return {"success": True, "lines": lines}


LOG_TOOL = Tool(
    "read_log",
    "Read a part of a service's log.",
    {
        "type": "object",
        "properties": {"service": {"type": "string"}, "part": {"type": "integer"}},
        "required": ["service", "part"],
    },
    read_log,
)
