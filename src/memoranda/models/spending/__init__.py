"""The cost of model calls: a ledger with one row per call, prices, and a daily budget for background work."""
