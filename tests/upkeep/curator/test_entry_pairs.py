"""What one entry is to another, and that entries which are merely alike are left alone."""

import pytest

from benchmarks.curator.evaluate import PAIRS, judge_pairs
from memoranda.upkeep.curator.entry_pairs import find_pairs, relation_of


@pytest.mark.slow
def test_entries_that_are_merely_alike_are_left_alone() -> None:
    """Not one of the alike pairs of any set is touched, also of those from which nothing was learned."""
    folders = (PAIRS.parent / "unseen", PAIRS.parent / "held_out")
    for path in (PAIRS, *(path for folder in folders for path in folder.glob("*pairs.txt"))):
        assert [each.case for each in judge_pairs(path) if each.mark == "alike" and not each.right] == []


@pytest.mark.slow
def test_most_related_pairs_are_found() -> None:
    """At least 7 of 10 of each kind."""
    found = list(judge_pairs())
    for kind in ("same", "contained", "superseded"):
        some = [each for each in found if each.mark == kind]
        assert sum(each.right for each in some) >= 0.7 * len(some), kind


@pytest.mark.slow
def test_most_related_pairs_are_found_of_which_nothing_was_learned() -> None:
    """At least 7 of 10."""
    unseen = [each for each in judge_pairs(PAIRS.parent / "held_out/seventeenth_pairs.txt") if each.mark != "alike"]
    assert sum(each.right for each in unseen) >= 0.7 * len(unseen)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("User prefers short answers.", "User prefers brief answers."),
        ("Never deploy on Fridays.", "No Friday deployments."),
        ("User's boss is Dana.", "Dana is the user's manager."),
        ("The tests run with pytest.", "Tests: run with pytest"),
    ],
)
def test_the_same_in_other_words_is_found(older: str, newer: str) -> None:
    """What an agent saves twice in two sessions, in its own words."""
    assert relation_of(older, newer) == "same"


@pytest.mark.slow
def test_what_is_touched_is_what_it_is_said_to_be() -> None:
    """At least 98 of 100 pairs that the rules touch; a part that adds nothing may be called the same or contained."""
    touched = [each for each in judge_pairs() if each.answer != "alike"]
    wrong = [each for each in touched if not each.right and {each.mark, each.answer} != {"same", "contains"}]
    assert len(wrong) <= 0.02 * len(touched)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The server is in Frankfurt.", "The server is in Frankfurt and has 64 GB."),
        ("Releases are cut from the branch stable.", "Releases are cut from the branch stable, on Mondays."),
        ("The user has a cat.", "The user has a cat named Luna and a dog named Rex."),
    ],
    ids=["server", "releases", "cat"],
)
def test_a_part_is_contained_whichever_was_written_first(older: str, newer: str) -> None:
    """The longer one says all of the shorter one."""
    assert relation_of(older, newer) == "contains"
    assert relation_of(newer, older) == "contained"


def test_a_value_is_superseded_only_by_a_newer_one() -> None:
    """The order of writing decides: the value that was written last holds."""
    assert relation_of("The API listens on port 8080.", "The API listens on port 9090.") == "superseded"
    assert relation_of("The project no longer uses Redis.", "The project uses Redis.") is None


def test_pairs_among_several_entries_are_found_by_their_places() -> None:
    """Places count in the order of writing."""
    entries = ["The port is 1.", "Anna owns billing.", "The port is 2."]
    assert find_pairs(entries) == [(0, 2, "superseded")]


def test_texts_without_words_are_related_to_nothing() -> None:
    """Also to each other."""
    assert relation_of("", "...") is None
    assert relation_of("!", "!") is None


def test_a_value_for_one_place_leaves_that_of_another() -> None:
    """Both hold: what differs is the value and where it holds."""
    assert relation_of("Line length is 100 in Python.", "Line length is 80 in Markdown.") is None


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Anna lives in Hamburg", "Bob moved to Berlin"),
        ("My sister lives in Hamburg", "I moved to Berlin"),
        ("The office is in Hamburg", "The warehouse moved to Berlin"),
        ("Lives in Hamburg with Anna", "Anna moved to Berlin"),
        ("Tom lives in Paris", "Tom moved the tests to Berlin"),
        ("We use Redis for the queue", "Team heron no longer uses Redis"),
        ("We use Redis", "We no longer use Redis for sessions"),
        ("My email is a@x.org", "My email is also b@y.org"),
        ("Anna lives in Hamburg and works at Siemens", "Anna moved to Berlin"),
    ],
)
def test_what_is_about_another_or_a_part_replaces_nothing(older: str, newer: str) -> None:
    """Someone else, another thing that moved, a part of the use, one more value, or one of two facts in an entry."""
    assert relation_of(older, newer) is None


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Lives in Hamburg", "Moved to Berlin"),
        ("The user is vegetarian.", "User eats meat again and is no longer vegetarian."),
        ("Anna lives in Hamburg", "Anna moved to Berlin"),
        ("The office is in Hamburg", "The office moved to Berlin"),
        ("Tickets are in Jira", "We moved tickets to Linear"),
        ("The shop runs on Node 18", "The shop moved from Node 18 to Node 22"),
        ("We use Redis", "We no longer use Redis"),
        ("The API runs on Python 3.9.", "The API moved to Python 3.12."),
        ("The shop runs on Node 18.", "The shop switched from Node 18 to Node 22."),
    ],
)
def test_what_is_said_to_have_changed_is_superseded(older: str, newer: str) -> None:
    """Also where the trees find it rather likely that both hold."""
    assert relation_of(older, newer) == "superseded"


def test_a_new_value_is_recognised_in_another_wording() -> None:
    """What has an attribute, as "the host of heron is …"; another attribute or owner is another fact."""
    older = "heron uses badola as its release host."
    for newer in (
        "The release host of heron is zomuka.",
        "For heron, the release host is zomuka.",
        "heron's release host is zomuka.",
        "We agreed on zomuka as the release host of heron.",
        "fyi the release host on heron is zomuka",
        "If anyone asks about the release host in heron, it's zomuka.",
        "heron's release host got swapped out, it is zomuka now.",
        "As of the week of 2026-11-16 heron has a new release host: zomuka.",
        "Heads up, the release host for heron is no longer badola but zomuka.",
    ):
        assert relation_of(older, newer) == "superseded", newer
    for other in (
        "Please remember: heron has zomuka as its search host.",
        "heron has zomuka as its search host.",
        "In crane the release host is called zomuka.",
    ):
        assert relation_of(older, other) is None


@pytest.mark.parametrize(
    ("older", "newer", "relation"),
    [
        ("Feature flags are stored in LaunchDarkly.", "LaunchDarkly holds the feature flags.", "same"),
        ("Use ruff for linting.", "Lint with ruff.", "same"),
        ("Ask before deleting any files.", "Do not delete files without asking first.", "same"),
        ("Run npm test before pushing.", "Run npm test and npm run lint before pushing.", "contains"),
        ("Redis runs on port 6380.", "Redis 7.2 runs on port 6380 with AOF persistence enabled.", "contains"),
        ("User's manager is Hugh.", "User's manager is Hugh Patterson, based in the Dublin office.", "contains"),
        ("Node 18 is required for the portal build.", "Portal build now requires Node 22.", "superseded"),
        ("Secrets are loaded from `.env`.", "Secrets are loaded from 1Password instead of `.env`.", "superseded"),
        ("Deploy via `./deploy.sh`.", "`./deploy.sh` is deprecated; deploy with `just ship` now.", "superseded"),
    ],
)
def test_another_wording_is_recognised(older: str, newer: str, relation: str) -> None:
    """Other verbs, another order, a longer list, a version, a full name, and what replaced a value."""
    assert relation_of(older, newer) == relation


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The user lives in Leeds.", "The user lives in York."),
        ("User works at Acme.", "User works at Globex."),
        ("The database is MySQL.", "The database is Postgres."),
        ("Rent is 800 euros a month.", "Rent is 900 euros a month."),
        ("Boss is Ann.", "Boss is Tom."),
        ("Our CI is Jenkins.", "Our CI is Buildkite."),
    ],
)
def test_the_same_sentence_with_a_new_value_replaces_the_old_one(older: str, newer: str) -> None:
    """What a user changes on the first day: a home, an employer, a tool, a price, a person."""
    assert relation_of(older, newer) == "superseded"


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Likes jazz.", "Likes rock."),
        ("User speaks Dutch.", "User speaks Polish."),
        ("Ticket 12 is Ada's.", "Ticket 13 is Ada's."),
        ("Room 12 has a projector.", "Room 13 has a projector."),
        ("Allergy: peanuts.", "Allergy: latex."),
    ],
)
def test_what_one_has_several_of_stays(older: str, newer: str) -> None:
    """Tastes, languages, numbered things and allergies."""
    assert relation_of(older, newer) is None


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Staging deploys before production.", "Production deploys before staging."),
        ("The laptop backs up the server.", "The server backs up the laptop."),
        ("Push to origin from fork.", "Push to fork from origin."),
        ("张伟的经理是王芳", "王芳的经理是张伟"),
        ("ユーザーは寿司が好き。", "ユーザーは寿司が好きではない。"),
        ("Has a meeting with Ravi on 3 June.", "Has a meeting with Ravi on 17 June."),
        ("The user's sister lives in Perth.", "The user's brother lives in Perth."),
        ("Camille approves travel expenses.", "Camille's travel expenses are approved by Henrik."),
        ("User is allergic to peanuts.", "User's son is allergic to peanuts."),
        ("The user is 34 years old.", "The user's son is 4 years old."),
        ("The production server runs on port 9090.", "Production server is reachable at 10.4.0.12"),
        ("User lives in Leeds.", "The user is a teacher at a primary school in Leeds."),
        ("Felix works from Vienna.", "Marek moved to Vienna."),
        ("El usuario usa Windows.", "The `export-csv` command was fixed on Windows."),
        ("Use pull requests for all changes.", "Pull requests now need two approvals, one used to be enough."),
        ("User's work laptop is a MacBook Pro.", "User's laptop: MacBook Pro."),
    ],
)
def test_the_same_words_may_say_another_thing(older: str, newer: str) -> None:
    """Who does what to whom, what comes first, one of several appointments, a relative, and a denial."""
    assert relation_of(older, newer) is None


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Only Ana may deploy.", "Ana may deploy."),
        ("Releases are cut only from main.", "Releases are cut from main."),
        ("Nur Ana darf deployen.", "Ana darf deployen."),
        ("The pool has at least 20 connections.", "The pool has at most 20 connections."),
        ("The pool has at most 20 connections.", "The pool has 20 connections."),
        ("Retry at most three times.", "Retry at least three times."),
        ("Never use tabs.", "Use tabs."),
        ("The cache must not be warm.", "The cache must be warm."),
        ("Nutze niemals Tabs.", "Nutze Tabs."),
        ("不要使用制表符。", "使用制表符。"),
        ("Tests run before the merge.", "Tests run after the merge."),
        ("Tests laufen vor dem Merge.", "Tests laufen nach dem Merge."),
        ("The tests must pass before a release.", "The tests should pass before a release."),
        ("All services log to Loki.", "Some services log to Loki."),
        ("Invoices are sent to Lena.", "Invoices are sent by Lena."),
        ("Messages go from Kafka to Postgres.", "Messages go from Postgres to Kafka."),
        ("Anna likes tea.", "Anna likes coffee."),
        ("Call mom on Sundays.", "Call dad on Sundays."),
        ("The kitchen has a leak.", "The bathroom has a leak."),
        ("Lin reviews backend changes.", "Lin reviews frontend changes."),
    ],
)
def test_one_word_turns_what_the_same_words_say(older: str, newer: str) -> None:
    """A restriction, a bound, a duty, an amount, a direction or another thing of the same kind, in any order."""
    assert relation_of(older, newer) is None
    assert relation_of(newer, older) is None


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("I live in Berlin.", "I now live in Hamburg."),
        ("Ich wohne in Berlin.", "Ich wohne jetzt in Hamburg."),
        ("The user works at Siemens.", "The user now works at Bosch."),
    ],
)
def test_what_is_true_now_replaces_what_was_true(older: str, newer: str) -> None:
    """Without "now" both may hold, and with "too"."""
    assert relation_of(older, newer) == "superseded"
    assert relation_of(newer, older) is None
    assert relation_of(older, newer.replace(".", ", too.").replace("jetzt", "jetzt auch")) is None


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Bea maintains the invoices repository.", "Bea is the maintainer of the invoices repository."),
        ("The supplier sends a bill every month.", "The supplier sends an invoice monthly."),
        ("Chapter 3 is read by the third graders.", "The 3rd graders read chapter 3."),
        ("User prefers tea to coffee.", "User likes tea better than coffee."),
        ("The API allows 30 requests/minute.", "The API allows 30 requests per minute."),
        ("Deploy from the `stable` branch.", "Deploy from `stable`."),
    ],
    ids=["derivation", "synonym", "ordinal", "preference", "rate", "kind"],
)
def test_words_are_compared_by_what_they_say(older: str, newer: str) -> None:
    """A derivation, a synonym, an ordinal and a kind of thing change nothing, whatever the order of the words."""
    assert relation_of(older, newer) == "same"


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Leo's manager is Maja.", "Maja's manager is Leo."),
        ("Ben pays Ana 40 euros a month.", "Ana pays Ben 40 euros a month."),
        ("Backups of alpha are kept on beta.", "Backups of beta are kept on alpha."),
        ("Ask before deleting branches.", "Ask before deleting folders."),
        ("Minimum password length is 12.", "Maximum password length is 64."),
        ("The main database is db_main.", "The primary database is in eu-central-1."),
    ],
    ids=["owner", "payer", "place", "object", "bounds", "name and place"],
)
def test_another_role_is_another_fact(older: str, newer: str) -> None:
    """Whose it is, who does it, what it is done to, and from which side a number bounds it."""
    assert relation_of(older, newer) is None


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Ivo takes 5 mg of zinc.", "Ivo's zinc was lowered to 2 mg."),
        ("The vet's consultation costs 60 a visit.", "The vet's consultation costs 75 a visit."),
    ],
    ids=["change", "measure"],
)
def test_a_value_is_found_in_any_order(older: str, newer: str) -> None:
    """Behind a change, and as a measure."""
    assert relation_of(older, newer) == "superseded"


def test_a_name_and_an_adjective_add_to_an_entry() -> None:
    """The person's name behind what a person is, and what a thing is like."""
    assert relation_of("User's brother is a cook.", "User's brother Emil is a cook at a hotel.") == "contains"
    assert relation_of("The stall sells honey.", "The stall sells organic honey, in jars of 500 g.") == "contains"


@pytest.mark.parametrize(
    ("older", "newer", "relation"),
    [
        ("Marta handles the payroll", "Payroll is handled by Marta, and Olu has the keys of her office", "contains"),
        ("Marta handles the payroll", "Payroll is handled by Olu, and Marta has the keys of his office", None),
        ("Reply in English.", "Reply in English only when asked in English.", None),
        ("The phone number is 0171 555 0134", "The phone number is 0171 555 0178", "superseded"),
        ("The key for Ms. Okafor is number 17", "The key for Mr. Okafor is number 71", None),
    ],
    ids=["passive", "another person", "limited", "telephone", "title"],
)
def test_an_entry_may_begin_with_another_one_in_other_words(older: str, newer: str, relation: str | None) -> None:
    """Not where what follows limits it; a telephone number is one value, and a title belongs to a name."""
    assert relation_of(older, newer) == relation
