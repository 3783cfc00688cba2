"""The programs that can be imported from, and where their readers are; a reader is loaded when it is asked for."""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import cast

from memoranda.importers.shape import Reader


@dataclass(frozen=True, slots=True)
class Source:
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

    def load(self, settings: Path | None = None) -> Reader:
        """Its reader; `settings` is where the settings of programs are, if they were moved."""
        module, kind = self.reader.split(":")
        made = getattr(import_module(f"memoranda.importers.{module}"), kind)
        return cast(Reader, made(settings) if settings else made())


SOURCES = {
    source.name: source
    for source in (
        Source("claude-code", "Claude Code", "claude_code:ClaudeCode", "CLAUDE_CONFIG_DIR"),
        Source("codex", "Codex", "codex:Codex", "CODEX_HOME"),
        Source("cursor", "Cursor", "cursor:Cursor", settings_variable="XDG_CONFIG_HOME"),
        Source("gemini-cli", "Gemini CLI", "gemini_cli:GeminiCli", "GEMINI_CLI_HOME"),
        Source("opencode", "OpenCode", "opencode:OpenCode", "XDG_DATA_HOME"),
        Source("hermes", "Hermes", "hermes:Hermes", "HERMES_HOME"),
        Source("chatgpt", "ChatGPT (an export)", "exports.chatgpt:ChatGPT"),
        Source("claude", "Claude (an export)", "exports.claude:ClaudeExport"),
        Source("jsonl", "other programs (JSON lines)", "jsonl:JsonLines"),
        Source("openclaw", "OpenClaw", "openclaw:OpenClaw", "OPENCLAW_STATE_DIR"),
    )
}
