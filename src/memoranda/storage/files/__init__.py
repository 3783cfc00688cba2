"""Files that survive a crash: journals, markers and locks."""
