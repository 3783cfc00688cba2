"""Reads what Letta and Letta Code keep or export: agent files, saved pages, conversations and Markdown memory.

*An agent file* (`.af`): the messages become a session, and the memory blocks become notes. What a block says about the
user and about the agent is proposed for curated memory, too. The source code of tools in the file is not read. Ids in
it (`agent-0`, `message-3`) are new in every export, so an agent is known by its name, and a message by its time and
text.

*Saved pages* of messages or archival memory, which Letta's server answers with. An agent file has the latest messages
only, so these pages are the way to have all of them. What a message is, its `message_type` says; the parts of one step,
such as a thought and a call of a tool, have the same id. Messages do not name their agent, so the session has the name
of the file. The server wraps some texts in JSON: `{"type": "user_message", "message": …}` around the words of a user,
and `{"status": "OK", "message": …}` around the result of a tool. An agent of the MemGPT kind speaks by calling the tool
`send_message`, and the text of its messages is what it thinks.

*The conversations of Letta Code*, whose local backend keeps them in files:

    conversations/<name>/conversation.json   the ids of the conversation and of its agent, and a title
    conversations/<name>/messages.jsonl      a line per message, in the format of pi
    agents/<name>.json                       the agent, with its model

A message that changed is written again, at the end, with the same id; the last line with an id is the message. Ids of
messages are unique in a conversation only, and those of conversations in one directory.

*The Markdown memory of Letta Code's agents*, each of which is a Git repository:

    agents/<agent>/memory            an agent of a server
    memfs/<agent>/memory             an agent of the local backend

What is in every prompt of the agent are the files in `system`; in a memory with a `MEMORY.md` at its root, the files
beside that.
"""

import shlex
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from memoranda.importers.chat_messages import (
    as_text,
    chat_events,
    content_text,
    dicts_in,
    get_field,
    get_text,
    parse_timestamp,
    reasoning_message,
    short_digest,
    text_message,
    to_json,
    tool_call_message,
    tool_result_message,
)
from memoranda.importers.notes import find_markdown, markdown_events, note, notes_of
from memoranda.importers.pi_messages import convert_message
from memoranda.importers.reader_protocol import (
    ImportedConversation,
    ImportedMessage,
    ImportedProposal,
    ImportItem,
    Problem,
    ReadEvent,
    Skipped,
)
from memoranda.importers.source_files import find_files, item_at, item_beside, read_json_file, read_json_lines
from memoranda.memory.curated.settings import Target
from memoranda.support.json_object import parse_json, parse_object

PROGRAM = "letta"
_TARGETS: dict[str, Target] = {"human": "user", "persona": "memory"}
_SPEAK = "send_message"
_EVENTS = frozenset({"login", "heartbeat"})
STORAGE = "lc-local-backend"
"""The directory in `~/.letta`; LETTA_LOCAL_BACKEND_DIR moves it."""
FILE_NAME = "messages.jsonl"
_REMINDER = ("<system-reminder>", "</system-reminder>")
_REPOSITORIES = (
    ".git",
    "agents/*/memory/.git",
    "memfs/*/.git",
    "memfs/*/memory/.git",
    f"{STORAGE}/memfs/*/memory/.git",
)
_AGENT_FILE, _PAGE = "agent file", "page"


class Letta:
    name = PROGRAM

    def scan(self, path: Path | None) -> Sequence[ImportItem]:
        """Return agent files, pages, conversations and memories under a path, or in Letta's own directory."""
        own = Path.home() / ".letta"
        path = own if path is None else path
        if single := item_at(path, _AGENT_FILE if path.suffix == ".af" else _PAGE):
            return [single]
        found = find_files(path, lambda file: file.suffix == ".af", _AGENT_FILE)
        if path != own and not (path / "conversations").is_dir():
            # In Letta's own directories, such files are settings.
            found += find_files(path, _may_be_page, _PAGE)
        return [*found, *find_transcripts(path), *find_memories(path)]

    def read(self, item: ImportItem) -> Iterator[ReadEvent]:
        if item.file.suffix == ".md":
            yield from read_memory_file(item)
        elif item.file.name == FILE_NAME:
            yield from read_transcript(item)
        else:
            yield from _read_json(item)

    def resume_command(self, host_id: str, directory: str | None) -> str:
        """Return the command that continues a conversation of Letta Code's local backend; "" for an agent's."""
        agent, _, conversation = host_id.partition("/")
        if not conversation:
            return ""
        chosen = ["--agent", agent] if conversation == "default" else ["--conversation", conversation]
        return shlex.join(["letta", "--backend", "local", *chosen])


def propose(label: str, text: str, agent: str) -> Iterator[ReadEvent]:
    """Yield a proposal for the blocks that every agent has: who the user is, and who the agent is."""
    if label in _TARGETS:
        yield ImportedProposal(_TARGETS[label], text, f"block {label} of Letta agent {agent}")


def thinks_aloud(messages: list[dict[str, Any]]) -> bool:
    """Whether the texts of an agent are its thoughts, because it speaks with a tool."""
    return any(get_text(call, "function", "name") == _SPEAK for message in messages for call in _calls(message))


def server_events(message: dict[str, Any], name: str, at: Any, *, aloud: bool) -> Iterator[ReadEvent]:
    """Yield the messages of one message; `aloud` says that the agent's texts are thoughts."""
    text = content_text(message.get("content"))
    if message.get("role") == "user":
        yield from user_events(text, name, at)
    elif message.get("role") == "tool" and message.get("name") == _SPEAK:
        yield Skipped(f"result of {_SPEAK}")
    elif message.get("role") == "tool":
        yield from chat_events(message, name, at, result_text(text))
    elif message.get("role") == "assistant" and aloud and _calls(message):
        yield from _thought_and_words(message, text, name, at)
    else:
        yield from chat_events(message, name, at, text)


def user_events(text: str, name: str, at: Any) -> Iterator[ReadEvent]:
    """Yield the words of a user, or the summary of earlier messages; other messages of the server are skipped."""
    packed = _unpack(text)
    kind, inner = packed.get("type"), get_text(packed, "message")
    if kind in _EVENTS:
        yield Skipped("event of the server")
    elif kind == "system_alert" and inner:
        yield text_message("user", inner, name, at, is_summary=True)
    elif kind == "user_message" and inner:
        yield text_message("user", inner, name, at)
    else:
        yield from chat_events({"role": "user"}, name, at, text)


def result_text(text: str) -> str:
    """Return what a tool returned, without what the server wraps it in."""
    packed = _unpack(text)
    return as_text(packed["message"]) if {"status", "message"} <= packed.keys() else text


def _thought_and_words(message: dict[str, Any], text: str, name: str, at: Any) -> Iterator[ReadEvent]:
    if text.strip():
        yield reasoning_message(text, f"{name}/thought", at)
    others = []
    for number, call in enumerate(_calls(message)):
        words = get_text(_unpack(get_field(call, "function", "arguments")), "message")
        if get_text(call, "function", "name") == _SPEAK and words:
            yield text_message("assistant", words, f"{name}/{number}" if number else name, at)
        else:
            others.append(call)
    if others:
        yield from chat_events({"role": "assistant", "tool_calls": others}, name, at)


def _calls(message: dict[str, Any]) -> list[dict[str, Any]]:
    return dicts_in(message.get("tool_calls"))


def _unpack(text: Any) -> dict[str, Any]:
    """Return the object that a text is in JSON; an empty one for other texts."""
    return parse_object(text) or {}


def read_agents(file: dict[str, Any]) -> Iterator[ReadEvent]:
    """Yield the agents of a file: of each its blocks, then its messages."""
    blocks = {block.get("id"): block for block in dicts_in(file.get("blocks"))}
    for agent in dicts_in(file["agents"]):
        name = get_text(agent, "name") or "agent"
        listed = agent.get("block_ids")
        own = (
            [blocks[key] for key in listed if isinstance(key, str) and key in blocks]
            if isinstance(listed, list)
            else []
        )
        yield notes_of(PROGRAM, name, f"Letta: memory of {name}")
        for block in [*own, *dicts_in(agent.get("memory_blocks"))]:
            label, text = get_text(block, "label") or "block", get_text(block, "value")
            if text:
                origin = {field: block.get(field) for field in ("description", "limit", "read_only")}
                yield note(name, label, text.strip(), file.get("created_at"), {"label": label, **origin})
                yield from propose(label, text.strip(), name)
        yield ImportedConversation(name, f"Letta: {name}", get_text(agent, "llm_config", "model"))
        messages = _in_order(dicts_in(agent.get("messages")))
        aloud = thinks_aloud(messages)
        for message in messages:
            at = message.get("created_at")
            known_by = short_digest(str(at), to_json([message.get("role"), message.get("content")]))
            yield from server_events(message, f"{name}:{known_by}", at, aloud=aloud)


def _in_order(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return messages by their time: the server writes some, and then the others that the agent still sees."""
    times = [parse_timestamp(message.get("created_at")) for message in messages]
    if None in times:
        return messages
    return sorted(messages, key=lambda message: parse_timestamp(message["created_at"]) or 0.0)


def messages_on(value: Any) -> list[dict[str, Any]]:
    """Return the messages on a page, the oldest first; the server's default order depends on its version."""
    listed = value.get("messages") if isinstance(value, dict) else value
    found = [entry for entry in dicts_in(listed) if "message_type" in entry]
    times = [parse_timestamp(entry.get("date")) or 0.0 for entry in found]
    if times and times[0] > times[-1]:
        found.reverse()
    return found


def read_messages(item: ImportItem, messages: list[dict[str, Any]]) -> Iterator[ReadEvent]:
    """Yield the session of a page and its messages."""
    name = item.file.stem
    yield ImportedConversation(name, f"Letta: {name}")
    for message in messages:
        yield from _events(message, f"{name}:{message.get('id')}")


def _events(message: dict[str, Any], name: str) -> Iterator[ReadEvent]:
    kind, at, text = message.get("message_type"), message.get("date"), content_text(message.get("content"))
    if kind == "user_message":
        yield from user_events(text, name, at)
    elif kind == "assistant_message" and text.strip():
        yield text_message("assistant", text, name, at)
    elif kind == "reasoning_message" and (thought := get_text(message, "reasoning")):
        yield reasoning_message(thought, f"{name}/thought", at)
    elif kind == "tool_call_message":
        calls = dicts_in(message.get("tool_calls")) or dicts_in([message.get("tool_call")])
        for call in calls:
            call_id = str(call.get("tool_call_id"))
            yield tool_call_message((call_id, str(call.get("name")), call.get("arguments")), f"{name}/{call_id}", at)
    elif kind == "tool_return_message":
        answered = str(message.get("tool_call_id"))
        result = as_text(message.get("tool_return"))
        yield tool_result_message((answered, get_text(message, "name") or ""), result, f"{name}/{answered}", at)
    elif kind == "system_message":
        yield Skipped("instructions of a program")
    else:
        yield Skipped(f"message without text: {str(kind)[:40]}")


def passages_of(value: Any) -> list[dict[str, Any]]:
    """Return the passages on a page of archival memory, in every form of the API."""
    listed = value.get("passages", value.get("results")) if isinstance(value, dict) else value
    return [entry.get("passage") or entry for entry in dicts_in(listed) if "text" in (entry.get("passage") or entry)]


def read_passages(item: ImportItem, passages: list[dict[str, Any]]) -> Iterator[ReadEvent]:
    for passage in passages:
        owner = get_text(passage, "archive_id") or get_text(passage, "agent_id") or item.file.stem
        text, name = get_text(passage, "text"), get_text(passage, "id")
        if not text or not name:
            yield Problem(item.file, None, "a passage without id or text")
            continue
        yield notes_of(PROGRAM, f"archive/{owner}", f"Letta: archival memory of {owner}")
        at = passage.get("created_at") or passage.get("updated_at")
        yield note(
            f"archive/{owner}", name, text, at, {key: passage.get(key) for key in ("tags", "metadata", "source_id")}
        )


def find_transcripts(path: Path) -> list[ImportItem]:
    """Return the conversations under Letta's own directory, or under that of its local backend."""
    directories = [path / STORAGE / "conversations", path / "conversations"]
    return [item for each in directories for item in find_files(each, lambda file: file.name == FILE_NAME, "messages")]


def read_transcript(item: ImportItem) -> Iterator[ReadEvent]:
    """Yield one conversation and its messages."""
    latest: dict[str, int] = {}
    for line in read_json_lines(item):
        if isinstance(line, Problem):
            yield line
        elif name := get_text(_message_of(line.value), "id"):
            latest[name] = line.number
    if latest:
        yield from _read_lines(item, latest)


def _read_lines(item: ImportItem, latest: dict[str, int]) -> Iterator[ReadEvent]:
    """Yield the messages, of each the last version, whose line number is in `latest`."""
    conversation: ImportedConversation | None = None
    for line in read_json_lines(item):
        if isinstance(line, Problem):
            continue
        conversation = conversation or _describe(item, line.value)
        message = _message_of(line.value)
        name = get_text(message, "id")
        if line.value.get("type") == "session":
            continue
        if name is None:
            yield Skipped(f"line without a message: {str(line.value.get('type'))[:40]}")
        elif latest.get(name) != line.number:
            yield Skipped("earlier version of a message")
        elif (converted := _convert(line.value, message)) is None:
            yield Skipped("message without text")
        else:
            yield conversation
            at = get_text(message, "metadata", "created_at") or line.value.get("timestamp") or message.get("timestamp")
            known_by = {"external_id": f"{conversation.host_id}:{name}", "timestamp": at}
            yield ImportedMessage({**converted, **known_by}, line.number)


def _message_of(value: dict[str, Any]) -> dict[str, Any]:
    """Return the message in a line; in the first version, the line itself is the message."""
    message = value.get("message", value if "role" in value else {})
    return message if isinstance(message, dict) else {}


def _convert(value: dict[str, Any], message: dict[str, Any]) -> dict[str, Any] | None:
    if value.get("type") == "compaction" and (summary := get_text(value, "summary")):
        return {"role": "user", "content": summary, "is_summary": True}
    content = message.get("content")
    if message.get("role") == "user" and isinstance(content, list):
        message = {**message, "content": [part for part in content if not _is_reminder(part)]}
    return convert_message(message)


def _is_reminder(part: Any) -> bool:
    """Whether Letta Code wrote this part of the user's message, for example about the time and the directory."""
    text = (get_text(part, "text") or "").strip()
    return text.startswith(_REMINDER[0]) and text.endswith(_REMINDER[1]) and text.count(_REMINDER[0]) == 1


def _describe(item: ImportItem, first: dict[str, Any]) -> ImportedConversation:
    """Return the conversation by what the files beside its messages and the first line say."""
    about = _read(item.file, item.file.with_name("conversation.json"))
    name = get_text(about, "id") or get_text(first, "id") or item.file.parent.name
    agent_id = get_text(about, "agent_id") or ""
    encoded = urlsafe_b64encode(agent_id.encode()).decode().rstrip("=")
    agent = _read(item.file, item.file.parent.parent.parent / "agents" / f"{encoded}.json") if agent_id else {}
    return ImportedConversation(
        f"{agent_id}/{name}" if agent_id else name,
        get_text(about, "summary"),
        get_text(agent, "model"),
        get_text(first, "cwd"),
        parse_timestamp(about.get("created_at") or first.get("timestamp")),
    )


def _read(source: Path, file: Path) -> dict[str, Any]:
    item = item_beside(source, file, "")
    value = read_json_file(item) if item else None
    return value if isinstance(value, dict) else {}


def find_memories(path: Path) -> list[ImportItem]:
    """Return the files of all memories under Letta's own directory, or of the memory that `path` is."""
    try:
        repositories = {found.parent for pattern in _REPOSITORIES for found in path.glob(pattern)}
    except OSError:
        return []
    return [item for repository in sorted(repositories) for item in find_markdown(repository)]


def read_memory_file(item: ImportItem) -> Iterator[ReadEvent]:
    """Yield one file as a note, and as a proposal if it says who the user or the agent is."""
    memory = Path(item.label)
    agent = memory.parent.name if memory.name in ("memory", "memfs") else memory.name
    core = memory if (memory / "MEMORY.md").is_file() else memory / "system"
    for event in markdown_events(item, PROGRAM, agent, f"Letta: memory of {agent}"):
        yield event
        if isinstance(event, ImportedMessage) and item.file.parent == core:
            yield from propose(item.file.stem, event.message["content"], agent)


def _may_be_page(file: Path) -> bool:
    return file.suffix == ".json" and not {".git", STORAGE}.intersection(file.parts)


def _read_json(item: ImportItem) -> Iterator[ReadEvent]:
    value = read_json_file(item)
    if isinstance(value, str):
        # Some versions write the JSON as text inside JSON.
        value = parse_json(value)
    if isinstance(value, Problem):
        yield value
    elif isinstance(value, dict) and isinstance(value.get("agents"), list):
        yield from read_agents(value)
    elif messages := messages_on(value):
        yield from read_messages(item, messages)
    elif passages := passages_of(value):
        yield from read_passages(item, passages)
    else:
        yield Problem(item.file, None, "neither an agent file of Letta nor a page of messages or archival memory")
