"""The programs that can be imported from, and where their readers are; a reader is loaded when it is asked for."""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import cast

from memoranda.importers.reader_protocol import ConversationReader


@dataclass(frozen=True, slots=True)
class ImportSource:
    """One program: `variable` is how its users move its directory, `reader` where its reader is.

    `settings_variable` moves the directory that every program has its settings in, where this one keeps something too.
    """

    name: str
    program: str
    reader: str
    variable: str = ""
    settings_variable: str = ""

    @property
    def help(self) -> str:
        """What its import brings, in a sentence."""
        return f"Import the conversations that you had with {self.program}."

    def load(self, settings: Path | None = None) -> ConversationReader:
        """Its reader; `settings` is where the settings of programs are, if they were moved."""
        module, kind = self.reader.split(":")
        made = getattr(import_module(f"memoranda.importers.{module}"), kind)
        return cast(ConversationReader, made(settings) if settings else made())


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
