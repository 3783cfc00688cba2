"""Tests of what is brought along from a Hermes home."""
