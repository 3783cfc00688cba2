"""One table is added to a TOML file and removed again; everything else keeps its bytes, or nothing is changed."""

import subprocess
import sys
import tomllib
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memoranda.integrations.hosts.host import UnusableSettingsError
from memoranda.integrations.hosts.toml_edit import read_toml, rewrite_toml

pytestmark = pytest.mark.slow

PARENT, NAME = "mcp_servers", "memoranda"
OURS = {"command": "/opt/my tools/memoranda", "args": ["mcp", "--home", 'C:\\Users\\"x"\x7f']}
_BLANKS = ("\n", "  \n", "# a note\n", "\t# another\n")
_PARENTS = (
    "",
    "mcp_servers = {}\n",
    "mcp_servers = { } # none\n",
    'mcp_servers = { other = { command = "x" } }\n',
    'mcp_servers.other.command = "x"\n',
)
_TABLES = (
    "[mcp_servers] # all\n",
    '[mcp_servers.other] # mine\ncommand = "x"\n',
    '[mcp_servers.other.env]\nKEY = "[mcp_servers.memoranda]"\n',
    '[ "mcp_servers" . dotted ]\na.b = 1\n',
    '[[profiles.list]]\nname = "a"\n',
    '[projects."/home/me/x.y"]\ntrust_level = "trusted"\n',
    '[tui]\ntext = """\nmany\n[mcp_servers.memoranda]\nlines\n"""\n# the end\n\n',
)
_texts = st.builds(
    lambda head, parent, tables, tail: "".join([*head, 'model = "o5" # the best\n', parent, *tables, *tail]),
    st.lists(st.sampled_from(_BLANKS), max_size=2),
    st.sampled_from(_PARENTS),
    st.lists(st.sampled_from(_TABLES + _BLANKS), max_size=6),
    st.lists(st.sampled_from(_BLANKS), max_size=2),
)


def _with_ours(text: str, values: Mapping[str, Any] = OURS) -> str:
    settings = read_toml(text)
    return rewrite_toml(text, settings | {PARENT: settings.get(PARENT, {}) | {NAME: values}}, PARENT, NAME)


def _without_ours(text: str) -> str:
    settings = read_toml(text)
    servers = {key: value for key, value in settings[PARENT].items() if key != NAME}
    return rewrite_toml(text, settings | {PARENT: servers}, PARENT, NAME)


@given(_texts, st.sampled_from(["", "\ufeff"]), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_a_table_goes_in_and_out_and_the_rest_keeps_its_bytes(
    text: str, bom: str, newline: str, ends_in_newline: bool
) -> None:
    """With comments, dotted keys, inline tables, a BOM, either line end, and without a newline at the end."""
    text = bom + (text if ends_in_newline else text.rstrip("\n")).replace("\n", newline)
    try:
        read_toml(text)
    except UnusableSettingsError:
        # Some combinations define a table twice.
        return
    added = _with_ours(text)
    assert read_toml(added)[PARENT][NAME] == OURS
    # A single line does not say how lines end.
    assert newline not in text or added.count("\n") == added.count(newline)
    characters = iter(added)
    assert all(char in characters for char in text)
    assert _without_ours(added) == text


@pytest.mark.parametrize("text", ["", "\n", "\n\n", "# only a comment", "\ufeff", "a = 1", "a = 1\n\n\n", "a = 1\n  "])
def test_small_files_come_back_byte_for_byte(text: str) -> None:
    """Also those that say nothing."""
    assert _without_ours(_with_ours(text)) == text


@given(_texts, st.sampled_from(["\n", "\r\n"]))
def test_a_table_that_the_host_appends_after_ours_stays(text: str, newline: str) -> None:
    """As if it had been appended without ours: Codex notes there which hooks the user reviewed."""
    text = text.replace("\n", newline)
    appended = '\n[hooks.state."/a/hooks.json:stop:0:0"]\ntrusted_hash = "x"\n'.replace("\n", newline)
    try:
        read_toml(text)
        added = _with_ours(text)
    except UnusableSettingsError:
        return
    if read_toml(text).get(PARENT) is None:
        assert _without_ours(added + appended) == text + appended


def test_an_existing_table_is_updated_in_place() -> None:
    """Only the keys that differ change; comments in it, and those of the next table, stay."""
    text = (
        '[mcp_servers.memoranda] # ours\ncommand = "old" # where\nurl = "x"\n\n'
        '[mcp_servers.memoranda.env]\nA = "1" # mine\n\n# next\n[tui]\nx = 1\n'
    )
    updated = _with_ours(text, {"command": "new", "env": {"A": "1"}})
    assert updated == text.replace('"old"', '"new"').replace('url = "x"\n', "")
    assert _without_ours(updated) == "\n# next\n[tui]\nx = 1\n"


def test_the_parts_of_a_table_are_removed_from_several_places() -> None:
    """TOML allows other tables between them."""
    text = '[mcp_servers.memoranda]\ncommand = "x"\n[tui]\nx = 1\n[mcp_servers.memoranda.env]\nA = "1"\n'
    assert _without_ours(text) == "[tui]\nx = 1\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('mcp_servers = { memoranda = { command = "x" } }\n', 'mcp_servers = { memoranda = { command = "y" } }\n'),
        ('[mcp_servers]\nmemoranda.command = "x" # z\n', '[mcp_servers]\nmemoranda.command = "y" # z\n'),
        ('mcp_servers.memoranda.command = "x"\r\n', 'mcp_servers.memoranda.command = "y"\r\n'),
    ],
)
def test_inline_and_dotted_tables_are_updated_and_removed(text: str, expected: str) -> None:
    """In the form in which they are written."""
    assert _with_ours(text, {"command": "y"}) == expected
    assert tomllib.loads(_without_ours(text)).get(PARENT, {}) == {}


def test_a_key_that_is_added_to_our_table_has_the_line_ends_of_the_file() -> None:
    """When the program is called in another way than before."""
    text = '[mcp_servers.memoranda]\r\ncommand = "x"\r\n'
    assert _with_ours(text, {"command": "x", "args": ["mcp"]}) == text + 'args = ["mcp"]\r\n'


@pytest.mark.parametrize(
    "text", ['mcp_servers = {a = 1 , b = {c = 2}}\n', "= broken\n", "a = 1\na = 2\n"]
)  # fmt: skip
def test_what_cannot_be_changed_safely_is_refused(text: str) -> None:
    """Such as an inline table whose spaces would differ after the removal."""
    with pytest.raises(UnusableSettingsError):
        _with_ours(text)


def test_commands_that_hosts_wait_for_do_not_load_the_editor() -> None:
    """Only installing and uninstalling do."""
    code = "import sys, memoranda.cli.hooks.command, memoranda.cli.service.mcp; sys.exit('tomlkit' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
