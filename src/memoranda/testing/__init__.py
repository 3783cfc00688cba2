"""Contracts as test suites: what any engine behind Memoranda must do, in a form that its own tests can run."""
