"""Code that does not depend on memory: paths of a home, durable files, tools, texts and projects."""
