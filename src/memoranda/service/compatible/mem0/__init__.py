"""mem0's platform API, so that its official client works with a home: memories are items in the namespace `mem0`."""
