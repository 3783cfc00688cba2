"""A chat model and an HTTP model server that follow a script, for tests and demonstrations without a real model."""
