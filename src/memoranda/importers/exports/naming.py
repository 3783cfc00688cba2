"""Names of conversations, branches and messages that every part of the record can hold."""

_BRANCH = "~"


def message_name(host_id: str, name: str) -> str:
    """The name of a message in its conversation, without half characters, which no database takes."""
    return f"{host_id}/{name}".encode("utf-8", "backslashreplace").decode()


def branch_name(host_id: str, first: str) -> str:
    """The name of a branch: the conversation, and the message with which it goes its own way."""
    return f"{host_id}{_BRANCH}{first}"


def conversation_of(host_id: str) -> str:
    """The conversation that a session is, or is a branch of."""
    return host_id.split(_BRANCH, maxsplit=1)[0]
