"""Commands that use a service on another machine instead of a home."""
