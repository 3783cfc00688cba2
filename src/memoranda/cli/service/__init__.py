"""Commands that offer a home to other programs: `serve`, `view`, `mcp` and `key`."""
