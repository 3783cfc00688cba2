"""The texts about skills that a model reads: the descriptions of the tools and of their arguments."""

LIST = "List the skills by name and purpose, and what is wrong with those that cannot be used."
VIEW = (
    "Read a skill: its procedure, and which further files it has. Read it before you do what it is for. "
    "With `file` you read one of its further files."
)
MANAGE = """\
Save and improve procedures. A skill is for a recurring kind of task: when to use it, the steps, what goes wrong \
and how to verify that it worked. Create one when a procedure took effort to find or the user corrected how you do \
something; fix one as soon as it proves wrong or incomplete. Prefer fixing a skill that covers the task to creating \
another. No facts about the user (that is memory), no report of what happened today, no credentials.

create: a new skill from `content` (with `description`, or with front matter of its own). patch: replace `old_text`, \
which must occur once, by `new_text`. edit: rewrite SKILL.md, after reading it. write_file, remove_file: further \
files such as references/api.md. delete: remove the skill; a person can restore it. A change is on disk at once; \
the list in the system prompt shows it from the next session on."""

NAME = "The skill's name: a-z, 0-9 and single hyphens, such as 'release-a-version'"
FILE = "A further file of the skill by its path in it, such as 'references/api.md'; if omitted, SKILL.md"
ACTION = "What to do"
DESCRIPTION = "What the skill is for and when to use it, in one or two sentences (create)"
CONTENT = "The whole text (create, edit, write_file)"
OLD_TEXT = "The passage to replace, copied exactly; it must occur once (patch)"
NEW_TEXT = "The text that replaces it (patch)"

VISIBLE_FROM = "now by skill_view, in the system prompt from the next session on"
EMPTY = "There are no skills yet."
"""The message of skills_list in a home without skills."""
