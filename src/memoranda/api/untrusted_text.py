"""What a conversation has read that neither its user nor Memoranda wrote, and that may suggest what is remembered.

A page, a file or an external memory can tell a model to remember something, in words that no scanner recognises. Its
words cannot be told from the user's, but it is known where they came from: a write in a turn that read such text names
it as its source, unless the user's own words support what is written.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memoranda.api.session_record import SessionRecord
    from memoranda.memory.record.rotation import LiveMessage

# Tools that only say what they have done.
_OWN_TOOLS = frozenset({"memory", "skill_manage"})
# Tools that return what the agent may have written itself, perhaps after it read untrusted text: a source only of what
# repeats them.
_AGENT_TEXTS = frozenset({"todo", "scratch", "skills_list", "skill_view"})
# How much of what was written must occur in such a result, or in an older one, to have come from it.
_MIN_SHARE = 0.6
_MAX_OLDER_RESULTS = 200
_MAX_RESULT_CHARS = 50_000


class UntrustedText:
    """The untrusted text in the context of one session."""

    def __init__(self, record: "SessionRecord", trusted_tools: Collection[str] = ()) -> None:
        self.recalled: tuple[str, ...] = ()
        """The providers that recalled text into the current turn."""
        self._record = record
        self._trusted = _OWN_TOOLS.union(trusted_tools)

    def sources_of(self, texts: Sequence[str]) -> tuple[str, ...]:
        """Where texts that the agent wants to remember may come from; empty if the user's own words support them.

        The results that were read since the user's last message count, and older ones, and texts that the agent may
        have written itself, if they have most words of a text.
        """
        context = self._record.context()
        questions = [index for index, message in enumerate(context) if _is_question(message)]
        last = questions[-1] if questions else 0
        results = list(self._results(context))
        read = [name for index, name, _ in results if index > last and name not in _AGENT_TEXTS]
        others = [(name, content) for index, name, content in results if index <= last or name in _AGENT_TEXTS]
        sources = dict.fromkeys((*read, *self.recalled, *_that_contain(texts, others[-_MAX_OLDER_RESULTS:])))
        if not sources:
            return ()
        user_texts = [_text_of(context[index].message.get("content")) for index in questions]
        return () if _are_supported(texts, user_texts) else tuple(sources)

    def _results(self, context: "Sequence[LiveMessage]") -> Iterator[tuple[int, str, str]]:
        """The results of tools that are not trusted: position, name of the tool, text."""
        names: dict[str, str] = {}
        for index, live in enumerate(context):
            message = live.message
            for call in message.get("tool_calls") or ():
                names |= _name_of_call(call)
            if message["role"] == "tool":
                name = message.get("tool_name") or names.get(str(message.get("tool_call_id")), "") or "a tool"
                if name not in self._trusted:
                    yield index, str(name), _text_of(message.get("content"))


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


def _are_supported(texts: Sequence[str], user_texts: Sequence[str]) -> bool:
    """Whether the user's own words support all texts."""
    from memoranda.agent.review.evidence import UserEvidence

    evidence = UserEvidence(user_texts)
    return all(evidence.find_unsupported(text) is None for text in texts)
