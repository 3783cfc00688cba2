"""A double of ByteRover: a real program in `brv`'s place, and the files of the context trees of a home."""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

from tests.external.vendors.vendor_service import Fault, VendorDouble

RECORDED = Path(__file__).parent / "recorded"
_PERMANENT = (401, 403, 422)


class BrvDouble(VendorDouble):
    """The program is in `folder`. With the faults 401, 403 and 422 it is missing; with the others it prints them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder
        folder.mkdir(exist_ok=True)
        self._state: dict[str, Any] = {"recorded": str(RECORDED), "fault": None, "model": True, "lose_answer": False}
        self.fail(None)

    @property
    def program(self) -> Path:
        return self.folder / "brv"

    @property
    def calls(self) -> list[dict[str, Any]]:
        log = self.folder / "calls.jsonl"
        return [json.loads(line) for line in log.read_text("utf-8").splitlines()] if log.exists() else []

    def fail(self, fault: Fault | None) -> None:
        self.set(fault=fault)
        if fault in _PERMANENT:
            self.program.unlink(missing_ok=True)
        else:
            # Not in the first line itself: the path of the environment may have a space, or be too long for it.
            words = shlex.join([sys.executable, "-SE", str(Path(__file__).parent / "brv_stand_in.py")])
            self.program.write_text(f'#!/bin/sh\nexec {words} "$0" "$@"\n', "utf-8")
            self.program.chmod(0o755)

    def set(self, **changes: Any) -> None:
        self._state |= changes
        (self.folder / "state.json").write_text(json.dumps(self._state), "utf-8")

    def lose_next_answer(self) -> None:
        """Nothing answers when a turn is stored: it is a file."""

    def stored_texts(self) -> list[str]:
        files = [file for tree in self.home.glob("byterover*/**/context-tree") for file in tree.rglob("*.md")]
        return [file.read_text("utf-8") for file in sorted(files, key=lambda file: file.stat().st_mtime_ns)]

    def block_tree(self, block: bool = True) -> None:
        """Put a file where each tree of the home is, so that nothing can be stored; or put the trees back."""
        for project in (self.home / "byterover", *self.home.glob("byterover-users/*")):
            tree, moved = project / ".brv" / "context-tree", project / ".brv" / "moved"
            if block and tree.is_dir():
                tree.rename(moved)
                tree.write_text("", "utf-8")
            elif not block and tree.is_file():
                tree.unlink()
                moved.rename(tree)
