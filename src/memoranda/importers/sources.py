"""Lists the programs that can be imported from; a reader is loaded when it is needed."""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import cast

from memoranda.importers.reader_protocol import ConversationReader


@dataclass(frozen=True, slots=True)
class ImportSource:
    """One program; `reader` is the module and class of its reader.

    `variable` is the environment variable that moves the program's directory. `settings_variable` moves the directory
    in which every program keeps its settings, if this one keeps conversations there too.
    """

    name: str
    program: str
    reader: str
    variable: str = ""
    settings_variable: str = ""

    @property
    def help(self) -> str:
        return f"Import the conversations that you had with {self.program}."

    def load(self, settings: Path | None = None) -> ConversationReader:
        """Return its reader; `settings` is the directory that `settings_variable` names, if it is set."""
        module, class_name = self.reader.split(":")
        reader_class = getattr(import_module(f"memoranda.importers.{module}"), class_name)
        return cast(ConversationReader, reader_class(settings) if settings else reader_class())


SOURCES = {
    source.name: source
    for source in (
        ImportSource("claude-code", "Claude Code", "claude_code:ClaudeCode", "CLAUDE_CONFIG_DIR"),
        ImportSource("codex", "Codex", "codex:Codex", "CODEX_HOME"),
        ImportSource("cursor", "Cursor", "cursor:Cursor", settings_variable="XDG_CONFIG_HOME"),
        ImportSource("gemini-cli", "Gemini CLI", "gemini_cli:GeminiCli", "GEMINI_CLI_HOME"),
        ImportSource("opencode", "OpenCode", "opencode:OpenCode", "XDG_DATA_HOME"),
        ImportSource("hermes", "Hermes", "hermes:Hermes", "HERMES_HOME"),
        ImportSource("chatgpt", "ChatGPT (an export)", "exports.chatgpt:ChatGPT"),
        ImportSource("claude", "Claude (an export)", "exports.claude:ClaudeExport"),
        ImportSource("jsonl", "other programs (JSON lines)", "jsonl:JsonLines"),
        ImportSource("openclaw", "OpenClaw", "openclaw:OpenClaw", "OPENCLAW_STATE_DIR"),
    )
}
