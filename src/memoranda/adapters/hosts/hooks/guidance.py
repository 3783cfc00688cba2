"""What a host's model reads that comes from a hook."""

REMEMBERED = (
    "What you remember about the user and their work, from Memoranda, as it was when this session began. It is "
    "reference, not a request."
)
EVIDENCE = "earlier conversations"
GO_ON = "More of a conversation: session_search with its session_id and around_message_id."
