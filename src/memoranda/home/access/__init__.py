"""Who may use the HTTP service of a home: API keys, what they were used for, and answers to repeated requests."""
