"""What the database shows as a file, and the audit as a chain."""

import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from spinney.features.doctor.sql.rule import CheckContext, Facts, Repair, RepairContext, Rule, violation_of
from spinney.model.errors import AuditBroken, StoreUnusable
from spinney.model.rights.operators import Violation
from spinney.model.values.paths import beside
from spinney.store.sql.audit import SqlAudit
from spinney.store.sql.connection.sqlite import SqliteDatabase
from spinney.store.sql.registry.registry import (
    UnreadableDeclaration,
    read_queue,
    read_settings,
    read_type,
)
from spinney.store.sql.session import Session

WAL_MOST_BYTES = 2**30
"""A write-ahead log that is longer cannot be taken up, because somebody still reads from its beginning."""
FREE_LEAST_BYTES = 2**29
"""Below it, a disk is as good as full: a checkpoint alone may need so much."""
_FINDINGS = 5
"""So many of SQLite's own findings are told for each table."""
DECLARATIONS = "declaration-unreadable"
"""The rule that tells of what keeps most others from looking."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfStore:
    """A rule about the store as a whole; what it finds is looked at again by its subject."""

    name: str
    about: str
    find: Callable[[Session], Iterator[Mapping[str, Any]]]
    subject: str
    sentence: str
    offer: str | None = None
    mend: Repair | None = None
    stepwise: bool = False
    deep: bool = False
    of: Literal["file", "server", "any"] = "file"
    """Which kind of store can break it."""

    def examine(self, session: Session, now_us: int) -> Iterator[Violation]:
        if self.of not in ("any", "file" if isinstance(session.database, SqliteDatabase) else "server"):
            return
        for facts in self.find(session):
            yield violation_of(self, self.subject, self.sentence, self.offer, facts)

    def again(self, look: CheckContext, facts: Facts) -> Facts | None:
        try:
            mode = stat.S_IMODE(os.lstat(facts["path"]).st_mode)
        except FileNotFoundError:
            return None  # what SQLite keeps beside the database comes and goes
        return facts if mode & ~facts["wanted"] else None


# --- the database -----------------------------------------------------------------------------


def _checked(pragma: str) -> Callable[[Session], Iterator[Mapping[str, Any]]]:
    """SQLite's own check, a table a snapshot."""

    def find(session: Session) -> Iterator[Mapping[str, Any]]:
        with session.database.look() as tx:
            tables = [
                n for (n,) in tx.all("select name from sqlite_master where type = 'table' order by name")
            ]
        for table in tables:
            try:
                with session.database.look() as tx:
                    said = [line for (line,) in tx.all(f"pragma {pragma}('{table}')")]
            except StoreUnusable as error:
                said = [str(error)]
            if said != ["ok"]:
                yield {"table": table, "findings": "; ".join(said[:_FINDINGS])}

    return find


def _file(session: Session) -> SqliteDatabase:
    assert isinstance(session.database, SqliteDatabase)
    return session.database


def _files(session: Session) -> Iterator[tuple[Path, int]]:
    """What belongs to the database, and the rights that each may have at most."""
    for suffix in ("", "-wal", "-shm"):
        yield beside(_file(session).path, suffix), 0o600
    yield _file(session).run_folder, 0o700


def _open_to_others(session: Session) -> Iterator[Mapping[str, Any]]:
    for path, wanted in _files(session):
        try:
            mode = stat.S_IMODE(path.lstat().st_mode)
        except FileNotFoundError:
            continue
        if mode & ~wanted:
            yield {"path": str(path), "mode": f"{mode:04o}", "wanted": wanted, "should": f"{wanted:04o}"}


def _foreign(session: Session) -> Iterator[Mapping[str, Any]]:
    for path, _ in _files(session):
        try:
            owner = path.lstat().st_uid
        except FileNotFoundError:
            continue
        if owner != os.geteuid():
            yield {"path": str(path), "owner": owner, "us": os.geteuid()}


def _long_wal(session: Session) -> Iterator[Mapping[str, Any]]:
    path, wal = beside(_file(session).path, ""), beside(_file(session).path, "-wal")
    if wal.exists() and (size := wal.stat().st_size) > WAL_MOST_BYTES:
        yield {"path": str(wal), "gib": round(size / 2**30, 1), "database": str(path)}


def full_disk(place: Path) -> Mapping[str, Any] | None:
    """What there is to say of the disk that holds this directory, if it is as good as full."""
    free = shutil.disk_usage(place).free
    return {"path": str(place), "mib": free // 2**20} if free < FREE_LEAST_BYTES else None


def _full(session: Session) -> Iterator[Mapping[str, Any]]:
    found = full_disk(_file(session).run_folder.parent)
    if found is not None:
        yield found


def _close(mend: RepairContext, facts: Facts) -> None:
    path = Path(facts["path"])
    path.chmod(stat.S_IMODE(path.lstat().st_mode) & facts["wanted"])


# --- a server ---------------------------------------------------------------------------------


def _held_open(session: Session) -> Iterator[Mapping[str, Any]]:
    """Of other users' transactions a role sees the age only with the rights of pg_read_all_stats."""
    with session.database.look() as tx:
        found = tx.all(_HORIZONS, (OPEN_MOST_S,))
    for who, since_s, mend in found:
        yield {"who": who, "minutes": max(1, round(since_s / 60)), "mend": mend}


OPEN_MOST_S = 60
"""A transaction that is open for longer keeps PostgreSQL from clearing away what every job leaves behind."""
_HORIZONS = (
    "select 'the transaction of process ' || pid || ' (user ' || coalesce(usename, 'unknown') || ', ' "
    "|| coalesce(nullif(application_name, ''), 'without a name') || ', ' || coalesce(state, 'at work') || ')', "
    "extract(epoch from now() - xact_start), 'select pg_terminate_backend(' || pid || ')' from pg_stat_activity "
    "where datname = current_database() and pid <> pg_backend_pid() and backend_xmin is not null "
    "and xact_start < now() - ? * interval '1 second' "
    "union all select 'the prepared transaction ' || gid || ' (user ' || owner || ')', "
    "extract(epoch from now() - prepared), 'rollback prepared ' || quote_literal(gid) from pg_prepared_xacts "
    "where database = current_database() "
    "union all select 'the replication slot ' || slot_name, 0, 'select pg_drop_replication_slot(' || "
    "quote_literal(slot_name) || ')' from pg_replication_slots where xmin is not null and not active"
)


# --- what is declared -------------------------------------------------------------------------


def _unreadable(session: Session) -> Iterator[Mapping[str, Any]]:
    """Without the registry, which cannot be had then: all other rules fail for it, and need not say so."""
    for table, column, read in (
        ("types", "spec", read_type),
        ("queues", "spec", read_queue),
        ("queue_settings", "settings", read_settings),
    ):
        with session.database.look() as tx:
            declared = tx.all(f"select name, {column} from {table} order by name")  # literals of these lines
        for name, spec in declared:
            try:
                read(name, spec)
            except UnreadableDeclaration as error:
                yield {"kind": table.removesuffix("s").replace("_", " "), "name": name, "finding": str(error)}


# --- the audit --------------------------------------------------------------------------------


def _broken_chain(session: Session) -> Iterator[Mapping[str, Any]]:
    try:
        SqlAudit(session).verify()
    except AuditBroken as error:
        yield {"finding": str(error)}


RULES: tuple[Rule, ...] = (
    OfStore(
        name="database-damaged",
        about="SQLite finds its tables sound (quick_check).",
        find=_checked("quick_check"),
        subject="table {table}",
        sentence="the table {table} is damaged: {findings}; stop all nodes, keep a copy of the file, and restore it "
        "from a backup",
    ),
    OfStore(
        name="index-damaged",
        about="SQLite finds that its indexes fit their tables (integrity_check; only with --deep).",
        find=_checked("integrity_check"),
        subject="table {table}",
        sentence="an index of the table {table} is damaged: {findings}; stop all nodes, keep a copy of the file, and "
        "restore it from a backup, or rebuild its indexes (sqlite3 FILE 'reindex {table}') and examine it again",
        deep=True,
    ),
    OfStore(
        name="wal-long",
        about="The write-ahead log is taken up into the database before it gets long.",
        find=_long_wal,
        subject="file {path}",
        sentence="the write-ahead log has {gib} GiB, so somebody keeps a snapshot open; 'lsof {database}' shows who: "
        "end what is not a node",
    ),
    OfStore(
        name="disk-full",
        about="There is room on the disk of the database.",
        find=_full,
        subject="folder {path}",
        sentence="the disk that holds {path} has {mib} MiB left; make room before the store cannot write any more "
        "('spinney keep' removes what is old)",
    ),
    OfStore(
        name="file-open-to-others",
        about="The database and its run-time folder are their owner's alone.",
        find=_open_to_others,
        subject="file {path}",
        sentence="others than its owner have rights on {path} (mode {mode} instead of {should} at most): parameters "
        "and results could be read, or changed",
        offer="takes the rights away",
        mend=_close,
    ),
    OfStore(
        name="file-of-somebody-else",
        about="The database belongs to whoever runs the nodes.",
        find=_foreign,
        subject="file {path}",
        sentence="{path} belongs to user {owner}, but you are user {us}; run Spinney as its owner, or change the owner",
    ),
    OfStore(
        name="transaction-open",
        about="On a server no transaction stays open for long: it keeps dead rows, through which every claim must go.",
        find=_held_open,
        of="server",
        subject="server",
        sentence="{who} has been open for {minutes} min, and until it ends claims cost more with every job; let it "
        "finish, or end it ({mend})",
    ),
    OfStore(
        name=DECLARATIONS,
        about="What job types and queues are can be read.",
        find=_unreadable,
        of="any",
        subject="{kind} {name}",
        sentence="{finding}",
    ),
    OfStore(
        name="audit-broken",
        about="The chain of the audit is whole.",
        find=_broken_chain,
        of="any",
        subject="audit",
        sentence="{finding}",
    ),
)
