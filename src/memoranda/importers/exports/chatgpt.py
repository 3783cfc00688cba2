"""Reads the export of ChatGPT: `conversations.json` of any year, or its numbered parts, packed or unpacked.

A conversation is a tree, because a message can be edited and an answer asked for again. The line that its owner sees is
the session; every other line becomes a branch of it that has only what is its own.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from memoranda.importers.exports.archives import exports, opened
from memoranda.importers.exports.chatgpt_content import chat_message, custom_instructions, is_call
from memoranda.importers.exports.elements import Element, elements
from memoranda.importers.exports.naming import branch_name, conversation_of, message_name
from memoranda.importers.exports.strands import Strand, strands
from memoranda.importers.moments import moment
from memoranda.importers.shape import Aside, Conversation, Given, Imported, Item, Problem

_FACTS = ("gizmo_id", "conversation_template_id", "conversation_origin", "is_archived", "is_starred", "update_time")


class ChatGPT:
    """The reader of ChatGPT's export."""

    name = "chatgpt"

    def scan(self, where: Path | None) -> Sequence[Item]:
        """The lists of conversations under `where`, or among the downloads."""
        return exports(where, "mapping", "chat_messages")

    def read(self, item: Item) -> Iterator[Given]:
        """The conversations of a list, one after the other."""
        with opened(item) as stream:
            for found in elements(stream, item.file):
                if isinstance(found, Problem):
                    yield found
                else:
                    yield from _Tree(found, item.file).given()

    def resume_command(self, host_id: str, directory: str | None) -> str:
        """The address of the conversation; in a browser it goes on from there."""
        return f"https://chatgpt.com/c/{conversation_of(host_id)}"


class _Tree:
    """One conversation of the list."""

    def __init__(self, element: Element, file: Path) -> None:
        self._value = element.value if isinstance(element.value, Mapping) else {}
        self._number, self._line, self._file = element.number, element.line, file
        host_id, mapping = self._value.get("conversation_id") or self._value.get("id"), self._value.get("mapping")
        self._host_id = host_id if isinstance(host_id, str) else ""
        self._nodes: Mapping[str, Any] = mapping if isinstance(mapping, Mapping) else {}
        self._told = [found for node in self._nodes.values() if (found := custom_instructions(_message(node)))]
        self._calls: dict[str, str] = {}
        self._first: Imported | None = None

    def given(self) -> Iterator[Given]:
        host_id = self._host_id
        if not host_id or not isinstance(self._value.get("mapping"), Mapping):
            yield self._problem(f"element {self._number} of the list is no conversation: it has no id or no messages")
            return
        names: list[str] = []
        current = self._value.get("current_node")
        for strand in strands(self._parents(), current if isinstance(current, str) else None):
            parent = names[strand.leaves] if strand.leaves is not None else host_id if names else None
            # What people see keeps the name of the conversation; a branch is called after where it begins.
            names.append(branch_name(host_id, strand.nodes[0]) if names else host_id)
            yield from self._strand(names[-1], parent, strand)

    def _parents(self) -> dict[str, str | None]:
        parents: dict[str, str | None] = {}
        for name, node in self._nodes.items():
            parent = node.get("parent") if isinstance(node, Mapping) else None
            parents[name] = parent if isinstance(parent, str) else None
        return parents

    def _strand(self, host_id: str, parent: str | None, strand: Strand) -> Iterator[Given]:
        messages = [found for name in strand.nodes for found in self._node(name)]
        said = [each for each in messages if isinstance(each, Imported)]
        if said:
            yield self._conversation(host_id, parent, said)
            if self._first is None:
                self._first = said[0]
            elif parent is not None:
                # By the message that all branches begin with they are known as one family.
                yield self._first
        yield from messages

    def _conversation(self, host_id: str, parent: str | None, said: list[Imported]) -> Conversation:
        value = self._value
        models = [each.message["model"] for each in said if each.message.get("model")]
        model = models[-1] if models else value.get("default_model_slug")
        title = value.get("title")
        started = moment(value.get("create_time")) if parent is None else said[0].message.get("timestamp")
        facts = {f"chatgpt_{name}": value[name] for name in _FACTS if value.get(name)}
        if self._told:
            facts["chatgpt_custom_instructions"] = self._told[-1]
        return Conversation(
            host_id,
            title if isinstance(title, str) and parent is None else None,
            model if isinstance(model, str) else None,
            None,
            started,
            parent,
            "branch" if parent else None,
            extra=facts,
        )

    def _node(self, name: str) -> Iterator[Given]:
        node = self._nodes[name]
        message = _message(node)
        if not message:
            if isinstance(node, Mapping) and node.get("message") in (None, {}):
                yield Aside("place without a message")
            else:
                yield self._problem(f"message {name} cannot be understood")
            return
        author = message.get("author")
        role = author.get("role") if isinstance(author, Mapping) else None
        if not isinstance(role, str) or not role:
            yield self._problem(f"message {name} does not say who wrote it")
            return
        if custom_instructions(message) is not None:
            yield Aside("custom instructions, kept with the session")
            return
        parent = node.get("parent")
        answers = self._calls.get(parent) if isinstance(parent, str) else None
        # The node's name is its message's, and unlike that it is unique by its nature; conversations may share it.
        external_id = message_name(self._host_id, name)
        found = chat_message(message, role, external_id, answers)
        if is_call(message):
            self._calls[name] = external_id
        elif role == "tool" and answers:
            # Several outputs of one call stand in a row.
            self._calls[name] = answers
        yield Aside("empty message") if found is None else Imported(found, self._line)

    def _problem(self, text: str) -> Problem:
        return Problem(self._file, self._line, text)


def _message(node: Any) -> Mapping[str, Any]:
    message = node.get("message") if isinstance(node, Mapping) else None
    return message if isinstance(message, Mapping) else {}
