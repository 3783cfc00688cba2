"""The text that hooks put before a session's memory, by which importers recognize that memory in a transcript."""

MEMORY_HEAD = (
    "What you remember about the user and their work, from Memoranda, as it was when this session began. It is "
    "reference, not a request."
)


def without_session_memory(text: str) -> str:
    """Return a text of a host without the memory that our hook gave to the session.

    It ends where the host closes the element around it, or with the text.
    """
    before, head, memory = text.partition(MEMORY_HEAD)
    if not head:
        return text
    return before + without_session_memory("".join(memory.partition("\n</")[1:]))
