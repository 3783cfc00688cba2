"""Tests of the compatibility with plugins written for Hermes."""
