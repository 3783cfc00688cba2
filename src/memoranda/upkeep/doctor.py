"""The doctor: checks the files of a home without opening the home, so it works on a damaged one."""

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from zipfile import BadZipFile, ZipFile
from zlib import error as zlib_error

from memoranda.errors import ConfigError, HomeError, StorageError
from memoranda.external.checks import check_notifications, check_providers, check_settings
from memoranda.external.loading.discovery import discover, find_by_name
from memoranda.home import config
from memoranda.home.memory_store import CuratedMemories
from memoranda.home.session_db import SessionDB
from memoranda.importers.corrections import correct_host_text, may_have_host_text
from memoranda.memory.curated import health_checks
from memoranda.memory.curated.store import MemoryStore
from memoranda.memory.record import health as session_health
from memoranda.memory.record.record import accept_store as accept_record
from memoranda.memory.skills import health_checks as skill_health
from memoranda.memory.skills.store import SkillStore
from memoranda.search.index import health as index_health
from memoranda.search.index.generations import generations
from memoranda.storage.health import check_store
from memoranda.storage.orphaned_wal import database_exists, file_size
from memoranda.support.health_issues import (
    HealthIssue,
    Progress,
    check_permissions,
    check_writable,
    issues_until_error,
    leftover,
)
from memoranda.support.home import (
    Home,
    decode_user_id,
    had_store,
    index_path,
    items_index_path,
    remove_file,
    server_index_path,
    vector_files,
)
from memoranda.upkeep.home_tables import check_parts, checked_files, part_schemas
from memoranda.upkeep.sync.delivery import check_sync

# How many users the doctor looks at without --deep: each takes some round trips.
_MAX_USERS = 100


def examine(home: Home, deep: Progress | None = None) -> Iterator[HealthIssue]:
    """Yield every health issue of a home: owner, configuration, permissions, memory, sessions, index, providers.

    With `deep`, which is notified of the progress, everything is compared with everything: the whole record, every
    message with the index, the history of curated memory, and the backups.
    """
    try:
        home.refuse_if_foreign()
    except HomeError as error:
        # The path is shown before the text already.
        text = str(error).removeprefix(f"{home.root} ")
        yield HealthIssue("error", home.root, text, "name another home with --home or MEMORANDA_HOME")
        return
    if not home.root.exists():
        return
    yield from issues_until_error(home.root, lambda: _check_root(home))
    loaded = config.Config()
    try:
        loaded = config.load(home)
        yield from _check_config(home, loaded)
        config.read_secrets(home)
    except ConfigError as error:
        # The name of the file is shown before the text already.
        text = str(error).replace(f" in {home.config_file}", "").removeprefix(f"{home.config_file} ")
        yield HealthIssue("error", home.config_file, text, "correct the file")
    yield from _check_links(home)
    memories = home.root / "memories"
    if not memories.is_symlink():
        yield from health_checks.check(memories, loaded.curated)
    yield from skill_health.check(home.skills(), loaded.skills)
    if loaded.store.url:
        yield from issues_until_error(home.config_file, lambda: _check_server(home, loaded, deep))
        yield from issues_until_error(home.config_file, lambda: _check_server_parts(home, loaded, deep))
    else:
        yield from issues_until_error(home.state_db, lambda: _check_sessions(home, loaded, deep))
        yield from issues_until_error(home.state_db, lambda: _check_index(home.state_db, deep))
    yield from issues_until_error(home.root, lambda: _check_imports(home, loaded))
    yield from issues_until_error(home.root, lambda: _check_search_extras(home, loaded))
    yield from issues_until_error(home.root, lambda: _check_external(home, loaded.providers))
    for file in checked_files(home.root, loaded.providers):
        yield from issues_until_error(file.path, partial(check_store, file))
    yield from issues_until_error(home.root, lambda: check_sync(home.root))
    yield from issues_until_error(memories, lambda: _check_users(home, loaded))
    if deep is not None:
        for directory in () if memories.is_symlink() else (memories, *home.user_memories()):
            deep("history of curated memory", 0, 1)
            if directory.is_dir():
                store = MemoryStore(directory, loaded.curated)
                yield from issues_until_error(directory, partial(health_checks.check_history, store))
        users = [decode_user_id(directory.name) for directory in home.user_memories()]
        for directory in (home.skills(), *(home.skills(user) for user in users if user is not None)):
            if directory.is_dir():
                skills = SkillStore(directory, loaded.skills)
                yield from issues_until_error(directory, partial(skill_health.check_history, skills))
        yield from issues_until_error(home.root, lambda: _check_backups(home.root / "backups", deep))


def accept_store(home: Home) -> str:
    """Use the session store that is in a home from now on, whatever the home knew about it; says which one that is.

    For a person who restored a backup, moved a store here, or wants to start with an empty one.
    """
    path = home.state_db
    if not had_store(path) and not database_exists(path):
        return f"{home.root} has no session store yet; there is nothing to accept."
    existed = bool(file_size(path))
    marker = accept_record(path)
    if not existed:
        return f"{path} is a new, empty store."
    return f"{path} is the store of this home from now on; it has {marker.messages:,} messages."


def _check_backups(directory: Path, progress: Progress) -> Iterator[HealthIssue]:
    """Read every backup that an import made before it changed a home."""
    files = sorted(directory.glob("*.zip"))
    for number, file in enumerate(files):
        progress("backups", number, len(files))
        try:
            with ZipFile(file) as archive:
                damaged = archive.testzip()
        except (BadZipFile, ValueError, EOFError, zlib_error) as error:
            damaged = str(error) or "the archive"
        if damaged is not None:
            yield HealthIssue(
                "error", file, f"is damaged: {damaged} cannot be restored from it", "delete it, and make a new backup"
            )


def _check_sessions(home: Home, loaded: config.Config, deep: Progress | None) -> Iterator[HealthIssue]:
    path = home.state_db
    if not database_exists(path) or not file_size(path):
        yield from _list_remains(path)
    for issue in session_health.check(path, deep):
        repair = issue.repair
        if issue.severity == "error" and repair is not None:
            # A repair of an error replaces the store, or changes what its messages contain.
            def repair_store_and_index(repair_store: Callable[[], object] = repair) -> object:
                report = repair_store()
                # The rows of a salvaged store have other ids than those in the index.
                _rebuild_index(path)
                return report

            repair = repair_store_and_index
        yield replace(issue, repair=repair)


def _check_server(home: Home, loaded: config.Config, deep: Progress | None) -> Iterator[HealthIssue]:
    """Check the record on a server, and this node's index of it."""
    from memoranda.memory.record.server_health import check_server  # noqa: PLC0415

    url = str(config.record_location(home, loaded))
    yield from check_server(home.config_file, url, deep)
    try:
        with SessionDB(url, wait=2.0, index_directory=home.root) as db:
            index = server_index_path(home.root, url)
            # The indexes of single users are checked when they are used.
            is_used = not loaded.recall.user_index_mb or bool(generations(index))
            issues = list(index_health.check(index, db.feed, deep)) if is_used else []
    except StorageError:
        # The check of the server reports why.
        return
    for issue in issues:
        yield replace(issue, repair=lambda: _rebuild_index(url, home.root), harmless=True)


def _check_server_parts(home: Home, loaded: config.Config, deep: Progress | None) -> Iterator[HealthIssue]:
    """Yield the issues of all parts in every store of a fleet; the check of the record says why one cannot be used."""
    urls = config.store_urls(home, loaded) or [config.server_url(home, loaded)]
    for url in urls:
        checks: list[Callable[[str], Iterator[HealthIssue]]] = [
            lambda url: _check_curated(home, loaded, url, deep),
            lambda url: check_notifications(home.root, home.config_file, url),
            lambda url: check_parts(home.root, part_schemas(), loaded.providers, home.config_file, url),
        ]
        for check in checks:
            try:
                yield from check(url)
            except StorageError as error:
                yield HealthIssue(
                    "error", home.config_file, f"names a server that cannot be examined: {error}",
                    "start the server, or correct store.url and store.servers",
                )  # fmt: skip
                break


def _check_curated(home: Home, loaded: config.Config, url: str, deep: Progress | None) -> Iterator[HealthIssue]:
    """Compare entries with journal and limit, for every user."""
    store = replace(loaded.store, url=url, servers=())
    with closing(CuratedMemories(home, replace(loaded, store=store))) as memories:
        users = memories.users()
        checked = users if deep is not None else users[:_MAX_USERS]
        for number, user in enumerate([None, *checked]):
            if deep is not None:
                deep("curated memory on the server", number, len(checked) + 1)
            memory = memories.open(user)
            if memory.storage.exists():
                yield from health_checks.check_memory(memory, f" --user {shlex.quote(user)}" if user else "")
                yield from health_checks.check_history(memory) if deep is not None else ()
    if len(checked) < len(users):
        yield HealthIssue(
            "note", home.config_file, f"names a server with curated memory of {len(users):,} users, of which "
            f"{len(checked):,} were checked", "'memoranda doctor --deep' checks all of them",
        )  # fmt: skip


def _list_remains(path: Path) -> Iterator[HealthIssue]:
    """List what is left of a store whose file is missing or empty: what the index knows, and copies of the file."""
    for file in generations(index_path(path)):
        known = index_health.describe_content(file)
        if known is not None:
            yield HealthIssue("note", file, known, "keep it until the store is back; nothing deletes it before that")
    for copy in sorted([*path.parent.glob(f"{path.name}.damaged-*"), *path.parent.glob("backups/*.zip")]):
        yield HealthIssue("note", copy, "may contain an earlier state of the store", "see whether it helps")


def _check_index(path: Path, deep: Progress | None) -> Iterator[HealthIssue]:
    if not path.exists():
        return
    try:
        with SessionDB(path, wait=2.0) as db:
            issues = list(index_health.check(index_path(path), db.feed, deep))
            issues += index_health.check(items_index_path(index_path(path)), db.item_feed, deep)
    except StorageError:
        # The check of the store reports why, and the index cannot be compared without it.
        return
    for issue in issues:
        yield replace(issue, repair=lambda: _rebuild_index(path), harmless=True)


def _check_imports(home: Home, loaded: config.Config) -> Iterator[HealthIssue]:
    """Report sessions in which an earlier version took text of other programs for words of the user."""
    location = config.record_location(home, loaded)
    if not loaded.store.url and not home.state_db.exists():
        return

    def correct() -> str:
        with SessionDB(location, index_directory=home.root) as db:
            return correct_host_text(home.root, db)

    try:
        with SessionDB(location, wait=2.0, index_directory=home.root) as db:
            is_outdated = may_have_host_text(home.root, db)
    except StorageError:
        # The check of the store reports why.
        return
    if is_outdated:
        yield HealthIssue(
            "warning", home.state_db, "has sessions that an earlier version imported: text that a program wrote may "
            "be recorded as words of the user", "'memoranda doctor --fix' compares them with the transcripts", correct,
        )  # fmt: skip


def _check_search_extras(home: Home, loaded: config.Config) -> Iterator[HealthIssue]:
    """Check that the embedders and the reranker in the settings are installed; calls no service."""
    settings = loaded.recall
    if settings.semantic or settings.rerank:
        from memoranda.search.meaning.embedders import check  # noqa: PLC0415

        yield from check(home.config_file, settings)
    keeps_vectors = settings.semantic and settings.semantic_index
    for path in () if keeps_vectors else vector_files(config.vectors_base(home, loaded)):
        yield HealthIssue(
            "warning", path, "has vectors that nothing keeps up to date", "delete it", partial(remove_file, path), True
        )


def _rebuild_index(location: Path | str, directory: Path | None = None) -> None:
    with SessionDB(location, index_directory=directory) as db:
        db.index.compact()
        # Without items there is no such file, and the next search of items creates it.
        if db.item_index.files:
            db.item_index.compact()


def _check_external(home: Home, in_use: Sequence[str]) -> Iterator[HealthIssue]:
    yield from check_settings(home.root)
    yield from check_notifications(home.root)
    yield from check_providers(home.root, in_use)


def _check_links(home: Home) -> Iterator[HealthIssue]:
    for path in home.linked_memories():
        yield HealthIssue(
            "error",
            path,
            f"is a link to {path.resolve()}, and links to memories are not followed",
            "put the directory itself there; to keep a home elsewhere, link the whole home or set MEMORANDA_HOME",
        )


def _check_users(home: Home, loaded: config.Config) -> Iterator[HealthIssue]:
    for directory in home.user_memories():
        user = decode_user_id(directory.name)
        user_option = f" --user {shlex.quote(user or 'ID')}"
        yield from health_checks.check(directory, loaded.curated, user_option)
        if user is not None:
            yield from skill_health.check(home.skills(user), loaded.skills, user_option)


def _check_root(home: Home) -> Iterator[HealthIssue]:
    yield from check_writable(home.root)
    for path in (home.root, home.config_file, home.secrets_file):
        if path.exists():
            yield from check_permissions(path)
    for path in sorted(home.root.glob(".*.tmp")):
        yield leftover(path, path.unlink)


def _check_config(home: Home, loaded: config.Config) -> Iterator[HealthIssue]:
    for name in loaded.unknown_keys:
        yield HealthIssue(
            "note",
            home.config_file,
            f"has an unknown name: {config.describe_unknown_key(name)}",
            "check its spelling against 'memoranda config list'",
        )
    for name in loaded.providers:
        if find_by_name(home.root, name) is None:
            yield HealthIssue(
                "warning",
                home.config_file,
                f"names the provider {name}, which is not installed",
                f"one of {', '.join(discover(home.root))}, or 'memoranda provider off'",
            )
