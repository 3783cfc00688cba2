"""What models cost: a ledger with one row per call, prices, and daily budgets for background work."""
