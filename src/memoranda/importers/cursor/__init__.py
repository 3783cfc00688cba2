"""Cursor: conversations of the editor and of its command line."""

from memoranda.importers.cursor.reader import Cursor

__all__ = ["Cursor"]
