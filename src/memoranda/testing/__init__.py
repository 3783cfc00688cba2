"""Contracts of stores and providers as test suites, which their own tests can run, and scripted models."""
