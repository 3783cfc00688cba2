"""Tests of the import from a Hermes home."""
