"""What the demo model does in a situation: say something, or call a tool first."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from memoranda.llm.demo import past
from memoranda.llm.demo.facts import Fact, facts_in, in_second_person
from memoranda.llm.demo.situation import Result, Situation, text_of
from memoranda.llm.demo.summing_up import asks_for_summary, gist, summary_for
from memoranda.llm.demo.words import best, content_words, sentences
from memoranda.llm.model import Message, ToolCall
from memoranda.tools import JsonObject

Answer = tuple[str, list[ToolCall]]

NOTHING_TO_SAVE = "Nothing to save."
_REVIEW = re.compile(r"\A\[Background review\b")
_READER = re.compile(r"(?i)\Ayou are reading the transcript")
_QUESTION = re.compile(
    r"(?i)[?？]\s*$|^(?:what|which|who|whom|whose|when|where|why|how|do|does|did|is|are|was|were|can|could|have|has"
    r"|tell me|show me|list)\b"
)
_ABOUT_ME = re.compile(
    r"(?i)what (?:do|can) you (?:know|remember|recall)(?: about (?:me|us|this|the project))?\s*[?.!]*$|who am i\b"
    r"|what have you (?:saved|stored)|what is in your memory"
)
_HELLO = re.compile(r"(?i)^(?:hi|hello|hey|good (?:morning|afternoon|evening))\b[\s\w,]{0,20}[!.]*$")
_THANKS = re.compile(r"(?i)^(?:thanks|thank you|great|perfect|ok|okay|cool|nice|bye|good night)\b.{0,30}$")
_HELP = re.compile(r"(?i)^(?:help|what can you do|who are you|what are you)\b")
_ORDER = re.compile(
    r"(?i)^(?:please |can you |could you )*(?:write|make|create|explain|translate|draft|generate|give|build|fix|run"
    r"|open|summari[sz]e|calculate|compute|compare|suggest|recommend|review|implement|refactor|debug|sing|draw)\b"
)
_FORGET = re.compile(r"(?i)^(?:please )?forget(?: about| that)? (?P<what>.+?)[.!]*$")
_DELEGATE = re.compile(
    r"(?i)^(?:please )?(?:delegate|hand over|ask (?:a|another) (?:helper|agent) to)[: ]+(?P<task>.+)$"
)
_INTRODUCTION = (
    "I am the demo model: a few rules in place of a language model, so that you can try the memory without a key.\n"
    "- Tell me something lasting (“I prefer short answers”, “my editor is Helix”, “remember that we deploy on "
    "Fridays”) and I keep it.\n"
    "- Ask for it, now or in the next session, and I answer from memory.\n"
    "- Ask what we did (“how did we fix the deadlock?”) and I search our past conversations.\n"
    "- Say “forget …” and I drop it."
)


def act(situation: Situation, messages: Sequence[Message]) -> Answer:
    """The answer to a situation."""
    said = situation.said
    if asks_for_summary(text_of(messages[-1].get("content")) if messages else ""):
        return summary_for(text_of(messages[-1].get("content"))), []
    if _READER.match(situation.system):
        return gist(said.split("\n", 1)[0], said), []
    if _REVIEW.match(said):
        return _review(situation, messages)
    if situation.results:
        return _report(situation), []
    return _respond(situation)


def _respond(situation: Situation) -> Answer:
    said = situation.said
    if _HELP.match(said):
        return _INTRODUCTION, []
    if query := past.search_order(said):
        return _look(situation, query)
    if forgotten := _FORGET.match(said):
        return _forget(situation, forgotten["what"])
    if (task := _DELEGATE.match(said)) and "delegate_task" in situation.tools:
        return "", [_call("delegate_task", {"task": task["task"]})]
    if facts := facts_in(said):
        return _keep(situation, facts)
    if _QUESTION.search(said):
        return _look_up(situation)
    return _small_talk(situation), []


def _small_talk(situation: Situation) -> str:
    if _HELLO.match(situation.said):
        return f"Hello{_name(situation)}! What shall we work on?"
    if _THANKS.match(situation.said):
        return "You're welcome. It is all on record, should we need it again."
    if _ORDER.match(situation.said):
        return (
            "That takes a real language model; I am the demo one. 'memoranda secret set ANTHROPIC_API_KEY' (or "
            "OPENAI_API_KEY) gives you a real one, with the same memory."
        )
    return "I have noted that in this conversation; ask me about it whenever you like, also in a later session."


def _look_up(situation: Situation) -> Answer:
    """A question: memory first, then what was recalled or said in this conversation, then the past."""
    said = situation.said
    if _ABOUT_ME.search(said):
        return _everything(situation), []
    wanted = content_words(said)
    can_search = "session_search" in situation.tools
    if not (past.asks_about_the_past(said) and can_search):
        if best(wanted, situation.forgotten) and not best(wanted, situation.known):
            return "You asked me to forget that, so it is no longer in memory.", []
        for source, lines, least in (
            ("", situation.known, 0.5),
            ("I recall: ", situation.recalled, 0.4),
            ("Earlier you said: ", [each for text in situation.earlier for each in sentences(text)], 0.67),
        ):
            if found := best(wanted, [line for line in lines if not _QUESTION.search(line)], least=least):
                return source + " ".join(in_second_person(line) for line in found[:3]), []
    return _look(situation, said)


def _look(situation: Situation, query: str) -> Answer:
    if "session_search" in situation.tools:
        return "", [_call("session_search", {"query": query.rstrip("?？ ")})]
    return "I don't know that, and I cannot look into past conversations here.", []


def _keep(situation: Situation, facts: Sequence[Fact]) -> Answer:
    """Save facts, one call per file; what is known already is not saved again."""
    new = [fact for fact in facts if fact.text not in situation.known]
    if not new:
        return f"I know that already: {' '.join(in_second_person(fact.text) for fact in facts)}", []
    if "memory" not in situation.tools:
        return "I would keep that, but memory is switched off here.", []
    calls = []
    for target in dict.fromkeys(fact.target for fact in new):
        operations = [_operation(fact, situation.known) for fact in new if fact.target == target]
        change: JsonObject = operations[0] if len(operations) == 1 else {"operations": operations}
        calls.append(_call("memory", {"target": target} | change))
    return "", calls


def _operation(fact: Fact, known: Sequence[str]) -> JsonObject:
    old = next((entry for entry in known if fact.subject and entry.startswith(f"{fact.subject} ")), None)
    if old is None:
        return {"action": "add", "content": fact.text}
    return {"action": "replace", "old_text": old, "content": fact.text}


def _forget(situation: Situation, what: str) -> Answer:
    found = best(content_words(what), situation.known, least=0.5)
    if not found or "memory" not in situation.tools:
        return f"I have nothing in memory about {what}.", []
    target = "user" if found[0].startswith("User") else "memory"
    return "", [_call("memory", {"target": target, "action": "remove", "old_text": found[0]})]


def _report(situation: Situation) -> str:
    """What came of the tools that were called."""
    return "\n".join(dict.fromkeys(_told(result) for result in situation.results))


def _told(result: Result) -> str:
    if result.name == "session_search":
        return past.answer_from(result)
    if result.name == "memory":
        return _saved(result.answer)
    if result.answer.get("success") is False:
        return f"That did not work: {result.answer.get('error', 'no reason was given')}"
    outcome = result.answer.get("result") or result.answer.get("text") or json.dumps(result.answer, ensure_ascii=False)
    return str(outcome)[:1_000]


def _saved(answer: JsonObject) -> str:
    if not answer.get("success"):
        return f"I could not keep that: {answer.get('error', 'no reason was given')}"
    if answer.get("staged"):
        return f"I have proposed to keep that; it waits for your approval. {answer.get('message', '')}".strip()
    changes = [change for change in answer.get("changed") or () if isinstance(change, Mapping)]
    return "\n".join(_change(change) for change in changes) or "I know that already."


def _change(change: Mapping[str, Any]) -> str:
    after, before = change.get("after"), change.get("before")
    if after and before:
        return f"I have changed that: {in_second_person(str(after))} (It was: {before})"
    if after:
        return f"I'll remember that: {in_second_person(str(after))}"
    return f"Forgotten: {before}"


def _everything(situation: Situation) -> str:
    if not situation.known:
        return "Nothing yet. Tell me something lasting, such as “I prefer short answers”, and I keep it."
    return "\n".join(["This is what I have in memory:", *(f"- {in_second_person(entry)}" for entry in situation.known)])


def _name(situation: Situation) -> str:
    names = [re.match(r"User's name is ([^.]+)", entry) for entry in situation.known]
    return next((f", {name[1]}" for name in names if name), "")


def _review(situation: Situation, messages: Sequence[Message]) -> Answer:
    """A look back over the conversation: only what the user said, and only what is not known."""
    if situation.results:
        return f"{NOTHING_TO_SAVE[:-1]} beyond that.", []
    said = [text_of(message.get("content")) for message in messages[:-1] if message.get("role") == "user"]
    facts = [fact for text in said for fact in facts_in(text) if fact.text not in situation.known]
    if not facts or "memory" not in situation.tools:
        return NOTHING_TO_SAVE, []
    return _keep(situation, list(dict.fromkeys(facts)))


def _call(name: str, arguments: JsonObject) -> ToolCall:
    text = json.dumps(arguments, ensure_ascii=False)
    return ToolCall(f"call_{hashlib.sha256(f'{name} {text}'.encode()).hexdigest()[:16]}", name, text)
