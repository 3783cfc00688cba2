"""Memoranda as the memory provider of Hermes: a MemoryProvider that calls the installed `memoranda` program.

`memoranda install hermes` writes this file, and `memoranda uninstall hermes` removes it; changes here are lost.

Hermes runs this in its own Python, in which Memoranda is not installed. So each call starts the program, with a JSON
payload on its standard input and a deadline. A finished turn is first written to the spool of the Memoranda home and
synced to disk; a process that Hermes does not wait for records it. Hermes's MEMORY.md and USER.md are not touched.
"""

import json
import logging
import os
import subprocess
import time
import uuid
from pathlib import Path
from typing import Any

from agent.memory_provider import MemoryProvider  # type: ignore[import-not-found]

_HOST = "hermes"
# The program itself gives up after four seconds, and needs time to start on a busy machine. Hermes waits for eight.
_RECALL_TIMEOUT = 6.0
_TOOL_TIMEOUT = 25.0
_NO_ANSWER = "Memoranda did not answer. Continue without it; 'memoranda doctor' finds the cause."
_log = logging.getLogger(__name__)


def _read_settings() -> dict[str, Any]:
    settings: dict[str, Any] = json.loads(Path(__file__).with_name("memoranda.json").read_text("utf-8"))
    return settings


class MemorandaProvider(MemoryProvider):  # type: ignore[misc]
    """One conversation of Hermes: recall for each prompt, two tools, and a record of every turn."""

    def __init__(self) -> None:
        settings = _read_settings()
        entry = settings["memoranda"]
        self._command: list[str] = [entry["command"], *entry["args"]]
        self._spool = Path(settings["spool"])
        self._tools: list[dict[str, Any]] = settings["tools"]
        self._session_id = ""
        self._user: str | None = None
        self._database = ""
        self._memory_text = ""
        self._has_unsynced_turn = False
        self._captures: list[subprocess.Popen[bytes]] = []

    @property
    def name(self) -> str:
        return "memoranda"

    def is_available(self) -> bool:
        """Whether the program is still where it was at the installation."""
        return os.access(self._command[0], os.X_OK)

    def initialize(self, session_id: str, **kwargs: Any) -> None:
        """Reads the memory once, because the prompt of a session does not change."""
        self._session_id = session_id
        hermes_home = str(kwargs.get("hermes_home") or "")
        self._database = str(Path(hermes_home) / "state.db") if hermes_home else ""
        self._user = None if "--user" in self._command else _find_user(hermes_home, kwargs)
        self._memory_text = self._ask("SessionStart")
        if any(self._spool.glob("*.json")):
            # A process was killed, or the program could not run, so earlier turns are not recorded yet.
            self._start_capture()

    def system_prompt_block(self) -> str:
        return self._memory_text

    def prefetch(self, query: str, *, session_id: str = "") -> str:
        """Returns the parts of earlier conversations that are relevant to a prompt; for most prompts none are."""
        return self._ask("UserPromptSubmit", prompt=query, session_id=session_id or self._session_id)

    def on_turn_start(self, turn_number: int, message: str, **kwargs: Any) -> None:
        self._has_unsynced_turn = True

    def sync_turn(
        self,
        user_content: str,
        assistant_content: str,
        *,
        session_id: str = "",
        messages: list[dict[str, Any]] | None = None,
    ) -> None:
        """Writes the turn to the spool; it is on disk when this returns."""
        self._has_unsynced_turn = False
        turn = [("user", user_content), ("assistant", assistant_content)]
        self._spool_turn(session_id or self._session_id, [(role, text) for role, text in turn if text])

    def on_session_end(self, messages: list[dict[str, Any]]) -> None:
        """Records a turn that was interrupted: Hermes does not sync it, but has it in its database."""
        if self._has_unsynced_turn:
            self._has_unsynced_turn = False
            self._spool_turn(self._session_id, [])

    def on_session_switch(
        self, new_session_id: str, *, parent_session_id: str = "", reset: bool = False, **kwargs: Any
    ) -> None:
        """Uses the new session id; a new conversation gets the current memory."""
        self._session_id = new_session_id
        if reset:
            self._memory_text = self._ask("SessionStart")

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        return self._tools

    def handle_tool_call(self, tool_name: str, args: dict[str, Any], **kwargs: Any) -> str:
        """Returns the answer of a tool as a JSON string."""
        payload = {"tool": tool_name, "arguments": args, "session_id": self._session_id}
        answer = self._run("ToolCall", payload, _TOOL_TIMEOUT)
        return answer or json.dumps({"success": False, "error": _NO_ANSWER})

    def shutdown(self) -> None:
        """Does not stop running captures: they end by themselves."""
        self._captures.clear()

    def _ask(self, event: str, **fields: str) -> str:
        """Returns the text that the program answers to an event; "" when there is none or the answer is late."""
        answer = self._run(event, {"session_id": self._session_id, **fields}, _RECALL_TIMEOUT)
        try:
            text = json.loads(answer)["text"] if answer else ""
        except (ValueError, KeyError, TypeError):
            _log.warning("memoranda: the answer to %s cannot be read", event)
            return ""
        return text if isinstance(text, str) else ""

    def _run(self, event: str, payload: dict[str, Any], timeout: float) -> str:
        try:
            done = subprocess.run(
                self._event_command(event),
                input=json.dumps(payload).encode(),
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=timeout,
                cwd=os.sep,
                check=False,
            )
        except subprocess.TimeoutExpired:
            _log.warning("memoranda: no answer to %s within %g seconds", event, timeout)
            return ""
        except (OSError, ValueError) as error:
            _log.warning("memoranda: %s cannot be started: %s", self._command[0], error)
            return ""
        return done.stdout.decode("utf-8", "replace").strip()

    def _event_command(self, event: str) -> list[str]:
        """Returns the command with the event after the name of the host, and with the user if there is one."""
        index = self._command.index(_HOST, self._command.index("hook")) + 1
        user = ["--user", self._user] if self._user else []
        return [*self._command[:index], event, *self._command[index:], *user]

    def _spool_turn(self, session_id: str, messages: list[tuple[str, str]]) -> None:
        turn = {
            "session_id": session_id,
            "database": self._database,
            "user": self._user,
            "at": time.time(),
            "messages": [{"role": role, "content": text} for role, text in messages],
        }
        _write_durably(self._spool, f"{time.time_ns():020d}-{uuid.uuid4().hex[:8]}", json.dumps(turn).encode())
        self._start_capture()

    def _start_capture(self) -> None:
        """Starts a process that records the spool and outlives Hermes; if it cannot start, the next one does it."""
        self._captures = [process for process in self._captures if process.poll() is None]
        nothing = subprocess.DEVNULL
        try:
            process = subprocess.Popen(
                self._event_command("capture"), stdin=nothing, stdout=nothing, stderr=nothing, cwd=os.sep,
                start_new_session=True,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            _log.warning("memoranda: the turn waits in %s: %s", self._spool, error)
        else:
            self._captures.append(process)


def _write_durably(directory: Path, name: str, content: bytes) -> None:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    staged = directory / f".{name}.tmp"
    descriptor = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "wb", closefd=False) as stream:
            stream.write(content)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    staged.replace(directory / f"{name}.json")
    if os.name == "posix":
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _find_user(hermes_home: str, kwargs: dict[str, Any]) -> str | None:
    """Returns whose memory a conversation uses: None for the owner's, else an id of another person or a group chat.

    The users of a messaging gateway do not share the owner's memory, unless memory.memoranda.owner in Hermes's
    config.yaml lists them (`- telegram:12345`).
    """
    platform, user_id, chat_id = (str(kwargs.get(key) or "") for key in ("platform", "user_id", "chat_id"))
    if not user_id and not chat_id:
        return None
    is_group = str(kwargs.get("chat_type") or "dm").lower() not in ("dm", "direct", "private")
    user = f"{platform}:chat:{chat_id}" if is_group or not user_id else f"{platform}:{user_id}"
    return None if user in _read_owners(hermes_home) else user


def _read_owners(hermes_home: str) -> list[str]:
    try:
        import yaml  # type: ignore[import-untyped]  # noqa: PLC0415
    except ImportError:
        return []
    try:
        config = yaml.safe_load((Path(hermes_home) / "config.yaml").read_text("utf-8"))
        owners = config["memory"]["memoranda"]["owner"]
    except (OSError, ValueError, KeyError, TypeError, yaml.YAMLError):
        return []
    return [str(owner) for owner in owners] if isinstance(owners, list) else [str(owners)]


def register(ctx: Any) -> None:
    ctx.register_memory_provider(MemorandaProvider())
