"""Keeps the homes of several machines the same through a folder that they share: files, and no server."""
