"""`memoranda hook`: answers the events of hosts, with a helper process that stays loaded between them."""
