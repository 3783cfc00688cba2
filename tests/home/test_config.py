"""Configuration: read once, overridden by the environment, failing closed; secrets never printed."""

from dataclasses import fields
from pathlib import Path

import pytest

from memoranda import Memory
from memoranda.errors import ConfigError, ForeignHomeError, HomeError
from memoranda.home import config
from memoranda.home.config import Config
from memoranda.support.home import Home
from tests.conftest import mode, unprivileged

pytestmark = pytest.mark.slow


@pytest.fixture
def home(tmp_path: Path) -> Home:
    (tmp_path / "home").mkdir(mode=0o700)
    return Home.at(tmp_path / "home")


def test_without_a_file_the_defaults_of_the_design_hold(home: Home) -> None:
    """2,200 and 1,375 characters, both files on, no provider, review after ten turns, no approval."""
    loaded = config.load(home, {})
    curated = loaded.curated
    assert (curated.memory_enabled, curated.user_profile_enabled) == (True, True)
    assert (curated.memory_char_limit, curated.user_char_limit) == (2200, 1375)
    assert (curated.write_approval, loaded.provider, loaded.review.nudge_interval) == ("off", "", 10)


def test_a_default_stands_in_one_place(home: Home) -> None:
    """A home without a file gets what the settings values begin with, read as if a person had written it."""
    assert config.load(home, {}) == config.Config()
    assert "default" not in {field.name for field in fields(config.Key)}


OTHER_VALUES = {
    "memory.memory_enabled": False, "memory.user_profile_enabled": False, "memory.memory_char_limit": 5,
    "memory.project_enabled": False, "memory.project_char_limit": 4, "memory.when_full": "make_room",
    "memory.user_char_limit": 6, "memory.write_approval": "propose", "memory.provider": "honcho",
    "memory.providers": ("honcho", "mem0"),
    "memory.nudge_interval": 7, "curate.mode": "auto", "curate.model": "small-model", "provider.mode": "tools",
    "provider.recall_chars": 8, "provider.every_n_turns": 3,
    "provider.start_seconds": 9.0, "provider.call_seconds": 3.0, "provider.tool_seconds": 30.0,
    "provider.deliver_seconds": 20.0, "provider.shutdown_seconds": 4.0, "provider.prompt_chars": 900,
    "provider.tool_chars": 8_000,
    "provider.recall_seconds": 0.5, "provider.begin_seconds": 0.7, "model.provider": "openai", "model.name": "m",
    "model.base_url": "http://localhost:1/v1", "model.api_key_env": "KEY", "model.window": 9, "model.max_tokens": 10,
    "agent.max_steps": 11, "agent.delegation_depth": 0, "compression.enabled": False, "compression.threshold": 0.5,
    "compression.protect_first": 1, "compression.protect_last": 2, "budget.daily_usd": None,
    "budget.daily_tokens": 12, "skills.enabled": False, "skills.agent_writes": False, "prompt.guidance": False,
    "prompt.project_files": False, "prompt.project_file_chars": 13, "prompt.timezone": "UTC",
    "sessions.redact_secrets": False, "search.answer_chars": 5000, "hooks.helper": False, "search.index": "user",
    "search.index_directory_mb": 7,
    "server.public_url": "https://memory.example.com", "store.url": "postgresql://ana@db.example/memoranda",
    "store.servers": ("postgresql://ana@db2.example/memoranda",),
    "sessions.auto_prune": True, "sessions.retention_days": 10, "sessions.min_interval_hours": 5,
    "sessions.vacuum_after_prune": False,
    "sessions.turn_wait": 2.5, "agent.keep_interrupted": False, "search.summarize": True,
    "search.summary_model": "small", "search.semantic": True, "search.semantic_model": ("onnx:/m", "wordllama"),
    "search.semantic_url": "http://localhost:1/v1", "search.semantic_api_key_env": "KEY",
    "search.semantic_seconds": 0.4, "search.semantic_index": True, "search.rerank": "model",
    "search.rerank_model": "r", "search.rerank_seconds": 3.0, "search.expand": True, "search.expand_model": "e",
    "search.expand_seconds": 4.0, "memory.untrusted_writes": "save", "memory.trusted_tools": ("read_file",),
}  # fmt: skip


def test_every_key_is_read_from_the_file(home: Home) -> None:
    """Each key of the table has an effect, with a value other than its default."""
    assert all(OTHER_VALUES[key.name] != key.default for key in config.KEYS)
    for name, value in OTHER_VALUES.items():
        text = ", ".join(value) if isinstance(value, tuple) else str(value)
        config.set_value(home, name, "none" if value is None else text)
    loaded = config.load(home, {})
    assert {key.name: config.value_of(loaded, key) for key in config.KEYS} == OTHER_VALUES


def test_the_environment_overrides_the_file(home: Home) -> None:
    """By the variable that the key names."""
    home.config_file.write_text("memory:\n  memory_char_limit: 5\n")
    assert config.load(home, {"MEMORANDA_MEMORY_MEMORY_CHAR_LIMIT": "9"}).curated.memory_char_limit == 9


def test_one_provider_and_several_are_read_together(home: Home) -> None:
    """Either setting fills both, the environment overrides the file, and one among several is no contradiction."""

    def chosen(**variables: str) -> tuple[str, tuple[str, ...]]:
        loaded = config.load(home, {f"MEMORANDA_MEMORY_{name}": value for name, value in variables.items()})
        return loaded.provider, loaded.providers

    assert chosen() == ("", ())
    assert chosen(PROVIDER="a") == ("a", ("a",))
    assert chosen(PROVIDERS="b, a,b") == ("b", ("b", "a"))
    home.config_file.write_text("memory:\n  provider: a\n  providers: [b, a]\n")
    assert chosen() == ("b", ("b", "a"))
    assert chosen(PROVIDER="c") == ("c", ("c",))
    assert chosen(PROVIDERS="c,d") == ("c", ("c", "d"))


def test_two_settings_that_contradict_each_other_are_an_error(home: Home) -> None:
    """In the file, in the environment, and when one of them is set."""
    home.config_file.write_text("memory:\n  provider: a\n  providers: [b, c]\n")
    with pytest.raises(ConfigError, match=r"memory\.provider is a, but memory\.providers are b, c"):
        config.load(home, {})
    config.set_value(home, "memory.provider", "c")
    assert config.load(home, {}).providers == ("b", "c")
    with pytest.raises(ConfigError, match="environment"):
        config.load(home, {"MEMORANDA_MEMORY_PROVIDER": "a", "MEMORANDA_MEMORY_PROVIDERS": "b"})
    home.config_file.write_text("memory:\n  provider: a\n")
    with pytest.raises(ConfigError, match="Nothing was changed"):
        config.set_value(home, "memory.providers", "b,c")
    assert config.load(home, {}).providers == ("a",)
    config.set_values(home, {"memory.provider": "b", "memory.providers": ("b", "c")})
    assert config.load(home, {}).providers == ("b", "c")


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("memory_char_limit: lots", ["memory.memory_char_limit", "'lots'"]),
        ("memory_char_limit: -1", ["memory.memory_char_limit", "-1"]),
        ("memory_char_limit: 2.5", ["memory.memory_char_limit", "2.5"]),
        ("memory_char_limit: true", ["memory.memory_char_limit", "True"]),
        ("memory_enabled: maybe", ["memory.memory_enabled", "'maybe'"]),
        ("write_approval: sometimes", ["memory.write_approval", "'sometimes'", "explicit-only"]),
        ("provider: [a]", ["memory.provider"]),
    ],
)
def test_a_wrong_value_is_refused_naming_key_value_and_file(home: Home, line: str, parts: list[str]) -> None:
    """So that a person can fix it."""
    home.config_file.write_text(f"memory:\n  {line}\n")
    with pytest.raises(ConfigError) as caught:
        config.load(home, {})
    for part in [*parts, str(home.config_file)]:
        assert part in str(caught.value)


def test_a_wrong_value_in_the_environment_names_the_variable(home: Home) -> None:
    """The file is not to blame."""
    with pytest.raises(ConfigError, match="MEMORANDA_MEMORY_NUDGE_INTERVAL is 'x'"):
        config.load(home, {"MEMORANDA_MEMORY_NUDGE_INTERVAL": "x"})


@pytest.mark.parametrize(
    "content",
    [
        b"memory: [",
        b"- a\n- b",
        b"just words",
        b"memory: 5",
        b"\xff\xfe",
        b"a: b: c",
        b"x: 2001-99-99",
        b"!!int ",
        b"memory: !!set a",
        b"[" * 700,
    ],
)
def test_a_file_that_makes_no_sense_fails_closed(home: Home, content: bytes) -> None:
    """Nothing is opened with a guess."""
    home.config_file.write_bytes(content)
    with pytest.raises(ConfigError):
        config.load(home, {})


def test_an_unreadable_file_fails_closed() -> None:
    """A file without permission is not an absent file."""
    with unprivileged() as base:
        home = Home.at(base)
        home.config_file.write_text("memory:\n  write_approval: propose\n")
        home.config_file.chmod(0)
        with pytest.raises(ConfigError, match="cannot be read"):
            config.load(home, {})


@pytest.mark.parametrize("content", ["", "\n# only a comment\n", "other:\n  key: 1\n", "memory:\n"])
def test_a_file_without_our_keys_means_the_defaults(home: Home, content: str) -> None:
    """Other programs' sections are not our business."""
    home.config_file.write_text(content)
    assert config.load(home, {}).curated.memory_char_limit == 2200


def test_yes_and_no_are_understood_for_approval(home: Home) -> None:
    """Hermes writes a plain boolean there."""
    home.config_file.write_text("memory:\n  write_approval: true\n")
    assert config.load(home, {}).curated.write_approval == "propose"


def test_setting_a_value_keeps_comments_and_other_keys(home: Home) -> None:
    """The file belongs to the person who wrote it."""
    home.config_file.write_text("# mine\nother: {a: 1}\nmemory:\n  provider: honcho  # a comment\n")
    config.set_value(home, "memory.memory_char_limit", "3000")
    text = home.config_file.read_text()
    assert "# mine" in text and "# a comment" in text and "other: {a: 1}" in text
    assert config.load(home, {}).curated.memory_char_limit == 3000
    assert mode(home.config_file) == 0o600


def test_setting_a_value_keeps_what_others_rely_on(home: Home) -> None:
    """Quotes decide what other programs read, and a person wrote the comments in a file."""
    home.config_file.write_text("a: \"yes\"\nb: '12:30'\nmemory:\n  provider: x\n")
    config.set_value(home, "memory.memory_char_limit", "10")
    assert home.config_file.read_text() == "a: \"yes\"\nb: '12:30'\nmemory:\n  provider: x\n  memory_char_limit: 10\n"
    home.config_file.write_text("# my notes\n# memory: soon\n")
    config.set_value(home, "memory.memory_char_limit", "10")
    assert home.config_file.read_text() == "# my notes\n# memory: soon\nmemory:\n  memory_char_limit: 10\n"


def test_a_section_that_others_share_is_not_changed(home: Home) -> None:
    """An alias would carry the change to settings that were not named."""
    home.config_file.write_text("other: &x\n  provider: a\nmemory: *x\n")
    with pytest.raises(ConfigError, match="alias"):
        config.set_value(home, "memory.memory_char_limit", "10")


@pytest.mark.parametrize(
    ("word", "meaning"), [("true", "propose"), ("on", "propose"), ("false", "off"), ("off", "off")]
)
def test_yes_and_no_mean_the_same_everywhere(home: Home, word: str, meaning: str) -> None:
    """In the file, in the environment and on the command line."""
    assert config.set_value(home, "memory.write_approval", word) == meaning
    assert config.load(home, {"MEMORANDA_MEMORY_WRITE_APPROVAL": word}).curated.write_approval == meaning


def test_setting_an_unknown_key_or_a_wrong_value_writes_nothing(home: Home) -> None:
    """A typo gets an answer."""
    for name, value in (
        ("memory.memory_char_limt", "3"),
        ("memory.memory_char_limit", "x"),
        ("search.index", "both"),
        ("search.rerank", "big"),
        ("search.rerank", "onnx:"),
        ("search.semantic_model", "wordllama,bert"),
    ):
        with pytest.raises(ConfigError):
            config.set_value(home, name, value)
    assert not home.config_file.exists()


def test_a_removed_setting_has_its_default_again(home: Home) -> None:
    """The rest of the file does not change, and a setting that the file does not have is reported."""
    home.config_file.write_text("# mine\nmemory:\n  provider: honcho  # a comment\n  memory_char_limit: 10\n")
    assert config.unset_value(home, "memory.memory_char_limit")
    assert home.config_file.read_text() == "# mine\nmemory:\n  provider: honcho  # a comment\n"
    assert not config.unset_value(home, "memory.memory_char_limit")
    with pytest.raises(ConfigError):
        config.unset_value(home, "memory.memory_char_limt")


def test_the_last_setting_of_a_section_can_be_removed(home: Home) -> None:
    """A section without settings means the defaults."""
    config.set_value(home, "search.semantic", "on")
    assert config.unset_value(home, "search.semantic")
    assert config.load(home, {}) == config.load(Home(home.root / "none"), {})
    assert not config.unset_value(Home(home.root / "none"), "search.semantic")


def test_unknown_keys_in_our_section_are_reported(home: Home) -> None:
    """They have no effect, and the doctor says so."""
    home.config_file.write_text("memory:\n  memory_char_limt: 5\n")
    assert config.load(home, {}).unknown_keys == ("memory.memory_char_limt",)


def test_a_secret_reads_back_exactly(home: Home) -> None:
    """Whatever characters it holds, in a file that is private."""
    for value in ["plain", "with space", "quo'te", 'dou"ble', "back\\slash", "$dollar", "#hash", "é字", "a=b", "'"]:
        home.secrets_file.write_text("# mine\nOTHER=kept\n")
        home.secrets_file.chmod(0o644)
        config.set_secret(home, "API_KEY", "first")
        config.set_secret(home, "API_KEY", value)
        assert config.read_secrets(home) == {"OTHER": "kept", "API_KEY": value}
        assert home.secrets_file.read_text().startswith("# mine\nOTHER=kept\n")
        assert mode(home.secrets_file) == 0o600


def test_a_secret_is_removed_and_a_missing_one_reported(home: Home) -> None:
    """True when there was one; asking for one that is not there makes nothing."""
    assert config.remove_secret(home, "API_KEY") is False
    assert not home.secrets_file.exists()
    config.set_secret(home, "API_KEY", "x")
    assert config.remove_secret(home, "API_KEY") is True
    assert config.read_secrets(home) == {}


def test_other_secrets_of_whatever_form_survive_a_change(home: Home) -> None:
    """Values over several lines, names without a value, comments and odd line ends stay byte for byte."""
    text = "# mine\nPEM=\"-----BEGIN\nline two\n-----END\"\nU='a\u2028b'\nBARE\nexport X=1"
    home.secrets_file.write_text(text)
    config.set_secret(home, "API_KEY", "v")
    assert home.secrets_file.read_text() == text + "\nAPI_KEY='v'\n"
    assert config.read_secrets(home)["PEM"] == "-----BEGIN\nline two\n-----END"


@pytest.mark.parametrize("name", ["config.yaml", ".env"])
def test_a_link_in_the_place_of_a_file_is_not_replaced(home: Home, tmp_path: Path, name: str) -> None:
    """Somebody keeps it elsewhere on purpose."""
    (tmp_path / "elsewhere").write_text("")
    (home.root / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="is a link"):
        if name == ".env":
            config.set_secret(home, "K", "v")
        else:
            config.set_value(home, "memory.memory_char_limit", "5")
    assert (home.root / name).is_symlink()


def test_nothing_is_configured_in_a_foreign_home(home: Home) -> None:
    """Neither settings nor secrets."""
    home.state_db.write_bytes(b"SQLite format 3\0" + b"\0" * 84)
    with pytest.raises(ForeignHomeError):
        config.set_value(home, "memory.memory_char_limit", "5")
    with pytest.raises(ForeignHomeError):
        config.set_secret(home, "K", "v")


def test_a_blank_variable_overrides_nothing(home: Home) -> None:
    """As a blank MEMORANDA_HOME does not."""
    assert config.load(home, {"MEMORANDA_MEMORY_MEMORY_CHAR_LIMIT": " "}).curated.memory_char_limit == 2200


@pytest.mark.parametrize("content", ["memory:\n", "other: 1\n", ""])
def test_a_value_can_be_set_whatever_the_section_looks_like(home: Home, content: str) -> None:
    """Absent, blank, or in a blank file."""
    home.config_file.write_text(content)
    config.set_value(home, "memory.memory_char_limit", "5")
    assert config.load(home, {}).curated.memory_char_limit == 5


@pytest.mark.parametrize("bad", ["", "  ", "~nosuchuser-here/x", "x" * 5000])
def test_a_home_that_cannot_be_is_refused_in_words(bad: str) -> None:
    """Not with a traceback, and never as the current directory."""
    with pytest.raises(HomeError):
        config.locate_home(bad)


@pytest.mark.parametrize(
    ("name", "value"), [("no-dash", "x"), ("", "x"), ("A B", "x"), ("OK", "two\nlines"), ("1A", "x")]
)
def test_a_secret_that_cannot_be_stored_is_refused(home: Home, name: str, value: str) -> None:
    """And its value is not repeated in the message."""
    with pytest.raises(ConfigError) as caught:
        config.set_secret(home, name, value)
    assert "lines'" not in str(caught.value)
    assert not home.secrets_file.exists()


def test_toolsets_are_lists_by_platform(home: Home) -> None:
    """What is no list is refused; nothing there means that no platform is limited."""
    assert config.load(home, {}).toolsets == {}
    home.config_file.write_text("tools:\n  telegram: [memory]\n  cron: []\n")
    assert config.load(home, {}).toolsets == {"telegram": ("memory",), "cron": ()}
    for wrong in ("tools: memory\n", "tools:\n  cron: memory\n", "tools:\n  cron: [1]\n"):
        home.config_file.write_text(wrong)
        with pytest.raises(ConfigError, match="must list the toolsets of each platform"):
            config.load(home, {})


def test_the_environment_says_by_name_and_form_what_is_a_secret(home: Home) -> None:
    """By the end of the name, by a word in it where the value looks like a credential, and in addresses."""
    secrets = {
        "GITHUB_PAT": "pat-value-1", "DB_PASS": "pass value 2", "MYSQL_PWD": "pwd-value-3", "PGPASSWORD": "pg-value-4",
        "SECRET_KEY_BASE": "base-value-05", "OPENAI_API_KEY_2": "second-value-06", "REDIS_AUTH": "auth-value-07",
    }  # fmt: skip
    harmless = {
        "PWD": "/home/anna", "SSH_AUTH_SOCK": "/run/agent.1", "AUTH_METHOD": "password", "KEY_STYLE": "emacs-like-keys",
        "TOKEN_COUNT": "128000", "LANG": "en_GB.UTF-8", "HOMEPAGE": "https://example.org:8080/a@b",
    }  # fmt: skip
    address = {"DATABASE_URL": "postgres://app:address-value-08@db.example.org/app"}
    found = config.known_secrets(home, secrets | harmless | address)
    assert found == {*secrets.values(), "address-value-08"}


@pytest.mark.parametrize(
    "given", [Config(provider="holographic"), Config(providers=("holographic",))], ids=["provider", "providers"]
)
def test_a_program_may_name_its_provider_in_either_field(tmp_path: Path, given: Config) -> None:
    """A configuration made in Python gives its sessions the provider's tools, whichever field names it."""
    assert (given.provider, given.providers) == ("holographic", ("holographic",))
    with Memory(Home.at(tmp_path), given) as memory, memory.session() as session:
        assert "fact_store" in [tool.name for tool in session.tools]


def test_a_program_cannot_name_a_provider_beside_the_providers() -> None:
    """Two fields that contradict each other are an error, as in config.yaml."""
    with pytest.raises(ConfigError, match="provider is mem0, which is not one of providers: holographic, honcho"):
        Config(provider="mem0", providers=("holographic", "honcho"))
