"""Plugins as other people write them, put into a home."""

from pathlib import Path
from textwrap import indent

HERMES_STYLE = '''
"""A provider written for Hermes: it imports Hermes's module and registers itself."""
from agent.memory_provider import MemoryProvider
from hermes_constants import get_hermes_home

from .notes import Notes


class NotesProvider(MemoryProvider):
    def __init__(self):
        self.notes = Notes()
        self.writes = []

    @property
    def name(self):
        return "notes"

    def is_available(self):
        return True

    def initialize(self, session_id, **kwargs):
        self.session_id = session_id
        self.home = get_hermes_home()

    def get_tool_schemas(self):
        return []

    def prefetch(self, query, *, session_id=""):
        return self.notes.about(query)

    def on_memory_write(self, action, target, content):
        self.writes.append((action, target, content))


def register(ctx):
    ctx.register_tool("something", lambda: None)
    ctx.register_memory_provider(NotesProvider())
'''
NOTES = """
class Notes:
    def about(self, query):
        return f"a note about {query}"
"""
# The least that a provider has; what more it does is added behind it.
PLAIN = """
import os, subprocess, sys, time
from agent.memory_provider import MemoryProvider


class Plain(MemoryProvider):
    name = {name!r}

    def is_available(self):
        return True

    def initialize(self, session_id, **kwargs):
        pass

    def get_tool_schemas(self):
        return []

"""


def plain(name: str, *methods: str) -> str:
    """The source of a plugin that does nothing but what its methods do, which are written without indent."""
    return PLAIN.format(name=name) + indent("\n".join(methods), "    ") + "\n"


def add_plugin(home: Path, name: str, source: str = HERMES_STYLE, manifest: str = "", **files: str) -> Path:
    """Write a plugin into a home; more files by their names without ending."""
    place = home / "plugins" / name
    place.mkdir(parents=True)
    (place / "__init__.py").write_text(source)
    if manifest:
        (place / "plugin.yaml").write_text(manifest)
    for file, text in ({"notes": NOTES} | files).items():
        (place / f"{file}.py").write_text(text)
    return place
