"""Where Visual Studio Code and editors made from it keep the data of extensions and chats."""

from pathlib import Path

_EDITORS = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf")
_SERVERS = (".vscode-server", ".vscode-server-insiders", ".cursor-server")


def storage_directories(settings: Path | None = None) -> list[Path]:
    """Return the directories `User` of all editors; `settings` replaces `~/.config`."""
    home = Path.home()
    bases = (settings or home / ".config", home / "Library" / "Application Support", home / "AppData" / "Roaming")
    found = [base / editor / "User" for base in bases for editor in _EDITORS]
    return [*found, *(home / server / "data" / "User" for server in _SERVERS)]
