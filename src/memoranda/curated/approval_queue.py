"""Proposed writes that await approval: one file each under `pending/`, removed only when the write is durable."""

import json
import re
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from memoranda.curated.operations import Add, Operation, Remove, Replace
from memoranda.curated.settings import TARGETS, Target
from memoranda.curated.write_result import Origin
from memoranda.errors import StorageError
from memoranda.support.clock import utc_timestamp
from memoranda.support.durable_files import make_private_directory, sync_directory, write_private

_ID = re.compile(r"[0-9a-f]{8}")
_KINDS: dict[str, type[Operation]] = {"add": Add, "replace": Replace, "remove": Remove}


@dataclass(frozen=True, slots=True)
class Proposal:
    """One call of the memory tool that a person has yet to approve."""

    id: str
    target: Target
    actor: str
    session: str
    operations: tuple[Operation, ...]
    # The entries that the operations would change or remove, as they were then; None for each that they add.
    replaced: tuple[str | None, ...] = ()
    at: str = field(default_factory=utc_timestamp)
    # What untrusted text may have suggested it.
    sources: tuple[str, ...] = ()

    @property
    def origin(self) -> Origin:
        """The origin of the write, now explicitly approved by a person."""
        return Origin(self.actor, self.session, explicit=True, sources=self.sources)


class ApprovalQueue:
    """The proposals of one memory directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def add(
        self, target: Target, operations: Sequence[Operation], origin: Origin, replaced: Sequence[str | None]
    ) -> Proposal:
        make_private_directory(self.directory)
        proposal_id = secrets.token_hex(4)
        proposal = Proposal(
            proposal_id,
            target,
            origin.actor,
            origin.session,
            tuple(operations),
            tuple(replaced),
            sources=origin.sources,
        )
        record = asdict(proposal) | {"operations": [encode_operation(item) for item in operations]}
        text = json.dumps(record, ensure_ascii=False, indent=1)
        write_private(self._path(proposal.id), text.encode("utf-8", "backslashreplace"))
        return proposal

    def get(self, proposal_id: str) -> Proposal | None:
        """The proposal with this id; None for an unknown or invalid id."""
        if not _ID.fullmatch(proposal_id):
            return None
        try:
            return _decode(proposal_id, self._path(proposal_id).read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise StorageError(f"{self._path(proposal_id)} cannot be read ({error}). Repair or delete it.") from error

    def all(self) -> list[Proposal]:
        """Every proposal that awaits approval, oldest first."""
        ids = [path.stem for path in self.directory.glob("*.json") if _ID.fullmatch(path.stem)]
        found = [proposal for proposal_id in ids if (proposal := self.get(proposal_id))]
        return sorted(found, key=lambda proposal: proposal.at)

    def remove_applied(self, proposal: Proposal) -> None:
        """Remove a proposal whose write is done."""
        self._path(proposal.id).unlink(missing_ok=True)
        sync_directory(self.directory)

    def reject(self, proposal: Proposal) -> None:
        """Remove a proposal from the queue but keep its text until the history is purged."""
        make_private_directory(self._rejected)
        self._path(proposal.id).replace(self._rejected / f"{proposal.id}.json")
        sync_directory(self.directory)
        sync_directory(self._rejected)

    def purge_rejected(self) -> int:
        rejected = list(self._rejected.glob("*.json"))
        for path in rejected:
            path.unlink()
        return len(rejected)

    @property
    def _rejected(self) -> Path:
        return self.directory / "rejected"

    def _path(self, proposal_id: str) -> Path:
        return self.directory / f"{proposal_id}.json"


def encode_operation(operation: Operation) -> dict[str, str]:
    """An operation as arguments of the memory tool."""
    return {"action": type(operation).__name__.lower()} | asdict(operation)


def _decode(proposal_id: str, raw: bytes) -> Proposal:
    record: Any = json.loads(raw)
    if not isinstance(record, dict) or record["target"] not in TARGETS:
        raise ValueError("it is not a proposal")
    operations = tuple(_decode_operation(item) for item in record["operations"])
    replaced = tuple(text if text is None else _text(text) for text in record["replaced"])
    actor, session, at = _text(record["actor"]), _text(record["session"]), _text(record["at"])
    sources = tuple(map(_text, record.get("sources", ())))
    return Proposal(proposal_id, record["target"], actor, session, operations, replaced, at, sources)


def _decode_operation(item: Any) -> Operation:
    if not isinstance(item, dict):
        raise ValueError("an operation is not an object")
    fields = {name: _text(text) for name, text in item.items()}
    return _KINDS[fields.pop("action")](**fields)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not text")
    return value
