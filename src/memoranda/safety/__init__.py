"""Decides what may enter a prompt: a threat scan of text, in linear time and without a model call.

`scan` reads the whole text: its characters, its words after look-alike letters and simple encodings are undone, its
commands, paths and credentials, and, unless `learned=False`, the score of a small linear model. It returns findings
with id, severity, span and message; an empty tuple when the text is clean.
"""

from memoranda.safety.finding import Finding, Severity
from memoranda.safety.scanner import scan, scan_each, scan_phrases

__all__ = ["Finding", "Severity", "scan", "scan_each", "scan_phrases"]
