"""OpenAI's Conversations API, so that its client and `OpenAIConversationsSession` work with a home."""
