"""The parts of an open session: its options, its prompt, its tools, its record, and how it is compressed."""
