"""Tests of the readers of exports."""
