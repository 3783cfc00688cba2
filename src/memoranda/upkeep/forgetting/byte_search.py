"""Reads every byte of a home and reports where a text is, in a new process.

Closing a file that this process has open through SQLite would release SQLite's locks on it, so only another process may
read it as bytes. The texts come on standard input, never as arguments, which other users of the machine could see.
Archives are decompressed. Files of the search index are also searched for single words that no posting needs. The
process starts with every search, so this module imports little.
"""

import gzip
import json
import os
import re
import sqlite3
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import field
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

from memoranda.errors import StorageError
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.text_matcher import byte_pattern

_CHUNK = 4_000_000
_INDEX = re.compile(
    r"(?:state|server-\w+)\.index\.(?:items\.)?db\.\d+|server-\w+\.index\.users/[0-9a-f]+\.index\.db\.\d+"
)
_MIN_OVERLAP = 4_096


@dataclass(slots=True)
class ByteSearch:
    """What was read, and in which files the texts were found, with counts; the names are relative to the home."""

    files: int = 0
    bytes: int = 0
    found: dict[str, int] = field(default_factory=dict)
    stale_words: list[str] = field(default_factory=list)
    """Files of the search index with words that no message has any more."""
    unreadable: list[str] = field(default_factory=list)


def search_home(
    root: Path, texts: Sequence[str], words: Sequence[str] = (), *, whole_words: bool = False
) -> ByteSearch:
    """Read every byte below a directory in another process; raises StorageError if that fails."""
    order = {"root": str(root), "texts": list(texts), "words": list(words), "whole_words": whole_words}
    done = subprocess.run(
        [sys.executable, "-m", "memoranda.upkeep.forgetting.byte_search"],
        input=json.dumps(order),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise StorageError(f"The home could not be read byte by byte: {done.stderr.strip()[-500:]}")
    return ByteSearch(**json.loads(done.stdout))


def walk(root: Path) -> Iterator[Path]:
    """Every regular file below a directory; links are not followed."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not os.path.islink(os.path.join(folder, name)))
        for name in sorted(names):
            path = Path(folder, name)
            if path.is_file() and not path.is_symlink():
                yield path


def _search(root: Path, texts: Sequence[str], words: Sequence[str], whole_words: bool) -> ByteSearch:
    result = ByteSearch()
    patterns = [byte_pattern([text], whole_words=whole_words) for text in texts]
    word_patterns = [byte_pattern([word]) for word in words]
    overlap = max([_MIN_OVERLAP, *(len(text) * 16 for text in texts)])
    for path in walk(root):
        name = path.relative_to(root).as_posix()
        try:
            result.files += 1
            hits = 0
            stale = False
            for part in _parts(path):
                for chunk in _chunks(part, overlap):
                    result.bytes += len(chunk.new)
                    hits += sum(chunk.count(pattern) for pattern in patterns)
                    stale = stale or any(pattern.search(chunk.text) for pattern in word_patterns)
            if hits:
                result.found[name] = hits
            if stale and _INDEX.fullmatch(name) and _has_stale_words(path, words):
                result.stale_words.append(name)
        except FileNotFoundError:
            # Another process has just removed it.
            continue
        except (OSError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
            result.unreadable.append(f"{name}: {error}")
    return result


@dataclass(frozen=True, slots=True)
class _Chunk:
    """A part of a file in lower case; `new` is what the chunk before did not have."""

    text: bytes
    new: bytes

    def count(self, pattern: re.Pattern[bytes]) -> int:
        before = len(self.text) - len(self.new)
        return sum(match.end() > before for match in pattern.finditer(self.text))


def _chunks(stream: IO[bytes] | gzip.GzipFile, overlap: int) -> Iterator[_Chunk]:
    tail = b""
    with stream:
        while block := stream.read(_CHUNK):
            new = block.lower()
            yield _Chunk(tail + new, new)
            tail = (tail + new)[-overlap:]


def _parts(path: Path) -> Iterator[IO[bytes] | gzip.GzipFile]:
    """The file itself and, of an archive, every member as it was before compression."""
    yield path.open("rb")
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                if not member.is_dir():
                    yield archive.open(member)
    elif path.suffix == ".gz":
        yield gzip.GzipFile(path)


def _has_stale_words(path: Path, words: Sequence[str]) -> bool:
    """Whether one of the words is in the bytes of an index although no posting and no title has it."""
    raw = path.read_bytes().lower()
    wal = Path(f"{path}-wal")
    raw += wal.read_bytes().lower() if wal.exists() else b""
    with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=10)) as connection:
        for word in words:
            if word.encode() not in raw:
                continue
            needed = connection.execute(
                "SELECT EXISTS (SELECT 1 FROM postings WHERE instr(token, ?1))"
                " OR EXISTS (SELECT 1 FROM sessions WHERE instr(lower(coalesce(title, '') || ' ' || id || ' ' || source"
                " || ' ' || coalesce(project, '') || ' ' || coalesce(user, '')), ?1))",
                (word,),
            ).fetchone()[0]
            if not needed:
                return True
    return False


def main() -> None:
    order: dict[str, Any] = json.load(sys.stdin)
    found = _search(Path(order["root"]), order["texts"], order["words"], order["whole_words"])
    result = {name: getattr(found, name) for name in ("files", "bytes", "found", "stale_words", "unreadable")}
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main()
