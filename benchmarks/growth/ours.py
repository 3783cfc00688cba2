"""The worker for Memoranda: the tasks of every program, and those that only Memoranda is asked to do."""

from benchmarks.growth import appends, reads
from benchmarks.growth.store import Memoranda
from benchmarks.growth.tasks import serve

if __name__ == "__main__":
    serve(Memoranda(), reads.TASKS | appends.TASKS)
