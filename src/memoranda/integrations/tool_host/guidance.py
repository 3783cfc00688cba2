"""The description of the `remember` tool, for the models that call it."""

REMEMBER = (
    "Save one fact that the user asked to be remembered, in a sentence that will still make sense in a year. It is on "
    "disk when this answers, and known to every agent of the user from their next session on. Correct or remove what "
    "is remembered with `memory`."
)
REMEMBER_TEXT = "The fact, in a short sentence of its own: 'The staging database is called heron.'"
REMEMBER_TARGET = "'memory' for notes about work and surroundings, 'user' for who the user is and what they prefer"
