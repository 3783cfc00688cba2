"""Honcho: a model of the user, built by a server from what was said."""
