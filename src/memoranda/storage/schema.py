"""Tables, columns and migrations as data, from which an engine creates them."""

from collections.abc import Callable, Iterator
from typing import Any, Literal

from memoranda.storage.connection import Connection
from memoranda.storage.state_meta import read_meta, write_meta
from memoranda.support.json_object import parse_list
from memoranda.support.lazy_dataclass import dataclass

_NUMBERED = "INTEGER PRIMARY KEY AUTOINCREMENT"


@dataclass(frozen=True, slots=True)
class Column:
    """`kind` is text, real, integer or numbered (an id that the database assigns); `rules` are its SQL constraints."""

    name: str
    kind: str
    rules: str = ""
    meaning: str = ""

    def declaration(self) -> str:
        kind = _NUMBERED if self.kind == "numbered" else self.kind.upper()
        return f"{self.name} {kind} {self.rules}".rstrip()


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    meaning: str
    columns: tuple[Column, ...]

    def create(self) -> str:
        return f"CREATE TABLE IF NOT EXISTS {self.name} ({', '.join(c.declaration() for c in self.columns)})"


@dataclass(frozen=True, slots=True)
class Migration:
    """A change of stored data, applied once to a new store and to an older one; the store records its name with it."""

    name: str
    apply: Callable[[Connection], Any]

    def apply_once(self, connection: Connection, component: str = "") -> None:
        key = f"migration:{component}{self.name}"
        if read_meta(connection, key) is None:
            self.apply(connection)
            write_meta(connection, key, "done")


@dataclass(frozen=True, slots=True)
class ChangeTrigger:
    """Adds a row to the table `into` after every UPDATE or DELETE of a row that meets a condition.

    So a change that another program makes with SQL is noted like a change through the store. `values` are the columns
    of the added row; they and the condition name the row as OLD and NEW.
    """

    name: str
    event: str
    table: str
    condition: str
    into: str
    values: tuple[tuple[str, str], ...]

    def create(self) -> str:
        columns, values = (", ".join(part) for part in zip(*self.values, strict=True))
        return (
            f"CREATE TRIGGER IF NOT EXISTS {self.name} AFTER {self.event} ON {self.table} WHEN {self.condition}"
            f" BEGIN INSERT INTO {self.into} ({columns}) VALUES ({values}); END"
        )


@dataclass(frozen=True, slots=True)
class RowTrigger:
    """Executes statements after another program inserted or updated a row, to fill the columns that only we know."""

    name: str
    event: str
    table: str
    condition: str
    statements: tuple[str, ...]

    def create(self) -> str:
        return (
            f"CREATE TRIGGER IF NOT EXISTS {self.name} AFTER {self.event} ON {self.table} WHEN {self.condition}"
            f" BEGIN {'; '.join(self.statements)}; END"
        )


@dataclass(frozen=True, slots=True)
class ServerTables:
    """What the tables have in addition on a server, which many users and nodes share; a SQLite file has none of it.

    `columns` and `indexes` are added, and the indexes named in `omitted_indexes` are not created. `feeds` are the
    tables that followers read in the order of commits, each with the column of its row number. `user_tables` have rows
    of several users, each with an expression for the user of a row ('' is the owner): row-level security protects them.
    `shared_user_tables` are protected, too, and stay in the first store of a fleet when a user moves to another one.
    `open_user_tables` are not protected, because they are read before a request has a user.
    `triggers` are statements that create functions and triggers.
    """

    columns: tuple[tuple[str, Column], ...] = ()
    indexes: tuple[str, ...] = ()
    omitted_indexes: frozenset[str] = frozenset()
    feeds: tuple[tuple[str, str], ...] = ()
    user_tables: tuple[tuple[str, str], ...] = ()
    shared_user_tables: tuple[tuple[str, str], ...] = ()
    open_user_tables: tuple[tuple[str, str], ...] = ()
    triggers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Forgetting:
    """How a component forgets, where that is more than replacing texts and deleting the rows of a user.

    `texts` are the columns with texts of people; None stands for all columns of text. `own_users` are tables from which
    the component removes users itself.
    `delete_rows` deletes the rows of a user that a matching text identifies. `remove_user` is called instead of
    deleting the rows of a user.
    """

    texts: frozenset[str] | None = None
    own_users: frozenset[str] = frozenset()
    delete_rows: Callable[[Connection, Callable[[str], bool], str], int] | None = None
    remove_user: Callable[[Connection, str], Any] | None = None


@dataclass(frozen=True, slots=True)
class RowIssue:
    """What is wrong with rows of a component, for the doctor: "has {problem}". `repair` says what it did."""

    severity: Literal["error", "warning", "note"]
    problem: str
    remedy: str
    repair: Callable[[Connection], str] | None = None
    harmless: bool = False


@dataclass(frozen=True, slots=True)
class Schema:
    """The tables of one component. `name` tells the versions of components apart that share a database.

    `after_salvage` is executed after rows were saved from a damaged file, because some may be missing. `check_rows`
    yields what is wrong with rows; its second argument says whether they are on a server.
    """

    version: int
    tables: tuple[Table, ...]
    indexes: tuple[str, ...]
    migrations: tuple[Migration, ...] = ()
    triggers: tuple[ChangeTrigger | RowTrigger, ...] = ()
    name: str = "record"
    server: ServerTables = ServerTables()
    forgetting: Forgetting = Forgetting()
    after_salvage: tuple[str, ...] = ()
    check_rows: Callable[[Connection, bool], Iterator[RowIssue]] | None = None

    @property
    def user_tables(self) -> dict[str, str]:
        """The tables with rows of users, each with an expression for the user of a row; '' is the owner."""
        return dict((*self.server.user_tables, *self.server.shared_user_tables, *self.server.open_user_tables))

    @property
    def all_tables(self) -> tuple[Table, ...]:
        """The tables of the schema and those that every store has."""
        return (*self.tables, STATE_META, SCHEMA_VERSION)


STATE_META = Table(
    "state_meta",
    "Facts about the store itself.",
    (Column("key", "text", "PRIMARY KEY", "The name of the fact."), Column("value", "text", "", "Its value.")),
)
SCHEMA_VERSION = Table(
    "schema_version", "A single row.", (Column("version", "integer", "NOT NULL", "The version of these tables."),)
)
COMPONENT_VERSIONS = Table(
    "schema_version",
    "In a database that several components share: one row per component.",
    (
        Column("component", "text", "PRIMARY KEY", "The name of its schema."),
        Column("version", "integer", "NOT NULL", "The version of its tables."),
    ),
)


def is_json_list(text: str) -> bool:
    """Whether a stored text is a list, as a column with JSON should be."""
    return parse_list(text) is not None
