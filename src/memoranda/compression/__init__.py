"""Making a context shorter without losing anything: trigger, plan, pruning, running summary."""
