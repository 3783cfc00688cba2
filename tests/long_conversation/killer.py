"""The long conversation, killed: `python -m tests.long_conversation.killer HOME ADDRESS TURNS KILLS SEED`.

The program imports everything once and forks a process for each round, before anything is opened. Round by round it
waits until the conversation has reached a turn, lets a random number of steps and a random time pass, and
kills. Some rounds kill while a process opens the home, and some in the middle of a compression.
"""

import gc
import importlib
import json
import os
import random
import select
import signal
import sys
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

import anthropic

from memoranda.safety import scan
from tests.long_conversation import conversation_process, provider, story
from tests.long_conversation.acknowledgements import Acknowledged, announce, announce_to

_OPENING_SECONDS = 0.12
_STEP_SECONDS = 0.012
_COMPRESSING_SECONDS = 0.08
_MAX_STEPS = 8
# By number and not by chance, so that a run with few kills has some there, too.
_ROUNDS_PER_OPENING = 8
_SHARE_COMPRESSING = 0.8
_LONGEST_ROUND = 60.0
# What a process of the conversation would import by itself.
_USED = (
    "memoranda.api.agents",
    "memoranda.api.session_parts.compressor",
    "memoranda.external.attach",
    "memoranda.search.answers",
    "memoranda.agent.review.background",
    "memoranda.search.index.follower",
)


@dataclass(slots=True)
class Child:
    """A process of the conversation, and what it has announced."""

    process: int
    pipe: int
    unread: str = ""

    def next(self) -> str:
        """What it announces next; empty when it has ended."""
        while "\n" not in self.unread:
            ready, _, _ = select.select([self.pipe], [], [], _LONGEST_ROUND)
            if not ready:
                raise TimeoutError("The conversation does not continue.")
            more = os.read(self.pipe, 65_536).decode()
            if not more:
                return ""
            self.unread += more
        line, _, self.unread = self.unread.partition("\n")
        return line

    def kill(self) -> bool:
        """Kill it with -9; False when it had ended already."""
        os.kill(self.process, signal.SIGKILL)
        return self.wait() == -signal.SIGKILL

    def wait(self) -> int:
        _, status = os.waitpid(self.process, 0)
        os.close(self.pipe)
        return os.waitstatus_to_exitcode(status)


def warm_up() -> None:
    """Do here what every process would do again for itself; nothing is opened, and no thread is begun."""
    for name in _USED:
        importlib.import_module(name)
    scan(f"{story.ENTRIES} {provider.NAME}")
    anthropic.Anthropic(api_key="none").close()
    # Looking for garbage in all of this would make each process copy it.
    gc.collect()
    gc.freeze()


def fork(home: Path, address: str, turns: int) -> Child:
    """A new process that resumes the conversation."""
    reader, writer = os.pipe()
    process = os.fork()
    if process:
        os.close(writer)
        return Child(process, reader)
    code = 1
    try:
        os.close(reader)
        announce_to(writer)
        announce("begun")
        acknowledged = Acknowledged(home / "acknowledged.jsonl")
        conversation_process.resume_conversation(home, address, acknowledged, to=turns)
        code = 0
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        sys.stderr.flush()
        os._exit(code)


def wait_in_round(child: Child, turn: int, chance: random.Random, *, opening: bool) -> str:
    """Wait until it is time to kill it, while it opens the home or somewhere in a turn; where that is."""
    if opening:
        child.next()
        time.sleep(chance.uniform(0, _OPENING_SECONDS))
        return "opening"
    waiting, steps = True, chance.randrange(_MAX_STEPS)
    while line := child.next():
        if line == "compressing" and chance.random() < _SHARE_COMPRESSING:
            time.sleep(chance.uniform(0, _COMPRESSING_SECONDS))
            return "compressing"
        if waiting and line.startswith("turn ") and int(line.split()[1]) >= turn:
            waiting = False
        elif not waiting:
            steps -= 1
        if not waiting and steps <= 0:
            break
    time.sleep(chance.uniform(0, _STEP_SECONDS))
    return line or "the end"


def main(home: Path, address: str, turns: int, kills: int, seed: int) -> dict[str, int]:
    """Kill so many processes, let the last one come to the end, and count where they were killed."""
    chance = random.Random(seed)
    warm_up()
    counted: dict[str, int] = {}
    done, turn = 0, 0.0
    while done < kills:
        child = fork(home, address, turns)
        where = wait_in_round(child, int(turn), chance, opening=done % _ROUNDS_PER_OPENING == 0)
        if not child.kill():
            raise RuntimeError(f"A process ended by itself at turn {turn}.")
        done += 1
        turn += turns / kills if where != "opening" else 0
        counted[where.split()[0]] = counted.get(where.split()[0], 0) + 1
    last = fork(home, address, turns)
    while last.next():
        pass
    if last.wait() != 0:
        raise RuntimeError("The last process failed.")
    return counted


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3:6]))))
