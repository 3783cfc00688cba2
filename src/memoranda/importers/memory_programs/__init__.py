"""One module per program that keeps memories, or the state of agents that others build."""
