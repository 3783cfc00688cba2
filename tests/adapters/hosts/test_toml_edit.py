"""One table goes into a TOML file and out again; everything else keeps its bytes, or nothing is changed."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.adapters.hosts.toml_edit import TomlTextError, with_table, without_table

PATH = ("mcp_servers", "memoranda")
OURS = {"command": "/opt/my tools/memoranda", "args": ["mcp", "--home", 'C:\\Users\\"x"\x7f']}
_PIECES = (
    'model = "o5" # the best\n',
    "\n",
    "# a note\n",
    '[mcp_servers.other] # mine\ncommand = "x"\n',
    '[mcp_servers.other.env]\nKEY = "[mcp_servers.memoranda]"\n',
    '[[profiles.list]]\nname = "a"\n',
    '[projects."/home/me/x.y"]\ntrust_level = "trusted"\n',
    '[tui]\ntext = """\nmany\nlines\n"""\n',
)


@given(st.permutations(_PIECES[3:]), st.lists(st.sampled_from(_PIECES[1:3]), max_size=6), st.booleans())
def test_a_table_goes_in_and_out_and_the_rest_keeps_its_bytes(tables: list[str], notes: list[str], ends: bool) -> None:
    """Whatever stands before it."""
    text = _PIECES[0] + "".join(note + table for note, table in zip([*notes, *[""] * 9], tables, strict=False))
    text = text if ends else text.rstrip("\n")
    added = with_table(text, PATH, OURS)
    assert added.startswith(text)
    assert tomllib.loads(added)["mcp_servers"]["memoranda"] == OURS
    assert without_table(added, PATH).rstrip("\n") == text.rstrip("\n")


def test_a_table_that_is_there_is_replaced_where_it_stands() -> None:
    """With those below it; comments that belong to the next table stay with it."""
    text = '[mcp_servers.memoranda]\ncommand = "old"\n\n[mcp_servers.memoranda.env]\nA = "1"\n\n# next\n[tui]\nx = 1\n'
    added = with_table(text, PATH, {"command": "new", "env": {"A": "1"}})
    assert added.index("new") < added.index("# next")
    assert tomllib.loads(added) == {
        "mcp_servers": {"memoranda": {"command": "new", "env": {"A": "1"}}},
        "tui": {"x": 1},
    }
    assert without_table(added, PATH) == "\n# next\n[tui]\nx = 1\n"


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers = { memoranda = { command = "x" } }\n',
        '[mcp_servers]\nmemoranda.command = "x"\n',
        'mcp_servers = "none"\n',
        'x = """\n[mcp_servers.memoranda]\n"""\n[mcp_servers.memoranda]\ncommand = "x"\n',
        "= broken\n",
    ],
)
def test_what_is_written_in_another_way_is_refused(text: str) -> None:
    """Rather than guessed at."""
    with pytest.raises(TomlTextError):
        with_table(text, PATH, OURS)


def test_windows_line_ends_stay() -> None:
    """In what is added as well."""
    added = with_table("a = 1\r\n", PATH, OURS)
    assert added.count("\n") == added.count("\r\n")
    assert without_table(added, PATH) == "a = 1\r\n"
