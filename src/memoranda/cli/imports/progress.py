"""Shows the progress of an import on one line of the terminal."""

from memoranda.cli.imports.summary_text import format_size
from memoranda.cli.progress_line import ProgressLine
from memoranda.importers.importer import ImportProgress

_WIDTH = 30


class ProgressBar(ProgressLine):
    """A progress bar on stderr; invisible when stderr is not a terminal."""

    def __init__(self, verb: str, *, visible: bool) -> None:
        super().__init__(visible=visible)
        self._verb = verb

    def __call__(self, progress: ImportProgress) -> None:
        if not self.is_due():
            return
        part = progress.bytes / progress.all_bytes if progress.all_bytes else 1.0
        filled = round(part * _WIDTH)
        self.show(
            f"{self._verb} {progress.source} [{'#' * filled}{'-' * (_WIDTH - filled)}] {part:4.0%}  "
            f"{format_size(progress.bytes)} of {format_size(progress.all_bytes)}, {progress.messages:,} messages"
        )

    def indexing(self, done: int, total: int) -> None:
        """Show how many of the imported messages are in the index."""
        if self.is_due():
            self.show(f"Indexing {done:,} of {total:,} messages")
