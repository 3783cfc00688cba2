"""The ids of a framework's conversations in the record."""

from urllib.parse import quote, unquote


def join_names(framework: str, user: str | None, *names: str) -> str:
    """An id made of a framework's own names, which are quoted: two of them never share one, nor do two users."""
    owner = "" if user is None else f"@{quote(user, safe='')}"
    return f"{framework}{owner}:{'/'.join(quote(name, safe='') for name in names)}"


def split_names(session_id: str) -> list[str]:
    """The names that an id was made of."""
    return [unquote(part) for part in session_id.partition(":")[2].split("/")]
