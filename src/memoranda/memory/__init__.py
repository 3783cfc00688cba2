"""What is remembered: the record of conversations, curated memory, skills and checkpoints."""
