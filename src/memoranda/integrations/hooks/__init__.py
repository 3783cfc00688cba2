"""What a host calls at its events: the memory and the evidence for its model, and the record of its sessions."""
