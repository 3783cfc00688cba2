"""The settings of Zep."""

from memoranda.external.loading.setup import ConfigField
from memoranda.external.vendors.vendor_settings import COMMON_FIELDS

CLOUD = "https://api.getzep.com/api/v4"
FIELDS = (
    ConfigField("url", "Address of the service", default=CLOUD, env_var="ZEP_API_URL"),
    ConfigField(
        "api_key",
        "API key of a project",
        secret=True,
        required=True,
        url="https://app.getzep.com",
        env_var="ZEP_API_KEY",
    ),
    ConfigField("user_prefix", "How the ids of users begin at Zep", default="memoranda"),
    *COMMON_FIELDS,
)
