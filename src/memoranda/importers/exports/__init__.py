"""Reads the exports of chat services."""
