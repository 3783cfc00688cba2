"""A terminal in which tests run `memoranda` on one home."""

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from memoranda.cli.main import command


class Terminal:
    """Runs `memoranda` in one home; `words` come before the arguments of every call."""

    def __init__(self, home: Path, *words: str) -> None:
        self.home = home
        self._words = words

    def run(self, *arguments: str, input: str | None = None) -> Result:
        return CliRunner().invoke(command, ["--home", str(self.home), *self._words, *arguments], input=input)

    def ok(self, *arguments: str, input: str | None = None) -> str:
        result = self.run(*arguments, input=input)
        assert result.exit_code == 0, result.output
        return result.output

    def refused(self, *arguments: str, input: str | None = None) -> str:
        """What is printed by a call that does nothing."""
        result = self.run(*arguments, input=input)
        assert result.exit_code == 1, result.output
        return result.output

    def json(self, *arguments: str) -> Any:
        result = self.run(*arguments, "--json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)
