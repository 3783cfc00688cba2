"""Finds credentials in clear text: by the formats of their issuers, by their names, and by the texts they stand in."""

from memoranda.safety.secrets.finder import BETWEEN_TEXTS, find_secrets
from memoranda.safety.secrets.found_secret import FoundSecret

__all__ = ["BETWEEN_TEXTS", "FoundSecret", "find_secrets"]
