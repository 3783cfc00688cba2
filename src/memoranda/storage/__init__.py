"""Databases without their tables: opening, locking, retries, schema upgrades, health checks and salvage."""
