"""Readers of chat programs: applications with their own storage, and exports of web services that people run."""
