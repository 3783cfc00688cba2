"""Tests of RetainDB: its server and its local program."""
