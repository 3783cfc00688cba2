"""An earlier conversation that a question of a later one recalls, for the tests of all adapters."""

import memoranda

QUESTION = "How did we fix the bakery oven when it showed error E17?"
UNRELATED = "Write a haiku about submarines."
ANSWER = "part 4711"
"""What only the earlier conversation says."""


def record_earlier_conversation(memory: memoranda.Memory) -> None:
    """Record a turn about the oven in a session of its own."""
    with memory.session() as earlier, earlier.turn("The oven of the bakery shows error E17 and stays cold.") as turn:
        turn.done(f"Replace its thermostat, {ANSWER}: that fixes error E17 of this oven.")
