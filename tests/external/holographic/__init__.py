"""Tests of the holographic memory."""
