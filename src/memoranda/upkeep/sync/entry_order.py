"""The order of entries as a thing to synchronise: for each target, the ids of its entries from the first to the last.

Of two orders, the later one comes first, and what only the other one has is added at its end.
"""

from collections.abc import Sequence

from memoranda.memory.curated.operations import EntryEdit, EntryPlan, MemoryRefusal, apply_edit
from memoranda.memory.curated.settings import FILE_NAMES, TARGETS, Target
from memoranda.memory.curated.writer import WriteRequest
from memoranda.support.origin import Origin
from memoranda.upkeep.sync.memory_merge import current_entries, entry_digest
from memoranda.upkeep.sync.run import Run
from memoranda.upkeep.sync.synced_entries import entries_of, order_of, set_order
from memoranda.upkeep.sync.things import State
from memoranda.upkeep.sync.versions import digest_of

_MAX_ENTRIES = 100_000
_MAX_ID_CHARS = 100


class EntryOrder:
    """The order of the entries of each target; it is applied by `arrange_entries`, when all entries have arrived."""

    name = "order"
    noun = ""

    def read(self, run: Run) -> dict[str, State]:
        return {target: order for target in TARGETS if (order := order_of(run.tables, target))}

    def write(self, run: Run, name: str, state: State) -> str:
        set_order(run.tables, name, state or [])
        return ""

    def combine(self, earlier: State, later: State) -> State:
        first, second = later or [], earlier or []
        return [*first, *(uid for uid in second if uid not in set(first))]

    def digest(self, state: State) -> str:
        return digest_of(state)

    @staticmethod
    def check(name: str, state: State) -> None:
        if name not in TARGETS or (state is not None and not isinstance(state, list)):
            raise ValueError("an order of entries")
        if state is not None and (
            len(state) > _MAX_ENTRIES or not all(isinstance(uid, str) and len(uid) <= _MAX_ID_CHARS for uid in state)
        ):
            raise ValueError("the ids of entries")


def collect_order(run: Run) -> None:
    """Note the order of the files, if it is not that of the last run, and the entries that were added since."""
    for target in TARGETS:
        order, stored = _order_here(run, target), order_of(run.tables, target)
        is_kept = _arranged(order, stored) == order
        added = [uid for uid in order if uid not in set(stored)]
        set_order(run.tables, target, [*stored, *added] if is_kept else order)


def arrange_entries(run: Run) -> None:
    """Bring the entries of both files into the order that the machines have agreed on."""
    for target in TARGETS:
        order = _order_here(run, target)
        wanted = _arranged(order, order_of(run.tables, target))
        if wanted != order:
            _arrange(run, target, wanted)


def _order_here(run: Run, target: Target) -> list[str]:
    uids = {version.digest: uid for uid, (version, _) in entries_of(run.tables, target).items() if version.digest}
    digests = [entry_digest(text) for text in current_entries(run.memory, target)]
    return [uids[digest] for digest in digests if digest in uids]


def _arranged(order: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """The ids in the wanted order, and then those that it does not name."""
    present, named = set(order), set(wanted)
    return [*(uid for uid in wanted if uid in present), *(uid for uid in order if uid not in named)]


def _arrange(run: Run, target: Target, wanted: list[str]) -> None:
    digests = {uid: version.digest for uid, (version, _) in entries_of(run.tables, target).items()}
    positions = {digests[uid]: position for position, uid in enumerate(wanted)}

    def plan(current: Sequence[str]) -> EntryPlan:
        entries, edits = list(current), []
        ordered = sorted(current, key=lambda text: positions.get(entry_digest(text), len(positions)))
        for position, text in enumerate(ordered):
            if entries[position] != text:
                # As a removal and an addition: an exchange of texts would look like two changed entries.
                found = entries.index(text, position)
                for edit in (EntryEdit(found, text, None), EntryEdit(position, None, text)):
                    apply_edit(entries, edit)
                    edits.append(edit)
        return EntryPlan(tuple(entries), tuple(edits))

    origin = Origin(f"sync:{run.sender or 'order'}", explicit=True)
    request = WriteRequest(target, "batch", origin, plan, f"Arranged {FILE_NAMES[target]}.")
    # External memories have no order, and would see each moved entry removed and added.
    outcome = run.memory.commit_unannounced(request)
    if isinstance(outcome, MemoryRefusal):
        run.report.notes.append(f"The order of {FILE_NAMES[target]} was not changed: {outcome.message}")
