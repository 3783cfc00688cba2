"""The tables that the parts of a home have on a server, for work on all of them: moving, forgetting, checking."""

from memoranda.storage.schema import Schema


def component_schemas() -> list[Schema]:
    """The tables of every part of a home that keeps data on a server."""
    from memoranda.memory.checkpoints.schema import SCHEMA as CHECKPOINTS  # noqa: PLC0415
    from memoranda.memory.curated.schema import SCHEMA as CURATED  # noqa: PLC0415
    from memoranda.memory.record.schema import SCHEMA as RECORD  # noqa: PLC0415

    return [RECORD, CURATED, CHECKPOINTS, *small_component_schemas()]


def small_component_schemas() -> list[Schema]:
    """The parts beside conversations, curated memory and checkpoints: most have only ids, counts and labels."""
    from memoranda.agent.review.schema import SCHEMA as REVIEWS  # noqa: PLC0415
    from memoranda.external.holographic.schema import SERVER_SCHEMA as FACTS  # noqa: PLC0415
    from memoranda.external.outbox.schema import SERVER_SCHEMA as OUTBOX  # noqa: PLC0415
    from memoranda.external.vendors.sent_record import SERVER_SCHEMA as SENT  # noqa: PLC0415
    from memoranda.home.access.schema import SCHEMA as SERVICE  # noqa: PLC0415
    from memoranda.importers.state.schema import SERVER_SCHEMA as IMPORTS  # noqa: PLC0415
    from memoranda.models.spending.schema import SCHEMA as USAGE  # noqa: PLC0415

    return [OUTBOX, SENT, FACTS, REVIEWS, USAGE, SERVICE, IMPORTS]
