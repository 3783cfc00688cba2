"""The APIs that the service offers beside its own; outside `http/`, which knows none of them."""

from collections.abc import Collection

from memoranda.service.compatible import mem0
from memoranda.service.http.mount import Mount
from memoranda.service.remote_mcp.mount import remote_mcp_mount
from memoranda.service.viewer.mount import viewer_mount

COMPATIBLE = {mount.name: mount for mount in (mem0.MOUNT,)}
"""The APIs that are compatible with clients of other products; each must be asked for."""


def load_mounts(compatible: Collection[str] = ()) -> tuple[Mount, ...]:
    """All mounts, in the order in which their paths are tried; `compatible` are names in COMPATIBLE."""
    return (remote_mcp_mount(), viewer_mount(), *(mount for name, mount in COMPATIBLE.items() if name in compatible))
