"""Reads conversations of Cursor."""

from memoranda.importers.cursor.reader import Cursor

__all__ = ["Cursor"]
