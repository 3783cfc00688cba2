"""Reads Markdown files as notes: those of a vault, or of a memory that an agent keeps in files.

The lines between `---` at the start of a file name its title, dates and more. They are read as plain lines and not as
YAML, whose aliases could fill the memory.
"""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from memoranda.importers.notes import note, notes_of
from memoranda.importers.reader_protocol import ImportItem, Problem, ReadEvent, Skipped
from memoranda.importers.source_files import find_files, read_bytes

_FIELD = re.compile(r"([A-Za-z_][\w-]{0,60}):[ \t]*(.*)")
_MAX_FIELDS = 100
_DATES = ("modified", "updated", "updated_at", "date", "created", "created_at")
_LIST_ITEM = re.compile(r"[ \t]*-[ \t]+(.*)")


def find_markdown(directory: Path) -> list[ImportItem]:
    """Return the Markdown files of a directory, without hidden ones and without links that lead out of it."""
    return [item for item in find_files(directory, _is_markdown, str(directory)) if _is_inside(item.file, directory)]


def markdown_events(item: ImportItem, program: str, collection: str, title: str) -> Iterator[ReadEvent]:
    """Yield one file as a note of a collection; its id is its path in the directory that the item's label names."""
    raw = read_bytes(item)
    if isinstance(raw, Problem):
        yield raw
        return
    fields, text = split_front_matter(raw.decode("utf-8-sig", "replace"))
    if not text.strip():
        yield Skipped("file without text")
        return
    name = os.path.relpath(item.file, item.label)
    heading = fields.get("title", "")
    if heading and heading not in text[:500]:
        # Without it, a search for the title of a note would not find the note.
        text = f"# {heading}\n\n{text}"
    at = next((fields[date] for date in _DATES if fields.get(date)), item.modified_at)
    yield notes_of(program, collection, title)
    yield note(collection, name, text.strip(), at, fields)


def split_front_matter(text: str) -> tuple[dict[str, str], str]:
    """Return the fields at the start of a file, and the text after them."""
    lines = text.split("\n")
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), 0)
    if lines[0].rstrip() != "---" or not end:
        return {}, text
    fields: dict[str, str] = {}
    for line in lines[1:end]:
        found, entry = _FIELD.fullmatch(line.rstrip()), _LIST_ITEM.fullmatch(line.rstrip())
        if found and len(fields) < _MAX_FIELDS:
            fields[found[1]] = found[2].strip().strip("'\"")
        elif entry and fields:
            last = next(reversed(fields))
            fields[last] = f"{fields[last]}, {entry[1]}".removeprefix(", ")
    return fields, "\n".join(lines[end + 1 :])


def _is_markdown(file: Path) -> bool:
    return file.suffix == ".md" and not file.name.startswith(".")


def _is_inside(file: Path, directory: Path) -> bool:
    parts: Sequence[str] = file.relative_to(directory).parts
    if any(part.startswith(".") or part == "node_modules" for part in parts[:-1]):
        return False
    try:
        return file.resolve().is_relative_to(directory.resolve())
    except (OSError, RuntimeError):
        return False
