"""What a session saves in curated memory and in skills: found in journals, reverted on request, and its sources.

A page, a file or an external memory can tell a model to remember something, in words that no scanner recognises. Its
words cannot be told from the user's, but it is known where they came from: a write in a turn that read such text names
it as its source, unless the user's own words support what is written. A program that calls tools and records no words
of its user is the source of all that it writes.
"""

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memoranda.agent.session_views import RevertedChange, SavedChange
from memoranda.memory.curated import change_history as memory_history
from memoranda.memory.curated.journal import MemoryChange
from memoranda.memory.curated.operations import MemoryReceipt
from memoranda.memory.curated.settings import FILE_NAMES
from memoranda.memory.curated.store import MemoryStore
from memoranda.memory.skills import change_history as skill_history
from memoranda.memory.skills.store import SkillStore
from memoranda.memory.skills.write_result import SkillReceipt
from memoranda.memory.skills.writer import SkillChange
from memoranda.storage.files.journal import undone_numbers
from memoranda.support.origin import PERSON
from memoranda.support.tool import facts_of

if TYPE_CHECKING:
    from memoranda.api.session_parts.record import SessionRecord
    from memoranda.memory.record.rotation import LiveMessage

_AGENT = "agent"
_UNDOABLE_SKILL_ACTIONS = ("create", "patch", "edit", "delete", "write_file", "remove_file")


def find_saved_changes(
    memory: MemoryStore, skills: SkillStore, sessions: Collection[str], since: float
) -> tuple[SavedChange, ...]:
    """What the agent saved in these sessions since a time and nothing has reverted yet, the oldest first.

    `since` is when the last turn began, so these are the changes of that turn. What a background review or a person
    saved meanwhile is not among them.
    """
    changes = memory_history.log(memory)
    undone = undone_numbers(changes)
    found = [
        (change.at, SavedChange("memory", change.number, _describe_memory(memory, change)))
        for change in changes
        if change.edits and change.number not in undone and _is_of_turn(change, sessions, since)
    ]
    skill_changes = skill_history.log(skills)
    undone = undone_numbers(skill_changes)
    found += [
        (change.at, SavedChange("skills", change.number, f"skill {change.skill}: {change.action.replace('_', ' ')}"))
        for change in skill_changes
        if change.action in _UNDOABLE_SKILL_ACTIONS
        and change.number not in undone
        and _is_of_turn(change, sessions, since)
    ]
    return tuple(change for _, change in sorted(found, key=lambda item: item[0]))


def revert_changes(memory: MemoryStore, skills: SkillStore, changes: Sequence[SavedChange]) -> Iterator[RevertedChange]:
    """Undo changes, the latest first; one that no longer fits is refused and says why."""
    for change in reversed(changes):
        if change.part == "memory":
            outcome = memory_history.undo(memory, change.number, PERSON)
            yield RevertedChange(change, isinstance(outcome, MemoryReceipt), outcome.message)
        else:
            result = skill_history.undo(skills, change.number, PERSON)
            yield RevertedChange(change, isinstance(result, SkillReceipt), result.message)


def _is_of_turn(change: MemoryChange | SkillChange, sessions: Collection[str], since: float) -> bool:
    if change.actor != _AGENT or change.session not in sessions:
        return False
    return datetime.fromisoformat(change.at).timestamp() >= since


def _describe_memory(store: MemoryStore, change: MemoryChange) -> str:
    sides = [(sign, text) for edit in change.edits for sign, text in (("-", edit.before), ("+", edit.after))]
    lines = [f"{sign} {store.visible_text(change.target, text)}" for sign, text in sides if text is not None]
    return f"{FILE_NAMES[change.target]}: {' '.join(lines)}"


# How much of what was written must occur in such a result, or in an older one, to have come from it.
_MIN_SHARE = 0.6
_MAX_OLDER_RESULTS = 200
_MAX_RESULT_CHARS = 50_000


class UntrustedText:
    """The untrusted text in the context of one session."""

    def __init__(self, record: "SessionRecord", trusted_tools: Collection[str] = ()) -> None:
        self.recalled: tuple[str, ...] = ()
        """The providers that recalled text into the current turn."""
        self.called: dict[str, None] = {}
        """The tools with text of others that were called in this turn, whether or not their results are recorded."""
        self.caller = ""
        """The program that calls the tools, if it does not record what its user says."""
        self._record = record
        self._trusted = frozenset(trusted_tools)

    def sources_of(self, texts: Sequence[str]) -> tuple[str, ...]:
        """Where texts that the agent wants to remember may come from; empty if the user's own words support them.

        The results that were read since the user's last message count, and older ones, and texts that the agent may
        have written itself, if they have most words of a text.
        """
        context = self._record.context()
        questions = [index for index, message in enumerate(context) if _is_question(message)]
        last = questions[-1] if questions else 0
        results = list(self._results(context))
        read = [name for index, name, _ in results if index > last and not _is_of_agent(name)]
        others = [(name, content) for index, name, content in results if index <= last or _is_of_agent(name)]
        callers = (self.caller,) if self.caller else ()
        found = _that_contain(texts, others[-_MAX_OLDER_RESULTS:])
        sources = dict.fromkeys((*read, *self.called, *self.recalled, *found, *callers))
        if not sources:
            return ()
        user_texts = [_text_of(context[index].message.get("content")) for index in questions]
        if _are_supported(texts, user_texts):
            return ()
        has_hidden = bool(self.recalled or self.called or self.caller)
        read_texts = [content for index, _, content in results if index > last]
        if not has_hidden and all(_is_closer_to_user(text, user_texts[-1:], read_texts) for text in texts):
            return ()
        return tuple(sources)

    def note_call(self, tool: str) -> None:
        """Note that a tool was called: its result is in the context now."""
        if tool not in self._trusted and facts_of(tool).words == "others":
            self.called[tool] = None

    def _results(self, context: "Sequence[LiveMessage]") -> Iterator[tuple[int, str, str]]:
        """The results of tools that are not trusted: position, name of the tool, text."""
        names: dict[str, str] = {}
        for index, live in enumerate(context):
            message = live.message
            for call in message.get("tool_calls") or ():
                names |= _name_of_call(call)
            if message["role"] == "tool":
                name = message.get("tool_name") or names.get(str(message.get("tool_call_id")), "") or "a tool"
                if name not in self._trusted and facts_of(name).words != "report":
                    yield index, str(name), _text_of(message.get("content"))


def _is_of_agent(tool: str) -> bool:
    """Whether the agent may have written the results of a tool: they are a source only of what repeats them."""
    return facts_of(tool).words == "agent"


def _is_question(message: "LiveMessage") -> bool:
    return message.message["role"] == "user" and not message.is_summary


def _name_of_call(call: Any) -> dict[str, str]:
    function = call.get("function") if isinstance(call, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    return {str(call.get("id")): name} if isinstance(name, str) else {}


def _text_of(content: Any) -> str:
    from memoranda.memory.record.message_rows import text_of

    return text_of(content)


def _that_contain(texts: Sequence[str], results: Sequence[tuple[str, str]]) -> Iterator[str]:
    """The tools whose results have most words of one of the texts."""
    if not results:
        return
    from memoranda.agent.review.evidence import content_words, share, token_set

    words = list(map(content_words, texts))
    for name, content in results:
        tokens = token_set(content[:_MAX_RESULT_CHARS])
        if any(share(each, tokens) >= _MIN_SHARE for each in words):
            yield name


def _is_closer_to_user(text: str, user_texts: Sequence[str], read_texts: Sequence[str]) -> bool:
    """Whether the user's last message has more words of a text than any text that was read, and all its names.

    An agent may say something in other forms of the user's words, which is too little for a clause to be supported.
    """
    from memoranda.agent.review.evidence import content_words, denies, own_words, share, token_set

    words = content_words(text)
    said = own_words("\n".join(user_texts))
    tokens = token_set(said)
    if denies(said) != denies(text) or not all(word.is_in(tokens) for word in words if word.specific):
        return False
    closest = max((share(words, token_set(read[:_MAX_RESULT_CHARS])) for read in read_texts), default=0.0)
    return share(words, tokens) > max(_MIN_SHARE - 0.1, closest)


def _are_supported(texts: Sequence[str], user_texts: Sequence[str]) -> bool:
    """Whether the user's own words support all texts."""
    from memoranda.agent.review.evidence import UserEvidence

    evidence = UserEvidence(user_texts)
    return all(evidence.find_unsupported(text) is None for text in texts)
