"""Answers as a small model would, by rules and without a script: for vendors' servers that need a model.

Facts are the statements of the user's text, word for word; an answer is the sentences that share most words with the
question. A request for JSON gets a document that is valid under its schema and holds the facts. A required tool call
gets arguments that are valid under the tool's schema.

    ScriptedServer(RuleModel())
    ScriptedServer(RuleModel(calls=["save_note"]))     calls this tool once in every turn that offers it
"""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from memoranda.models.model import Message, Reply, ToolCall
from memoranda.search.index.tokenizer import STOP_WORDS
from memoranda.support.tool import JsonObject, Tool
from memoranda.testing.scripted.schema_filler import Material, SchemaFillerError, fill_schema
from memoranda.testing.scripted.steps import ReceivedRequest, Refuse

_SECTIONS = (
    re.compile(r"<messages>\n?(.*?)</messages>", re.DOTALL),
    re.compile(r"^## New Messages\n(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE),
    re.compile(r"^### New facts\n(.*?)(?=^### |\Z)", re.DOTALL | re.MULTILINE),
    re.compile(r"^(?:Content|Text):\n(.*)\Z", re.DOTALL | re.MULTILINE),
)
_SPEAKER = re.compile(r"^\s*(?:\[[^\]]*\]\s*)?(?:\d{4}-\d\d-\d\d[T ]?[\d:.+Z-]*\s+)?(?:([\w.@-]{1,64}):\s+)?(?=\S)")
_OTHER_SPEAKERS = ("assistant", "ai", "system", "tool", "bot", "model")
_TRAILING_LABELS = re.compile(r"\s*\(\w+=[^()]*\)$", re.MULTILINE)
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|\n+")
_MIN_WORDS = 3
_MAX_FACTS = 50


def message_text(message: Message) -> str:
    """The text of a message, whose content may be a text or a list of parts."""
    content: Any = message.get("content")
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", "")) for part in content or () if isinstance(part, dict))


def find_facts(prompt: str) -> tuple[str, ...]:
    """The statements of the user in a prompt, each once; questions and what an assistant said are not facts.

    A prompt that asks for an extraction marks the text that it means; without a mark it is the whole prompt.
    """
    facts = dict.fromkeys(
        sentence
        for text in _user_texts(_marked_text(prompt))
        for sentence in split_sentences(text)
        if _is_fact(sentence)
    )
    return tuple(facts)[:_MAX_FACTS]


def answer_question(question: str, context: Iterable[str], limit: int = 3) -> str:
    """The sentences of the context that share most words with the question, best first; empty where none does."""
    asked = _words(question)
    sentences = dict.fromkeys(sentence for text in context for sentence in split_sentences(text))
    ranked = sorted(((len(asked & _words(sentence)), sentence) for sentence in sentences), key=lambda pair: -pair[0])
    return " ".join(sentence for shared, sentence in ranked[:limit] if shared >= 2)


def split_sentences(text: str) -> list[str]:
    return [sentence.strip() for sentence in _SENTENCE_END.split(text) if sentence.strip()]


def _marked_text(prompt: str) -> str:
    for section in _SECTIONS:
        found = section.search(prompt)
        if found:
            return _TRAILING_LABELS.sub("", found[1].strip())
    return prompt


def _user_texts(text: str) -> list[str]:
    """What the user said in a transcript, in JSON or with the speaker before each line."""
    try:
        turns = json.loads(text)
    except ValueError:
        return _spoken_lines(text)
    if not isinstance(turns, list):
        return [text]
    return [message_text(turn) for turn in turns if isinstance(turn, dict) and turn.get("role", "user") == "user"]


def _spoken_lines(text: str) -> list[str]:
    """The lines without speakers and times; lines of assistants are omitted, and so are those that continue them."""
    lines: list[str] = []
    skip = False
    for line in text.splitlines():
        prefix = _SPEAKER.match(line)
        speaker = prefix[1] if prefix else None
        if speaker:
            skip = speaker.casefold() in _OTHER_SPEAKERS
        if not skip:
            lines.append(line[prefix.end() :] if prefix else line)
    return lines


def _is_fact(sentence: str) -> bool:
    return not sentence.endswith(("?", "？")) and (len(sentence.split()) >= _MIN_WORDS or not sentence.isascii())


def _words(text: str) -> set[str]:
    return {word for word in re.findall(r"\w+", text.casefold()) if word not in STOP_WORDS}


_FINAL_TOOLS = ("done", "finish", "final", "answer", "respond", "submit", "complete")


class RuleModel:
    """A script that answers every request by rules; `calls` names tools to call although none is required."""

    def __init__(self, calls: Iterable[str] = ()) -> None:
        self._calls = tuple(calls)

    def __call__(self, received: ReceivedRequest) -> Reply | Refuse:
        system, messages, tools = received.conversation
        material = _material(system, messages)
        try:
            tool = self._tool_to_call(received.json, messages, tools)
            if tool is not None:
                arguments = json.dumps(fill_schema(dict(tool.parameters), material), ensure_ascii=False)
                call = ToolCall(f"call_{received.number}", tool.name, arguments)
                return Reply("", (call,), finish_reason="tool_calls")
            document = _document(received.json, system, messages, material)
        except SchemaFillerError as error:
            return Refuse(400, str(error), "invalid_request_error")
        if document is not None:
            return Reply(json.dumps(document, ensure_ascii=False))
        return Reply(material.answer or "There is nothing to say.")

    def _tool_to_call(self, body: JsonObject, messages: Sequence[Message], tools: Sequence[Tool]) -> Tool | None:
        """The tool that the request requires, or one that this model was made to call."""
        by_name = {tool.name: tool for tool in tools}
        called = _called_in_turn(messages)
        required, name = _tool_choice(body.get("tool_choice"))
        if name:
            return by_name.get(name)
        if required:
            final = [tool for tool in tools if tool.name.casefold().startswith(_FINAL_TOOLS)]
            unused = [tool for tool in tools if tool.name not in called and tool not in final]
            return next(iter([*unused, *final, *tools]), None)
        return next((by_name[name] for name in self._calls if name in by_name and name not in called), None)


def _material(system: str, messages: Sequence[Message]) -> Material:
    asked = next((message_text(each) for each in reversed(messages) if each.get("role") == "user"), "")
    facts = find_facts(asked)
    results = [message_text(each) for each in messages if each.get("role") == "tool"]
    context = [system, *(message_text(each) for each in messages[:-1]), *results]
    answer = answer_question(asked, context) or " ".join(facts[:5]) or asked.strip()[:500]
    return Material(facts, answer, asked.strip()[:500])


def _called_in_turn(messages: Sequence[Message]) -> set[str]:
    """The tools that were called since the last message of the user."""
    names: set[str] = set()
    for message in messages:
        if message.get("role") == "user":
            names.clear()
        names.update(call["function"]["name"] for call in message.get("tool_calls") or ())
    return names


def _tool_choice(choice: Any) -> tuple[bool, str]:
    """Whether a call is required, and the tool that it must name, in the words of either API."""
    if isinstance(choice, str):
        return choice in ("required", "any"), ""
    if not isinstance(choice, dict):
        return False, ""
    function = choice.get("function") or choice
    return choice.get("type") == "any", str(function.get("name") or "")


def _document(body: JsonObject, system: str, messages: Sequence[Message], material: Material) -> Any:
    """The JSON document that the request asks for; None where it asks for text."""
    wanted = body.get("response_format") or {}
    if wanted.get("type") == "json_schema":
        return fill_schema(wanted.get("json_schema", {}).get("schema") or {"type": "object"}, material)
    described = _schema_in_text([system, *(message_text(message) for message in messages)])
    if described is not None:
        return fill_schema(described, material)
    if wanted.get("type") == "json_object":
        # Mem0 asks for this form in words only; other clients that describe no schema get their facts the same way.
        return {"memory": [{"id": str(number), "text": fact} for number, fact in enumerate(material.facts)]}
    return None


def _schema_in_text(texts: Iterable[str]) -> JsonObject | None:
    """The JSON schema that some clients put into the prompt, in place of `response_format`."""
    decoder = json.JSONDecoder()
    for text in texts:
        start = text.find("{") if '"properties"' in text else -1
        while start >= 0:
            try:
                found, end = decoder.raw_decode(text, start)
            except ValueError:
                end = start + 1
            else:
                if isinstance(found, dict) and isinstance(found.get("properties"), dict):
                    return found
            start = text.find("{", end)
    return None
