"""The name under which a store notes from which other stores of its fleet a user has moved to it."""

from hashlib import sha256


def former_stores_key(user: str | None) -> str:
    """The key in `state_meta`; it does not name the user, so nothing of a user who is forgotten stays readable."""
    digest = sha256((user or "").encode("utf-8", "surrogatepass")).hexdigest()
    return f"former_stores:{digest[:32]}"
