"""One outbox of several nodes: every job is delivered by one of them at a time, in order, and none is lost."""

import json
import os
import signal
import subprocess
import sys
from collections import defaultdict
from contextlib import closing
from pathlib import Path

import pytest

import memoranda
from memoranda.external.outbox.outbox import Outbox
from tests.external.diary import diary_home, told, told_in_time
from tests.timing import GIVE_UP, wait_until

pytestmark = pytest.mark.slow

_NODE = """
import json, random, sys, time
from pathlib import Path
from memoranda.external.outbox.outbox import Outbox
from memoranda.external.settings import ProviderSettings
home, url, log, seed = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])
outbox = Outbox(home, ProviderSettings(lease_seconds=2.0), server_url=url)
chance = random.Random(seed)
print("ready", flush=True)
with log.open("a", buffering=1) as file:
    while outbox.backlog("p").waiting:
        job = outbox.claim("p")
        if job is None:
            time.sleep(0.02)
            continue
        file.write(json.dumps(["begin", job.key, job.session_id, job.attempts, job.orphan]) + "\\n")
        time.sleep(chance.uniform(0, 0.01))
        outbox.renew()
        file.write(json.dumps(["end", job.key, job.session_id]) + "\\n")
        outbox.delivered(job)
"""


def _start(tmp_path: Path, url: str, number: int) -> subprocess.Popen[str]:
    home = tmp_path / f"node{number}"
    home.mkdir(exist_ok=True)
    command = [sys.executable, "-c", _NODE, str(home), url, str(tmp_path / "log.jsonl"), str(number)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_nodes_that_are_killed_lose_nothing_and_repeat_only_what_they_were_delivering(
    tmp_path: Path, postgres_url: str
) -> None:
    """Four nodes deliver one outbox; two of them are killed in between, and their leases pass to the others."""
    sessions, jobs = 6, 12
    with closing(Outbox(tmp_path, server_url=postgres_url)) as outbox:
        for number in range(jobs):
            for session in range(sessions):
                outbox.put("p", "turn", f"s{session}", {}, {}, key=f"{session}:{number}")
        outbox.release()
    log = tmp_path / "log.jsonl"
    log.touch()
    nodes = [_start(tmp_path, postgres_url, number) for number in range(4)]
    for node in nodes:
        assert node.stdout is not None and node.stdout.readline()
    wait_until(lambda: len(log.read_text().splitlines()) >= 20)
    for node in nodes[:2]:
        os.kill(node.pid, signal.SIGKILL)
    assert [node.wait(GIVE_UP) for node in nodes] == [-9, -9, 0, 0]
    for node in nodes:
        assert node.stdout is not None
        node.stdout.close()
    began: dict[str, int] = defaultdict(int)
    ended: dict[str, list[str]] = defaultdict(list)
    running: dict[str, str] = {}
    for line in log.read_text().splitlines():
        kind, key, session, *_ = json.loads(line)
        if kind == "begin":
            # The same job again after a kill; never another one of its session.
            assert running.get(session, key) == key
            running[session] = key
            began[key] += 1
        else:
            running.pop(session, None)
            if key not in ended[session]:
                ended[session].append(key)
    assert {session: [int(key.partition(":")[2]) for key in keys] for session, keys in ended.items()} == {
        f"s{session}": list(range(jobs)) for session in range(sessions)
    }
    assert sum(count - 1 for count in began.values()) <= 2
    with closing(Outbox(tmp_path, server_url=postgres_url)) as outbox:
        assert not outbox.backlog()


def test_two_homes_deliver_each_turn_once(tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever node recorded it; a turn of a node that never delivered is delivered by the other one."""
    monkeypatch.setenv("MEMORANDA_STORE", postgres_url)
    homes = [tmp_path / name for name in "ab"]
    for home in homes:
        home.mkdir()
        diary_home(home)
    with memoranda.open(homes[0]) as here, memoranda.open(homes[1]) as there:
        with here.session(session_id="s1", source="cli") as one, there.session(session_id="s2", source="cli") as two:
            for number, session in enumerate((one, two, one, two)):
                with session.turn(f"question {number}") as turn:
                    turn.done(f"answer {number}")
            lines = [["turn", f"question {number}", f"answer {number}"] for number in range(4)]
            wait_until(lambda: len(told(homes[0]) + told(homes[1])) >= 4)
        ends = ["end"]
        received = [line for home in homes for line in told_in_time(home) if line[0] not in ends]
    assert sorted(line for line in received if line[0] == "turn") == lines
    assert not (homes[0] / "home.db").exists()


@pytest.mark.smoke
def test_what_one_node_learns_another_one_recalls(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A remembered entry reaches the facts of Holographic once, and a session on another node gets it."""
    monkeypatch.setenv("MEMORANDA_STORE", postgres_url)
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.yaml").write_text("memory:\n  provider: holographic\n")
    with memoranda.open(tmp_path / "a") as here, here.session(source="cli") as session:
        result = session.call("fact_store", {"action": "add", "content": "The depot of Leeds closes at noon."})
        assert result["success"], result
    with memoranda.open(tmp_path / "b") as there, there.session(source="cli") as session:
        assert "noon" in session.external.recall_for_person("When does the depot of Leeds close?", session.id).value
