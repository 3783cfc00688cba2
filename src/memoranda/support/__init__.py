"""Code that knows nothing of memory: paths of a home, durable files, locks, journals, texts and projects."""
