"""The texts about curated memory that a model reads: the descriptions of the tool and of its arguments."""

TOOL_DESCRIPTION = """\
Keep durable facts across sessions. Two targets: 'memory' for your own notes (environment, project conventions, \
tool quirks, lessons that stay true) and 'user' for who the user is (preferences, style, role, habits).

Save without being asked when the user corrects you, states a preference, or you learn something that will still be \
true next month. What the user prefers comes first, then the environment, then how things are done. \
Write facts, not orders: "User prefers concise answers", not "Always answer concisely".
Leave out task progress, results, logs, to-do lists, numbers of issues or commits, and whatever is stale within a week.

Both files are shown in your system prompt as they were when the session began. A write is on disk at once; the \
prompt shows it from the next session on, so do not repeat it. Space is limited: when it is full, consolidate with \
one call that carries several operations. A new value of the same thing replaces the old entry instead of standing \
beside it: look before you add, and if "similar" in the answer has the older value of what you just saved, replace it \
with your text in a second call. replace and remove find their entry by old_text, a short part of it that \
occurs in no other entry (a handle such as "entry:1a2b3c4d" works too)."""

PROJECT_DESCRIPTION = """

A third target, 'project', is for what holds only in the project you work in: its conventions, commands, decisions and \
pitfalls. Other projects never see it."""

MEMORY = "'memory' for your notes"
USER = "'user' for the user's profile"
PROJECT = "'project' for this project only"
NOTES = "'notes' for what is worth keeping but not worth a place in every prompt: session_search finds it, no limit"
TO = "With the action move: the target that the entry with old_text goes to"
ACTION = "What to do; leave it out when operations is given"
CONTENT = "The new entry (add, replace)"
OLD_TEXT = "A unique part of the entry to replace or remove, or its handle"
KEY = (
    "For a value that may change, such as 'time zone': content becomes 'time zone: …' and replaces the earlier value "
    "of that key, without old_text"
)
UNTIL = "The last day on which it is true (2027-01-31, or 2w); later prompts leave it out, the file keeps it"
OPERATIONS = "Several changes to one target, applied together or not at all; later ones see earlier ones"

VISIBLE_FROM = "next session"
NOTE = "On disk now. The system prompt shows it from the next session on; do not send it again."
EXPIRED = "Its last day is over, so no session shows it."
STOP = (
    "Several memory calls in this turn have failed. Stop trying to save and continue with what the user asked; "
    "nothing was lost, and it can be saved another time."
)
