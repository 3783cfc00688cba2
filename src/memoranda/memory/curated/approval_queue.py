"""Proposed writes that await approval: one text each under `pending/`, removed only when the write is durable."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, field
from typing import Any

from memoranda.errors import StorageError
from memoranda.memory.curated.operations import Add, Operation, Put, Remove, Replace
from memoranda.memory.curated.settings import Target, is_target
from memoranda.storage.files.named_texts import NamedTexts
from memoranda.support.lazy_dataclass import dataclass
from memoranda.support.lazy_pattern import compile_later
from memoranda.support.origin import Origin, utc_timestamp

_ID = compile_later(r"[0-9a-f]{8}")
_SUFFIX = ".json"
_REJECTED = "rejected/"
_KINDS: dict[str, type[Operation]] = {"add": Add, "replace": Replace, "remove": Remove, "put": Put}


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
    """The proposals of one user's memory; a rejected one is renamed."""

    def __init__(self, texts: NamedTexts) -> None:
        self.texts = texts

    def add(
        self,
        target: Target,
        operations: Sequence[Operation],
        origin: Origin,
        replaced: Sequence[str | None],
        proposal_id: str = "",
    ) -> Proposal:
        """Let operations await approval; `proposal_id` is one of `new_proposal_id` that the caller has noted before."""
        proposal = Proposal(
            proposal_id or new_proposal_id(),
            target,
            origin.actor,
            origin.session,
            tuple(operations),
            tuple(replaced),
            sources=origin.sources,
        )
        record = asdict(proposal) | {"operations": [encode_operation(item) for item in operations]}
        text = json.dumps(record, ensure_ascii=False, indent=1)
        self.texts.write(_name(proposal.id), text.encode("utf-8", "backslashreplace"))
        return proposal

    def get(self, proposal_id: str) -> Proposal | None:
        """The proposal with this id that awaits approval; None for an unknown or invalid id."""
        return self._read(proposal_id, "")

    def get_rejected(self, proposal_id: str) -> Proposal | None:
        """The rejected proposal with this id; None for an unknown or invalid id."""
        return self._read(proposal_id, _REJECTED)

    def _read(self, proposal_id: str, folder: str) -> Proposal | None:
        if not _ID.fullmatch(proposal_id):
            return None
        name = folder + _name(proposal_id)
        try:
            return _decode(proposal_id, self.texts.read(name))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise StorageError(f"{self.texts.path(name)} cannot be read ({error}). Repair or delete it.") from error

    def all(self) -> list[Proposal]:
        """Every proposal that awaits approval, oldest first."""
        return self._all("")

    def rejected(self) -> list[Proposal]:
        """Every rejected proposal whose text still exists, oldest first."""
        return self._all(_REJECTED)

    def _all(self, folder: str) -> list[Proposal]:
        names = [name.removeprefix(folder) for name in self.texts.names() if name.startswith(folder)]
        ids = [name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX)]
        found = [proposal for proposal_id in ids if (proposal := self._read(proposal_id, folder))]
        return sorted(found, key=lambda proposal: proposal.at)

    def remove(self, proposal: Proposal) -> None:
        """Remove a proposal whose write is done, or that its author takes back; nothing of it stays."""
        self.texts.remove(_name(proposal.id))

    def reject(self, proposal: Proposal) -> None:
        """Remove a proposal from the queue but keep its text until the history is purged."""
        self.texts.rename(_name(proposal.id), _REJECTED + _name(proposal.id))

    def restore(self, proposal: Proposal) -> None:
        """Let a rejected proposal await approval again."""
        self.texts.rename(_REJECTED + _name(proposal.id), _name(proposal.id))

    def read_texts(self) -> dict[str, dict[str, Any]]:
        """The texts of all proposals by id, and whether each was rejected; those that cannot be read are omitted."""
        found = {}
        for name in self.texts.names():
            proposal_id = name.removeprefix(_REJECTED).removesuffix(_SUFFIX)
            try:
                text = self.texts.read(name).decode()
                self.check_text(proposal_id, text)
            except (OSError, ValueError):
                # 'memoranda doctor' reports it.
                continue
            found[proposal_id] = {"text": text, "rejected": name.startswith(_REJECTED)}
        return found

    def write_text(self, proposal_id: str, state: Mapping[str, Any] | None) -> None:
        """Give a proposal the text and the place of another machine's, or remove it. Needs the lock of the memory."""
        names = {True: _REJECTED + _name(proposal_id), False: _name(proposal_id)}
        if state is not None:
            self.texts.write(names.pop(state["rejected"]), state["text"].encode())
        for name in names.values():
            self.texts.remove(name)

    @staticmethod
    def check_text(proposal_id: str, text: str | None) -> None:
        """Raise ValueError unless this is the id of a proposal and the text of one, or None."""
        if not _ID.fullmatch(proposal_id):
            raise ValueError("it is not the id of a proposal")
        try:
            if text is not None:
                _decode(proposal_id, text.encode())
        except (KeyError, TypeError, RecursionError) as error:
            raise ValueError("it is not a proposal") from error

    def purge_rejected(self) -> int:
        rejected = [name for name in self.texts.names() if name.startswith(_REJECTED)]
        for name in rejected:
            self.texts.remove(name)
        return len(rejected)


def new_proposal_id() -> str:
    return os.urandom(4).hex()


def _name(proposal_id: str) -> str:
    return f"{proposal_id}{_SUFFIX}"


def encode_operation(operation: Operation) -> dict[str, str]:
    """An operation with its name, as proposals store it."""
    fields = {name: text for name, text in asdict(operation).items() if text or name != "until"}
    return {"action": type(operation).__name__.lower()} | fields


def _decode(proposal_id: str, raw: bytes) -> Proposal:
    record: Any = json.loads(raw)
    if not isinstance(record, dict) or not is_target(record["target"]):
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
