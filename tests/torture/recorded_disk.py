"""What a disk holds after a power cut, computed from the system calls of a process that `strace` has recorded.

A write reaches the disk for certain only with the sync that follows it. At a cut, each write that was not synced may
have reached the disk, in whole sectors, or not; names that were created, changed or removed reach it in their order.
"""

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

CALLS = "openat,write,pwrite64,ftruncate,rename,renameat,renameat2,unlink,unlinkat,fsync,fdatasync,linkat,link"
_SECTOR = 512
_CALL = re.compile(r"(\d+)\s+(?:<\.\.\. )?(\w+)(?:\(| resumed>)(.*)")
_HEX = re.compile(r"\\x([0-9a-f]{2})")
_STRING = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_DESCRIPTOR = re.compile(r"(\d+)<((?:\\x[0-9a-f]{2})*)>")
_RESULT = re.compile(r"\) = (-?\d+)(?:<((?:\\x[0-9a-f]{2})*)>)?[^=]*$")


def _bytes(text: str) -> bytes:
    return bytes.fromhex("".join(_HEX.findall(text)))


@dataclass(frozen=True, slots=True)
class Call:
    """One completed system call: its name, its arguments as written, and its result."""

    process: str
    name: str
    arguments: str
    result: int
    opened: str = ""

    @property
    def strings(self) -> list[bytes]:
        return [_bytes(text) for text in _STRING.findall(self.arguments)]

    @property
    def descriptor(self) -> tuple[int, str]:
        found = _DESCRIPTOR.match(self.arguments)
        return (int(found[1]), _bytes(found[2]).decode()) if found else (-1, "")


def read_calls(log: Path) -> Iterator[Call]:
    """The completed calls of a log, in the order in which they completed."""
    unfinished: dict[tuple[str, str], str] = {}
    with log.open(encoding="ascii", errors="replace") as lines:
        for line in lines:
            found = _CALL.match(line)
            if not found:
                continue
            process, name, rest = found.groups()
            if rest.rstrip().endswith("<unfinished ...>"):
                unfinished[process, name] = rest.rsplit("<unfinished", 1)[0]
                continue
            rest = unfinished.pop((process, name), "") + rest
            if result := _RESULT.search(rest):
                opened = _bytes(result[2] or "").decode()
                yield Call(process, name, rest[: result.start()], int(result[1]), opened)


@dataclass(slots=True)
class _File:
    synced: bytearray = field(default_factory=bytearray)
    content: bytearray = field(default_factory=bytearray)
    unsynced: list[tuple[int, bytes]] = field(default_factory=list)
    """Writes as position and data; a position of -1 cuts the file to the length in the data."""

    def write(self, position: int, data: bytes) -> None:
        _put(self.content, position, data)
        self.unsynced.append((position, data))

    def sync(self) -> None:
        self.synced, self.unsynced = bytearray(self.content), []

    def after_cut(self, chance: random.Random) -> bytes:
        found = bytearray(self.synced)
        share = chance.choice((0.0, 0.5, 1.0))
        for position, data in self.unsynced:
            if chance.random() < share:
                torn = position >= 0 and len(data) > _SECTOR and chance.random() < 0.3
                _put(found, position, data[: chance.randrange(1, len(data) // _SECTOR + 1) * _SECTOR] if torn else data)
        return bytes(found)


def _put(content: bytearray, position: int, data: bytes) -> None:
    if position < 0:
        length = int.from_bytes(data, "big")
        del content[length:]
        content.extend(bytes(length - len(content)))
        return
    content.extend(bytes(max(0, position - len(content))))
    content[position : position + len(data)] = data


class RecordedDisk:
    """The files below one directory, as the calls so far have left them in memory and on the disk."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._names: dict[str, _File] = {}
        self._synced_names: dict[str, _File] = {}
        # Names that changed since the last sync of their directory: the new file, or None for a removed name.
        self._changes: list[tuple[str, _File | None]] = []
        self._positions: dict[tuple[str, int], int] = {}
        self.printed = b""
        """What the process wrote to its standard output."""
        for path in sorted(directory.rglob("*")):
            if path.is_file():
                content = bytearray(path.read_bytes())
                self._names[str(path)] = self._synced_names[str(path)] = _File(bytearray(content), content)

    def apply(self, call: Call) -> None:
        """Carry out one call, if it succeeded and is about the directory."""
        if call.result < 0:
            return
        descriptor, path = call.descriptor
        if call.name == "openat":
            self._open(call)
        elif call.name == "write" and descriptor == 1:
            self.printed += call.strings[0][: call.result]
        elif call.name in ("write", "pwrite64") and path in self._names:
            self._write(call, descriptor, self._names[path])
        elif call.name == "ftruncate" and path in self._names:
            length = int(call.arguments.rsplit(",", 1)[1])
            file = self._names[path]
            file.write(-1, length.to_bytes(8, "big"))
        elif call.name in ("fsync", "fdatasync"):
            self._sync(path)
        elif call.name.startswith(("rename", "link", "unlink")):
            self._rename(call)

    def after_cut(self, to: Path, chance: random.Random) -> None:
        """Write what the disk may hold if the power is cut now."""
        names = dict(self._synced_names)
        for name, file in self._changes[: chance.randint(0, len(self._changes))]:
            _set(names, name, file)
        for name, file in names.items():
            target = to / Path(name).relative_to(self._directory)
            target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            target.write_bytes(file.after_cut(chance))
            target.chmod(0o600)

    def _open(self, call: Call) -> None:
        path = call.opened
        if not path.startswith(f"{self._directory}/"):
            return
        if path not in self._names and "O_CREAT" in call.arguments:
            self._change(path, _File())
        if path in self._names:
            file = self._names[path]
            if "O_TRUNC" in call.arguments and file.content:
                file.write(-1, bytes(8))
            self._positions[call.process, call.result] = len(file.content) if "O_APPEND" in call.arguments else 0

    def _write(self, call: Call, descriptor: int, file: _File) -> None:
        data = call.strings[0][: call.result]
        if call.name == "pwrite64":
            file.write(int(call.arguments.rsplit(",", 1)[1]), data)
            return
        # Threads share their descriptors, so the position is that of any of them.
        key = next((key for key in self._positions if key[1] == descriptor), (call.process, descriptor))
        position = self._positions.get(key, 0)
        file.write(position, data)
        self._positions[key] = position + len(data)

    def _sync(self, path: str) -> None:
        if path in self._names:
            file = self._names[path]
            file.sync()
            # A file system that syncs a new file syncs its name, and the names that changed before it.
            self._sync_names(lambda name: name == path)
        elif path == str(self._directory) or path.startswith(f"{self._directory}/"):
            self._sync_names(lambda name: str(Path(name).parent) == path)

    def _sync_names(self, concerns: Callable[[str], bool]) -> None:
        last = max((index for index, (name, _) in enumerate(self._changes) if concerns(name)), default=-1)
        for name, file in self._changes[: last + 1]:
            _set(self._synced_names, name, file)
        del self._changes[: last + 1]

    def _rename(self, call: Call) -> None:
        paths = [text.decode() for text in call.strings]
        for old, new in [paths[:2]] if len(paths) > 1 else []:
            if old in self._names:
                self._change(new, self._names[old])
                if call.name.startswith("rename"):
                    self._change(old, None)
        if call.name.startswith("unlink") and paths[0] in self._names:
            self._change(paths[0], None)

    def _change(self, name: str, file: _File | None) -> None:
        _set(self._names, name, file)
        self._changes.append((name, file))


def _set(names: dict[str, _File], name: str, file: _File | None) -> None:
    if file is None:
        names.pop(name, None)
    else:
        names[name] = file
