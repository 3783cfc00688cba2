"""The directory that a workspace of the editor stands for, from the `workspace.json` beside its database."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from memoranda.importers.chat_messages import text_field
from memoranda.importers.documents import document
from memoranda.importers.source_files import item_at


def folder_of(workspace: Path) -> str | None:
    """The directory, if it is one on this machine."""
    item = item_at(workspace / "workspace.json", "workspace")
    address = text_field(document(item), "folder") if item else None
    return path_of(address) if address else None


def path_of(address: str) -> str | None:
    """The path of a `file:` address; None for any other one."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return None
    if parts.scheme != "file" or not parts.path:
        return None
    path = unquote(parts.path)
    # A drive of Windows is written as /c:/...
    return path[1:] if len(path) > 2 and path[2] == ":" else path
