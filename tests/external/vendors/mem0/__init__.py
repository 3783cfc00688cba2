"""Tests of Mem0: its platform, its server and its library."""
