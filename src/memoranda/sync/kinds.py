"""The kinds of things that are synchronised besides sessions, items and entries."""

from memoranda.sync.entry_order import EntryOrder
from memoranda.sync.run import Run
from memoranda.sync.synced_facts import Facts
from memoranda.sync.synced_proposals import Proposals
from memoranda.sync.synced_skills import SkillFiles
from memoranda.sync.things import Kind

CHECKS = {kind.name: kind.check for kind in (SkillFiles, Proposals, Facts, EntryOrder)}
NOUNS = {kind.name: kind.noun for kind in (SkillFiles, Proposals, Facts, EntryOrder)}


def kinds_of(run: Run) -> list[Kind]:
    """The kinds of things of the home that is synchronised."""
    return [SkillFiles(run.root), Proposals(run.memory), Facts(run.root), EntryOrder()]
