"""What a model reads about skills: the descriptions of the tools and of their arguments."""

LIST = "List the skills there are, by name and what each is for, and what is wrong with any that cannot be used."
VIEW = (
    "Read a skill: its procedure, and which further files it has. Read it before you do what it is for. "
    "With `file` you read one of its further files."
)
MANAGE = """\
Keep and mend procedures. A skill is for a kind of task that comes again: when to use it, the steps, what goes wrong \
and how one sees that it worked. Make one when a procedure took effort to find out or the user corrected how you do \
something; mend one as soon as it proves wrong or incomplete. Prefer mending a skill that covers the task to making \
another. No facts about the user (that is memory), no account of what happened today, no credentials.

create: a new skill from `content` (with `description`, or with front matter of its own). patch: replace `old_text`, \
which must occur once, by `new_text`. edit: write SKILL.md anew, after reading it. write_file, remove_file: further \
files such as references/api.md. delete: take the skill away; a person can bring it back. A change is on disk at once; \
the list in the system prompt shows it from the next session on."""

NAME = "The skill's name: a-z, 0-9 and single hyphens, such as 'release-a-version'"
FILE = "A further file of the skill by its path in it, such as 'references/api.md'; left out, SKILL.md is meant"
ACTION = "What to do"
DESCRIPTION = "What the skill is for and when to use it, in one or two sentences (create)"
CONTENT = "The whole text (create, edit, write_file)"
OLD_TEXT = "The passage to replace, copied exactly; it must occur once (patch)"
NEW_TEXT = "What stands there afterwards (patch)"

VISIBLE_FROM = "now by skill_view, in the system prompt from the next session on"
EMPTY = "There are no skills yet."
"""What skills_list says of an empty home."""
