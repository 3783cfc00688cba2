"""`make torture`: strikes in numbers, prints the counts, and fails if anything was lost or too little was tried."""

import argparse
import sys
import tempfile
import time
import warnings
from pathlib import Path

from tests.torture import curator_kills, damaged_copies, home_kills, io_errors, kills, power_cuts, server_strikes

_KINDS = {
    "kills": (kills.run, 1000),
    "home-kills": (home_kills.run, 1000),
    "power-cuts": (power_cuts.run, 200),
    "io-errors": (io_errors.run, 400),
    "damaged-copies": (damaged_copies.run, 500),
    "killed-clients": (server_strikes.kill_clients, 1000),
    "server-crashes": (server_strikes.restart_server, 50),
    "ended-connections": (server_strikes.end_backends, 200),
    "lost-answers": (server_strikes.lose_packets, 200),
    "killed-editors": (curator_kills.kill_editors, 200),
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="torture", description=__doc__)
    parser.add_argument("kinds", nargs="*", choices=[*_KINDS, []], help="what to run; everything if none is named")
    parser.add_argument("--share", type=float, default=1.0, help="the share of the usual numbers, such as 0.1")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="for a run that can be repeated")
    options = parser.parse_args()
    warnings.simplefilter("ignore", DeprecationWarning)
    print(f"seed {options.seed}", flush=True)
    failed = False
    for name in options.kinds or _KINDS:
        run, usual = _KINDS[name]
        wanted = max(1, round(usual * options.share))
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as directory:
            counts = run(Path(directory), wanted, options.seed, _show)
        print(f"\r{counts.line()} ({time.monotonic() - began:.0f} s)", flush=True)
        if counts.table:
            print(counts.table, flush=True)
        for failure in counts.failures(wanted):
            failed = True
            print(failure, flush=True)
    if not failed:
        print("No acknowledged write was lost or altered unnoticed.")
    return int(failed)


def _show(done: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{done}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
