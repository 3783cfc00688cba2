"""What Memoranda does when a host tells it of an event: it gives memory, or takes in what was said."""
