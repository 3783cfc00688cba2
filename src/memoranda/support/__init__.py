"""Code that does not depend on memory: paths of a home, durable files, locks, journals, texts and projects."""
