"""What the commands of all checks share: their options, the program that they run, and the report at the end."""

import argparse
import json
import shutil
import sys
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NoReturn


@dataclass
class CheckCounts(ABC):
    """What a check saw over all runs; a subclass adds its figures."""

    version: str = ""
    runs: int = 0

    @abstractmethod
    def is_complete(self) -> bool:
        """Whether every figure is as it should be."""

    @abstractmethod
    def format(self) -> str:
        """Returns the figures as lines of text."""

    def report(self, *, as_json: bool) -> NoReturn:
        """Prints the figures and ends the program, with exit code 1 when one is not as it should be."""
        print(json.dumps(asdict(self), indent=2) if as_json else self.format())
        sys.exit(0 if self.is_complete() else 1)


def create_parser(description: str | None, program: str, runs: int, runs_help: str) -> argparse.ArgumentParser:
    """Returns a parser for the options of every check: the program, `--runs` and `--json`."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_program_option(parser, program)
    parser.add_argument("--runs", type=int, default=runs, help=runs_help)
    parser.add_argument("--json", action="store_true", help="print the counts as JSON")
    return parser


def add_program_option(parser: argparse.ArgumentParser, program: str) -> None:
    parser.add_argument(
        f"--{program}", default=shutil.which(program), help="the program; the one on the PATH by default"
    )


def program_path(options: argparse.Namespace, program: str, installer: str = "npm") -> str:
    """Returns the absolute path of the program; ends the check when there is none."""
    path = getattr(options, program)
    if not path:
        raise SystemExit(f"{program} is not on the PATH; install it with {installer}, or name it with --{program}.")
    return str(Path(path).absolute())
