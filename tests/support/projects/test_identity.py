"""Which names mean the same project."""

from hypothesis import given
from hypothesis import strategies as st

from memoranda.support.projects import Project, matching_projects, project_at, project_name, read_project

PUBLISHED, COMMIT = "github.com/ana/house", "aaaaaaaaaaaa"
WHOLE = f"{PUBLISHED}#{COMMIT}"
PROJECTS = st.builds(
    Project, st.sampled_from(["github.com/a/x", "github.com/b/x", "x", "y"]), st.sampled_from(["", "1" * 12, "2" * 12])
)


@given(PROJECTS, PROJECTS)
def test_sameness_goes_both_ways_and_survives_being_written(one: Project, two: Project) -> None:
    """By the address or by the first commit; a directory's name alone says nothing."""
    assert one.is_same(two) == two.is_same(one)
    assert read_project(str(one)) == one
    if one.is_same(two):
        assert (one.published and one.published == two.published) or (one.first_commit == two.first_commit != "")


def test_a_project_is_meant_by_any_of_its_names() -> None:
    """An address, owner/name, a name; with it come its forks and what it was before it was published."""
    for wanted, meant in [
        (WHOLE, {WHOLE, PUBLISHED, f"github.com/ben/house#{COMMIT}", f"cottage#{COMMIT}"}),
        (PUBLISHED, {WHOLE, PUBLISHED, f"github.com/ben/house#{COMMIT}", f"cottage#{COMMIT}"}),
        (f"hut#{COMMIT}", {WHOLE, PUBLISHED, f"github.com/ben/house#{COMMIT}", f"cottage#{COMMIT}"}),
        ("git@github.com:Ana/House.git", {WHOLE, PUBLISHED, f"github.com/ben/house#{COMMIT}", f"cottage#{COMMIT}"}),
        ("other/house", {"gitlab.com/other/house#bbbbbbbbbbbb"}),
        ("shed", {"shed#cccccccccccc", "github.com/ana/shed"}),
        ("Shed.git", {"shed#cccccccccccc", "github.com/ana/shed"}),
        ("ouse", set()),
        ("#", set()),
        ("", set()),
        ("shed#dddddddddddd", set()),
    ]:
        known = [
            WHOLE, PUBLISHED, f"github.com/ben/house#{COMMIT}", f"cottage#{COMMIT}",
            "gitlab.com/other/house#bbbbbbbbbbbb", "shed#cccccccccccc", "github.com/ana/shed",
        ]  # fmt: skip
        assert matching_projects(known, wanted) == meant


def test_a_directory_includes_what_is_below_it() -> None:
    """A path is compared exactly; a name means the repositories and the directories that have it."""
    for wanted, meant in [
        ("/home/ana/notes", {"/home/ana/notes", "/home/ana/notes/C#/x"}),
        ("/home/ana/notes/", {"/home/ana/notes", "/home/ana/notes/C#/x"}),
        ("/home/ana/notes/C#", {"/home/ana/notes/C#/x"}),
        ("/home/ana/note", set()),
        ("/home/ana/Notes", set()),
        ("C:/work", {"C:/work/notes"}),
        ("ana/notes", {"/home/ana/notes", "/home/ana/notes/C#/x", "github.com/ana/notes"}),
        ("Notes", {"/home/ana/notes", "/home/ana/notes/C#/x", "github.com/ana/notes", "C:/work/notes"}),
        ("github.com/ana/notes", {"github.com/ana/notes"}),
    ]:
        known = [
            "/home/ana/notes", "/home/ana/notes/C#/x", "/home/ana/notebook", "C:/work/notes", "github.com/ana/notes",
        ]  # fmt: skip
        assert matching_projects(known, wanted) == meant


@given(st.lists(PROJECTS), PROJECTS)
def test_a_project_that_is_known_is_found_by_itself(known: list[Project], one: Project) -> None:
    """And what is found was known."""
    texts = [str(each) for each in (*known, one)]
    found = matching_projects(texts, str(one))
    assert found <= set(texts)
    assert str(one) in found


@given(st.lists(st.text()), st.text())
def test_any_text_may_stand_there(known: list[str], wanted: str) -> None:
    """In the record or in the question; nothing fails."""
    assert matching_projects(known, wanted) <= set(known)


def test_what_people_call_a_project() -> None:
    """The name without the commit; an address alone makes a project too."""
    assert project_name(WHOLE) == PUBLISHED
    assert project_name("shed#cccccccccccc") == "shed"
    assert project_name(None) == ""
    assert project_at("https://token@github.com/ana/house.git") == PUBLISHED
    assert project_at("/srv/house.git") is None
