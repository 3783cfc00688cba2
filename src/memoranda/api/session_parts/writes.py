"""What a session saves in curated memory and in skills: found in journals, reverted on request, and its sources.

A page, a file or an external memory can tell a model to remember something, in words that no scanner recognises. Its
words cannot be told from the user's, but it is known where they came from: a write in a turn that read such text names
it as its source, unless the user's own words support what is written. A program that calls tools and records no words
of its user is the source of all that it writes.
"""

import logging
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from memoranda.agent.session_views import RevertedChange, SavedChange
from memoranda.errors import StorageError
from memoranda.memory.curated import change_history as memory_history
from memoranda.memory.curated.journal import MemoryChange
from memoranda.memory.curated.operations import MemoryReceipt
from memoranda.memory.curated.settings import file_name
from memoranda.memory.curated.store import MemoryStore
from memoranda.memory.skills import change_history as skill_history
from memoranda.memory.skills.store import SkillStore
from memoranda.memory.skills.write_result import SkillReceipt
from memoranda.memory.skills.writer import SkillChange
from memoranda.storage.files.journal import undone_numbers
from memoranda.support.lazy_attribute import lazy_attribute
from memoranda.support.origin import PERSON
from memoranda.support.tool import facts_of

if TYPE_CHECKING:
    from memoranda.agent.review.evidence import UserEvidence
    from memoranda.api.session_parts.record import SessionRecord

_log = logging.getLogger(__name__)

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
    return f"{file_name(change.target)}: {' '.join(lines)}"


# How much of what was written must occur in such a result, or in an older one, to have come from it.
_MIN_SHARE = 0.6
_MAX_OLDER_RESULTS = 200
_MAX_RESULT_CHARS = 50_000
_MAX_USER_TEXTS = 400
# A longer text is no fact that a user stated, and no memory has room for it.
_MAX_JUDGED_CHARS = 20_000
# How much of a long context is read when a session is resumed.
_MAX_CONTEXT = 1_000


class _ToolResult:
    """A result of a tool that is not trusted."""

    def __init__(self, tool: str, text: str) -> None:
        self.tool = tool
        self.is_of_agent = facts_of(tool).words == "agent"
        """Whether the agent may have written it: it is a source only of what repeats it."""
        self._text = text[:_MAX_RESULT_CHARS]

    @lazy_attribute
    def tokens(self) -> frozenset[str]:
        from memoranda.agent.review.evidence import token_set

        return token_set(self._text)


def words_support(user_texts: Sequence[str], texts: Sequence[str]) -> bool:
    """Whether what a user said supports all texts."""
    if not user_texts or any(len(text) > _MAX_JUDGED_CHARS for text in texts):
        return False
    evidence = _evidence_of(user_texts)
    return all(evidence.find_unsupported(text) is None for text in texts)


def _evidence_of(user_texts: Collection[str]) -> "UserEvidence":
    from memoranda.agent.review.evidence import UserEvidence

    return UserEvidence(list(user_texts))


class _ReadContext:
    """What was read of a session's context. Each message is read once, because a context can have thousands."""

    def __init__(self, session_id: str = "", skipped: int = 0) -> None:
        """`skipped` is how many messages at the beginning are not read."""
        self.session_id = session_id
        self.size = skipped
        self.last_id = 0
        self.user_message: int | None = None
        self.user_texts: deque[str] = deque(maxlen=_MAX_USER_TEXTS)
        self.latest: list[_ToolResult] = []
        """The results since the user's last message."""
        self.older: deque[_ToolResult] = deque(maxlen=_MAX_OLDER_RESULTS)
        self._names: dict[str, str] = {}
        self._evidence: UserEvidence | None = None

    def add(self, context: Sequence[dict[str, Any]], trusted: Collection[str]) -> None:
        """Read further messages of the context."""
        for message in context:
            self.size, self.last_id = self.size + 1, message["id"]
            for call in message["tool_calls"] or ():
                self._names |= _name_of_call(call)
            if message["is_own"]:
                self.user_texts.append(_text_of(message["content"]))
                self.user_message = message["id"]
                self.older.extend(self.latest)
                self.latest, self._evidence = [], None
            elif message["role"] == "tool":
                name = message["tool_name"] or self._names.get(str(message["tool_call_id"]), "") or "a tool"
                if name not in trusted and facts_of(name).words != "report":
                    self.latest.append(_ToolResult(str(name), _text_of(message["content"])))

    def supports(self, texts: Sequence[str]) -> bool:
        """Whether the user's own words support all texts."""
        if self._evidence is None:
            self._evidence = _evidence_of(self.user_texts)
        return all(self._evidence.find_unsupported(text) is None for text in texts)


class UntrustedText:
    """The untrusted text in the context of one session."""

    def __init__(self, record: "SessionRecord", trusted_tools: Collection[str] = ()) -> None:
        self.recalled: tuple[str, ...] = ()
        """The providers that recalled text into the current turn."""
        self.called: dict[str, None] = {}
        """The tools with text of others that were called in this turn, whether or not their results are recorded."""
        self.caller = ""
        """The program that calls the tools, if it does not record what its user says."""
        self.heard: Callable[[], Sequence[str]] = tuple
        """What that user is known to have said nevertheless."""
        self._record = record
        self._trusted = frozenset(trusted_tools)
        self._context = _ReadContext()

    def sources_of(self, texts: Sequence[str], *, latest: bool = False) -> tuple[str, ...]:
        """Where texts that the agent wants to remember may come from; empty if the user's own words support them.

        A page may ask to remove what the user once said, so with `latest` only the user's last message supports it.

        The results that were read since the user's last message count, and older ones, and texts that the agent may
        have written itself, if they have most words of a text.
        """
        context = self._read_context()
        read = [result.tool for result in context.latest if not result.is_of_agent]
        others = [*context.older, *(result for result in context.latest if result.is_of_agent)]
        callers = (self.caller,) if self.caller else ()
        found = _that_contain(texts, others[-_MAX_OLDER_RESULTS:])
        sources = dict.fromkeys((*read, *self.called, *self.recalled, *found, *callers))
        if not sources:
            return ()
        heard = self.heard() if self.caller else ()
        if words_support(heard[-1:] if latest else heard, texts):
            return ()
        if words_support([*context.user_texts][-1:], texts) if latest else context.supports(texts):
            return ()
        has_hidden = bool(self.recalled or self.called or self.caller)
        said = context.user_texts[-1] if context.user_texts else ""
        if not has_hidden and all(_is_closer_to_user(text, said, context.latest) for text in texts):
            return ()
        return tuple(sources)

    def last_user_message(self) -> int | None:
        """The id of the user's latest message."""
        return self._read_context().user_message

    def note_call(self, tool: str) -> None:
        """Note that a tool was called: its result is in the context now."""
        if tool not in self._trusted and facts_of(tool).words == "others":
            self.called[tool] = None

    def _read_context(self) -> _ReadContext:
        """The context with what was recorded since the last call; read again if messages were removed from it.

        Nothing if the record cannot be read: curated memory works without it, and nothing supports a text then.
        """
        try:
            return self._read_record()
        except StorageError as error:
            _log.warning("What the user said cannot be read: %s", error)
            return _ReadContext()

    def _read_record(self) -> _ReadContext:
        size = self._record.context_size()
        context = self._context
        is_known = context.session_id == self._record.id
        new = self._record.spoken_context(context.last_id, _MAX_CONTEXT) if is_known else []
        if not is_known or context.size + len(new) != size:
            self._context = context = _ReadContext(self._record.id, max(0, size - _MAX_CONTEXT))
            new = self._record.spoken_context(0, _MAX_CONTEXT)
        context.add(new, self._trusted)
        return context


def _name_of_call(call: Any) -> dict[str, str]:
    function = call.get("function") if isinstance(call, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    return {str(call.get("id")): name} if isinstance(name, str) else {}


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    from memoranda.memory.record.message_rows import text_of

    return text_of(content)


def _that_contain(texts: Sequence[str], results: Sequence[_ToolResult]) -> Iterator[str]:
    """The tools whose results have most words of one of the texts."""
    if not results:
        return
    from memoranda.agent.review.evidence import content_words, share

    words = list(map(content_words, texts))
    for result in results:
        if any(share(each, result.tokens) >= _MIN_SHARE for each in words):
            yield result.tool


def _is_closer_to_user(text: str, message: str, results: Sequence[_ToolResult]) -> bool:
    """Whether the user's last message has more words of a text than any text that was read, and all its names.

    An agent may say something in other forms of the user's words, which is too little for a clause to be supported.
    """
    from memoranda.agent.review.evidence import content_words, denies, own_words, share, token_set

    words = content_words(text)
    said = own_words(message)
    tokens = token_set(said)
    if denies(said) != denies(text) or not all(word.is_in(tokens) for word in words if word.specific):
        return False
    closest = max((share(words, result.tokens) for result in results), default=0.0)
    return share(words, tokens) > max(_MIN_SHARE - 0.1, closest)
