"""What may enter a prompt: a threat scan of text, in linear time and without a model call.

    >>> from memoranda.safety import scan
    >>> scan("The deploy key is rotated every Monday.")
    ()

`scan` reads the whole text: its characters, its words after look-alike letters and simple encodings are undone, its
commands, paths and credentials, and, unless `learned=False`, the score of a small linear model.
"""

from memoranda.safety.finding import Finding, Severity
from memoranda.safety.scanner import scan

__all__ = ["Finding", "Severity", "scan"]
