"""Providers for the memory services of vendors: what they share, and one folder per vendor."""
