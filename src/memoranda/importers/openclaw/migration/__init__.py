"""Moves an OpenClaw agent into a home: plans the steps, runs those that the caller confirmed, and reports them."""
