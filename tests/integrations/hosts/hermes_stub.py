"""A stand-in for Hermes that loads the installed provider as Hermes does, in a Python without any package."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.timing import GIVE_UP

# The part of Hermes that a provider imports: a class with these abstract members.
_CONTRACT = """
from abc import ABC, abstractmethod

class MemoryProvider(ABC):
    @property
    @abstractmethod
    def name(self): ...
    @abstractmethod
    def is_available(self): ...
    @abstractmethod
    def initialize(self, session_id, **kwargs): ...
    @abstractmethod
    def get_tool_schemas(self): ...
"""
# Hermes brings a YAML parser; the settings of these tests are JSON, which is YAML too.
_YAML = "import json\nsafe_load = json.loads\nclass YAMLError(Exception): ...\n"
_DRIVER = """
import importlib.util, json, sys
sys.path.insert(0, sys.argv[1])
spec = importlib.util.spec_from_file_location("user_plugin", sys.argv[2])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)

class Context:
    def register_memory_provider(self, provider):
        self.provider = provider

context = Context()
module.register(context)
for name, arguments, options in json.load(sys.stdin):
    member = getattr(context.provider, name)
    print(json.dumps(member(*arguments, **options) if callable(member) else member), flush=True)
"""


def call_provider(hermes_home: Path, *calls: tuple[str, list[Any], dict[str, Any]]) -> list[Any]:
    """Loads the provider and makes the calls, each a name with arguments and options; returns their results."""
    stub = hermes_home.parent / "stub"
    (stub / "agent").mkdir(parents=True, exist_ok=True)
    (stub / "agent" / "__init__.py").write_text("")
    (stub / "agent" / "memory_provider.py").write_text(_CONTRACT)
    (stub / "yaml.py").write_text(_YAML)
    plugin = hermes_home / "plugins" / "memoranda" / "__init__.py"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _DRIVER, str(stub), str(plugin)], input=json.dumps(calls),
        capture_output=True, text=True, timeout=GIVE_UP, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]
