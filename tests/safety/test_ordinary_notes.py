"""Notes that people really keep, which must never be refused."""

from memoranda.safety import scan

NOTES = [
    "The agent sends a heartbeat to the control plane every minute.",
    "Workers pull tasks from the Redis queue.",
    "There is a daily check-in with the team at nine.",
    "The beacon to the lighthouse museum is a nice walk.",
    "She plays Mythic+ dungeons on Fridays.",
    "Their parrot is named Havoc.",
    "The sliver component renders lazily.",
    "Register Node.js services in the gateway.",
    "Connect to the network via the VPN first.",
    "You must report bugs in the tracker.",
    "The user's cat walked over the credentials binder.",
    "Host aliases are kept in ~/.ssh/config.",
    "Update CLAUDE.md after each release.",
    "Edit AGENTS.md when the layout changes.",
    "Upload builds to https://builds.corp.test/nightly.",
    "Share the conversation summary with Dana.",
    "unset OPENAI_API_KEY before running the tests",
    "Prefer one-liners in shell examples.",
    "The command and control room is on the second floor.",
    "The api token is in the vault; ask Kim for access.",
    "password: see 1Password",
    "Credentials rotate on the first of the month.",
    "User prefers answers in German, always with sources.",
    "From now on use pnpm instead of npm.",
    "Remember to always run the formatter before committing.",
    "The system prompt is cached, so keep it stable.",
    "Never print secrets to the log.",
    "Set LOG_LEVEL=debug to see every request.",
    "Post the results to the channel when the job is done.",
    "The staging box runs Debian; ssh in with your own key.",
    "Reset forgotten passwords through the admin page.",
    "Use `git rebase --onto main` to move the branch.",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b fixed it",
    "Session id 123e4567-e89b-12d3-a456-426614174000 is the broken one.",
    "Ihr Name ist Jürgen, sie wohnt in Köln und mag Käse.",
    "Il préfère le café sans sucre et les réunions courtes.",
    "彼女は毎朝六時に起きて、公園を走ります。",
    "사용자는 매운 음식을 좋아하고 고양이를 두 마리 키웁니다.",
    "المستخدم يفضل الاجتماعات القصيرة في الصباح.",
    "उपयोगकर्ता को चाय पसंद है और वह दिल्ली में रहता है।",
    "Пользователь предпочитает тёмную тему и короткие ответы.",
    "用户喜欢简短的回答，并且住在上海。",
]


def test_an_ordinary_note_is_clean() -> None:
    """Engineering notes, preferences and small talk give no finding."""
    for note in NOTES:
        assert scan(note) == ()


def test_many_ordinary_notes_do_not_add_up() -> None:
    """A long text made of harmless notes is as clean as each of them."""
    assert scan("\n".join(NOTES * 20)) == ()
