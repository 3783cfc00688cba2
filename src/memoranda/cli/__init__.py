"""The terminal: one module per noun, each loaded only when its command runs."""
