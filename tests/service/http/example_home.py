"""The home in which the examples of the API's description are true."""

from memoranda.service.http.service import Service
from memoranda.support.origin import PERSON


def fill(service: Service) -> None:
    """Fill the owner's memory."""
    memory = service.memory_of(None)
    db = memory.sessions
    db.create_session("trip-to-lisbon", "telegram", title="Trip to Lisbon", started_at=1_790_000_000)
    db.append_messages(
        "trip-to-lisbon",
        [
            {"role": "user", "content": "When does the ferry to Cacilhas leave?", "timestamp": 1_790_000_010},
            {"role": "assistant", "content": "The ferry leaves every 20 minutes.", "timestamp": 1_790_000_020},
            {"role": "user", "content": "Thanks.", "timestamp": 1_790_000_030},
        ],
    )
    db.create_session("old-notes", "cli", started_at=1_780_000_000)
    memory.items.put(("notes", "office"), "opening-hours", {"days": "closed on Fridays"})
    for text in ("Bookings go through Ana.", "The office is closed on Fridays.", "The printer is on floor 2."):
        memory.curated.add("memory", text, PERSON)
