"""The kinds of things that are synchronised besides sessions, items and entries."""

from memoranda.upkeep.sync.entry_order import EntryOrder
from memoranda.upkeep.sync.run import Run
from memoranda.upkeep.sync.synced_facts import Facts
from memoranda.upkeep.sync.synced_proposals import Proposals
from memoranda.upkeep.sync.synced_skills import SkillFiles
from memoranda.upkeep.sync.things import Kind

CHECKS = {kind.name: kind.check for kind in (SkillFiles, Proposals, Facts, EntryOrder)}
NOUNS = {kind.name: kind.noun for kind in (SkillFiles, Proposals, Facts, EntryOrder)}


def kinds_of(run: Run) -> list[Kind]:
    """The kinds of things of the home that is synchronised."""
    return [SkillFiles(run.root), Proposals(run.memory), Facts(run.root), EntryOrder()]
