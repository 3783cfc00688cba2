"""The settings of ByteRover."""

from dataclasses import replace

from memoranda.external.loading.setup import ConfigField
from memoranda.external.vendors.vendor_settings import MODE, RECALL_LIMIT, TIMEOUT

FIELDS = (
    ConfigField("program", "Path of brv; empty to look in PATH and where its installers put it", default=""),
    ConfigField("project", "Directory of the brv project; empty for byterover in the home", default=""),
    ConfigField("auto_extract", "Have the model of brv extract knowledge from a session that has ended", default=True),
    MODE,
    RECALL_LIMIT,
    replace(TIMEOUT, description="Seconds that recall or a tool waits for brv", default=50.0),
)
