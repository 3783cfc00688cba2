"""The search index: a cache beside the record, which it follows. It can be deleted and rebuilt at any time.

`tokenizer` splits text into tokens, `message_text` extracts the searchable text of a message, `search_index` owns the
file, and `postings` defines the types of queries and answers.
"""
