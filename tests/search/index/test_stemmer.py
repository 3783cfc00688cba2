"""How English words are stemmed."""

from hypothesis import given
from hypothesis import strategies as st

from memoranda.search.index.stemmer import roots, stem

FAMILIES = """
migrate migrated migrates migration migrating migrations
deploy deployed deployment deployments deploying deploys
city cities
run running runs ran
plan planned planning plans
decide decided decision decides deciding decisions
use used using uses
note notes noted noting
not
make makes making made
cache caches cached caching
box boxes boxed
try tries tried trying
policy policies
police policing
university universities
universe universes
news
new
being
bee bees
process processes processed processing
database databases
control controlled controlling controls
install installed installing installs installation
cancel cancelled canceled cancels
document documents documentation documented
implement implementation implemented implementing implements
configure configuration configured configuring
create created creation creates creating
apply applied applies applying application
specify specification specified
manage management managed managing
agree agreed agreement agreeing
add added adding adds
log logs logged logging
commit commits committed committing
change changed changing changes
queue queues queued queuing
tree trees
need needs needed
state states stated
stat stats
station stations
format formats formatted formatting
hope hoping hoped
hop hopping hopped
reply replies replied
supply supplies supplied
even
evening evenings
thing things
string strings
index indexes indexing indexed indices
query queries queried querying
write writes writing wrote written
choose chose chosen choosing
family families
quick quickly
happy happiness happily
""".strip().splitlines()


def test_forms_of_a_word_share_a_stem() -> None:
    """However a word is inflected, it is the same token."""
    for family in FAMILIES:
        assert len({stem(word) for word in family.split()}) == 1


def test_unrelated_words_stay_apart() -> None:
    """No two of these families meet."""
    stems = [stem(family.split()[0]) for family in FAMILIES]
    assert len(set(stems)) == len(stems)


@given(st.text("abcdefghijklmnopqrstuvwxyz", max_size=12), st.sampled_from(["", "ing", "ed", "ion", "ations", "ments"]))
def test_any_word_has_a_stem(base: str, ending: str) -> None:
    """Never an error, never nothing, never longer than the word (except for a restored silent e)."""
    word = base + ending
    assert (1 if word else 0) <= len(stem(word)) <= max(len(word), 1)


def test_a_word_begins_with_a_root_of_its_stem() -> None:
    """So a comparison of prefixes finds every word with that stem."""
    for word in [word for family in FAMILIES for word in family.split()]:
        assert any(word.startswith(root) for root in roots(stem(word)))


@given(
    st.text("abcdefghilmnoprstuvy", min_size=1, max_size=9), st.sampled_from(["", "es", "ied", "ings", "ision", "ly"])
)
def test_any_word_begins_with_a_root_of_its_stem(base: str, ending: str) -> None:
    """The same for words outside the lists."""
    word = base + ending
    assert any(word.startswith(root) for root in roots(stem(word)))
