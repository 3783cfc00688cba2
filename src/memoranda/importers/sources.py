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
    in which every program keeps its settings, if this one keeps conversations there too. `has_notes` marks a program
    whose memories become notes, and `needs_path` one that has no directory of its own.
    """

    name: str
    program: str
    reader: str
    variable: str = ""
    settings_variable: str = ""
    has_notes: bool = False
    needs_path: bool = False

    @property
    def help(self) -> str:
        if self.has_notes:
            return f"Import what {self.program} remembers, and the conversations that it keeps."
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
        ImportSource("jsonl", "other programs (JSON lines)", "jsonl:JsonLines", needs_path=True),
        ImportSource("openclaw", "OpenClaw", "openclaw:OpenClaw", "OPENCLAW_STATE_DIR"),
        ImportSource("aider", "Aider", "aider:Aider"),
        ImportSource("cline", "Cline", "cline:Cline", settings_variable="XDG_CONFIG_HOME"),
        ImportSource("roo", "Roo Code", "cline:Roo", settings_variable="XDG_CONFIG_HOME"),
        ImportSource("continue", "Continue", "continue_dev:Continue", "CONTINUE_GLOBAL_DIR"),
        ImportSource("copilot-chat", "Copilot Chat", "copilot_chat:CopilotChat", settings_variable="XDG_CONFIG_HOME"),
        ImportSource("letta", "Letta", "letta:Letta", has_notes=True),
        ImportSource("zep", "Zep or Graphiti", "zep:Zep", has_notes=True, needs_path=True),
        ImportSource("claude-mem", "claude-mem", "claude_mem:ClaudeMem", "CLAUDE_MEM_DATA_DIR", has_notes=True),
        ImportSource(
            "obsidian", "Obsidian and basic-memory", "vault:Vault", has_notes=True, settings_variable="XDG_CONFIG_HOME"
        ),
        ImportSource("mem0", "mem0", "mem0:Mem0", "MEM0_DIR", has_notes=True),
        ImportSource("langgraph", "LangGraph", "langgraph:LangGraph", has_notes=True, needs_path=True),
        ImportSource("openai-agents", "OpenAI Agents SDK", "openai_agents:OpenAIAgents", needs_path=True),
    )
}
