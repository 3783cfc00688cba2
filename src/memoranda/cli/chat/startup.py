"""From what was asked on the command line to a model, a session and an agent."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import click

from memoranda import config
from memoranda.app import Memory, Session
from memoranda.cli.chat.output import ChatOutput, TerminalOutput
from memoranda.cli.context import EXIT_UNUSABLE
from memoranda.errors import ModelError
from memoranda.llm.demo.model import DemoModel
from memoranda.llm.model import ChatModel
from memoranda.llm.model_factory import model_for

_SOURCE = "cli"
_PACE = 0.015


def choose_model(memory: Memory, name: str | None, screen: ChatOutput, *, demo: bool) -> ChatModel:
    """The model that is meant; a person without any is told how to get one, and offered the demo model."""
    if demo:
        return _demo(screen)
    settings = memory.config.model
    try:
        return model_for(replace(settings, name=name) if name else settings, config.credentials(memory.home))
    except ModelError as error:
        if not isinstance(screen, TerminalOutput):
            exit_with_error(
                screen, f"{error}\nOr add --demo to talk to the demo model.", type(error).__name__, EXIT_UNUSABLE
            )
        click.echo(str(error))
    if not click.confirm("Talk to the demo model for now? It needs no key and no network.", default=True):
        sys.exit(EXIT_UNUSABLE)
    return _demo(screen)


def start_session(memory: Memory, model: ChatModel, session_id: str | None = None) -> Session:
    """A new session, or the one with that id, where its conversation stands now."""
    tip = memory.sessions.get_compression_tip(session_id) if session_id else None
    return memory.session(source=_SOURCE, model=model.name, session_id=tip or session_id, directory=_directory())


def _directory() -> Path | None:
    """Where the person is; None when that was deleted meanwhile."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return None


def exit_with_error(screen: ChatOutput, text: str, kind: str, code: int) -> NoReturn:
    """Say why there can be no chat, and leave."""
    screen.trouble(text, kind)
    sys.exit(code)


def _demo(screen: ChatOutput) -> ChatModel:
    """The demo model, at a pace that can be read where somebody reads."""
    return DemoModel(pace=_PACE if isinstance(screen, TerminalOutput) else 0.0)
