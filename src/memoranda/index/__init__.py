"""The search index: a cache beside the record, which it follows. It can be deleted and rebuilt at any time.

`tokenizer` cuts text into tokens, `message_text` says what of a message is text, `search_index` keeps the file and
answers for it, `postings` are the words in which one asks and gets answers.
"""
