"""How sessions are related: links to parents that arrive later, and continuations that two machines made at once.

The links follow from which sessions exist and from how each was related to its parent when it began, so all machines
have the same. If several sessions continue one, the oldest is its continuation, and the others are branches.
"""

from memoranda.upkeep.sync.run import Run

_CONTINUES = "compression"


def note_removed(run: Run, session_id: str) -> None:
    """Note that the relatives of a session must be linked again, because it is deleted."""
    run.db.synced_rows.drop_counts(session_id)
    parent, _ = run.tables.parent_of(session_id)
    if parent:
        run.unlinked.add(run.tables.session_of(parent) or "")


def link_sessions(run: Run) -> None:
    """Link the sessions that have arrived, or whose relatives were deleted."""
    rows, tables = run.db.synced_rows, run.tables
    parents: set[str] = set()
    for session_id in run.unlinked - {""}:
        parents.add(session_id)
        key, _ = tables.parent_of(session_id)
        parents.add(tables.session_of(key) or "" if key else "")
    run.unlinked.clear()
    for parent in sorted(parents - {""}):
        children: dict[str, str] = {}
        for key in tables.keys_of(parent):
            children |= tables.children_of(key)
        starts = rows.starts_of([parent, *children])
        if parent not in starts:
            continue
        present = [(starts[child], tables.keys_of(child)[:1], child) for child in children if child in starts]
        ordered = [child for _, _, child in sorted(present)]
        continuation = next((child for child in ordered if children[child] == _CONTINUES), None)
        relations = {
            child: "branch" if children[child] == _CONTINUES and child != continuation else children[child]
            for child in ordered
        }
        if relations:
            rows.link_children(parent, continuation, relations)
