"""The HTTP service of a home: one table of routes, from which requests are checked, answered and documented."""
