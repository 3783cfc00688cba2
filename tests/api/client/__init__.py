"""Tests of the client of a service."""
