"""Importing services from CSV, JSON and catalogues, again and again.

Each row is one service with its entity. A service is the one that has the row's ``gid``, else its ``uuid``, else the
same URI with the same entity; otherwise it is new. What a file no longer names is retired, unless the caller says
that the file is only a part, or a row is wrong: a typing error must not retire a service.

Any text may be the URI of a service: the owner has to correct a broken one, so it is for a check to report, and its row
must not hold up the retirement of others.

A service belongs to the source that brought it in: a catalogue, or the files. A source retires its own services only.
A file takes over a service that a catalogue brought in; a catalogue changes no service of another source.

``read`` and ``parse`` make rows and touch no table; ``run`` writes them in one transaction, which a crash leaves undone
as a whole."""

import csv
import io
import re
import secrets
import time
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
from sqlalchemy import Connection, func, insert, select, update

from spinney.apps.monitor.inventory.schema import entities, services
from spinney.errors import UsageError
from spinney.reports.addresses import mailbox
from spinney.tables.database import Database

FILE_MAX = 200 << 20
"""The most bytes of a file, which is read into memory as a whole."""
TEXT_MAX = 2000
"""The most characters of one field."""
_TYPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,19}")
LANGUAGE = re.compile(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*")
"""The form of a language's tag (RFC 5646, 2.1)."""
_REQUIRED = ("entity", "type", "uri")
"""The columns without which a row says nothing; ``_OPTIONAL`` are all others that are read."""
_OPTIONAL = ("gid", "eid", "uuid", "version", "description", "contact", "email", "language")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One service, as a file or a catalogue names it."""

    place: str
    """Where it is, for people: ``line 3``, ``item 3``."""
    entity: str
    type: str
    uri: str
    gid: int | None = None
    """Its number, which clients and tasks of the old server know; None: the row names none."""
    eid: int | None = None
    """The number of the entity, which clients of the old server know; None: the row names none."""
    uuid: str = ""
    """The UUID in the standard form, in lower case; empty: the row names none."""
    version: str = ""
    description: str = ""
    contact: str = ""
    """Details of the entity, as ``email`` and ``language``; an empty one leaves what is stored."""
    email: str = ""
    language: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongRow:
    """A row that cannot be imported."""

    sentence: str
    """Where it is, and what is wrong."""
    uuid: str = ""
    """The service that it is about, where that is certain; it is not retired."""


@dataclass(slots=True, kw_only=True)
class Imported:
    """What an import has done: how many services it added, changed, found unchanged and retired, and the wrong rows."""

    added: int = 0
    changed: int = 0
    same: int = 0
    retired: int = 0
    wrong: list[str] = field(default_factory=list)
    """A sentence for each wrong row, with its place."""


def read(path: Path) -> Iterator[Row | WrongRow]:
    """Yield the rows of a file, ``.json`` or else CSV; rows that cannot be imported come as ``WrongRow`` in
    their places. Nothing is read before the first row is fetched. Raises UsageError for a file that cannot be
    read as a whole: it is missing, larger than ``FILE_MAX``, not UTF-8, no list, or without a required
    column."""
    try:
        if path.stat().st_size > FILE_MAX:
            raise UsageError(f"{path} is larger than {FILE_MAX:,} bytes; import it in parts, with --part")
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}; name another file") from None
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{path} is not UTF-8 at byte {error.start}; save it as CSV UTF-8, or convert it"
        ) from None
    yield from (_json_rows if path.suffix.lower() == ".json" else _csv_rows)(path, text)


def run(
    database: Database, rows: Iterable[Row | WrongRow], *, is_part: bool = False, catalogue: str = ""
) -> Imported:
    """Write the rows in one transaction, retire what they do not name, and return what was done.

    ``catalogue``: the name of the catalogue that they are from; empty: they are from a file. ``is_part``: the
    rows are only a part, so that nothing is retired. Nothing is retired either when a row of a file is wrong,
    or when the rows name no service at all. All rows are fetched before the transaction begins, and an error
    that fetching raises leaves the tables unchanged. Two rows that mean one service are not both written: the
    later one counts as wrong."""
    imported = Imported()
    now_us = time.time_ns() // 1000
    # All are read before the transaction, which holds up others.
    ordered = sorted(rows, key=_turn)
    eids = {row.entity: row.eid for row in reversed(ordered) if isinstance(row, Row) and row.eid is not None}
    with database.write() as connection:
        if database.dialect == "postgresql":  # two imports at once would give one number twice
            connection.exec_driver_sql(f"lock table {entities.name} in share row exclusive mode")
        writer = _Writer(connection, now_us, imported, catalogue, eids)
        advanced = False
        for row in ordered:
            if isinstance(row, WrongRow):
                imported.wrong.append(row.sentence)
                continue
            if row.gid is None and not advanced:
                writer.advance_numbers(database.dialect)
                advanced = True
            writer.write(row)
        # Somebody mends a wrong line of a file; a catalogue may have wrong records for ever.
        if not is_part and writer.named and (catalogue or not imported.wrong):
            writer.retire({row.uuid for row in ordered if isinstance(row, WrongRow)})
    return imported


def _turn(row: Row | WrongRow) -> int:
    """Return the turn in which a row is written. Rows with a number come first, so that no new service takes a number
    that a later row names; those without a UUID last, so that none is identified by a URI from which a later row moves
    its service."""
    if isinstance(row, WrongRow):
        return 2
    return 0 if row.gid is not None else 1 if row.uuid else 2


def parse(place: str, fields: Mapping[Any, Any]) -> Row | WrongRow:
    """Return a row with these fields; where one is wrong, what is wrong with it. Runs of white space become
    one space. ``place``: where the row is, which begins the sentence. Columns that are not known are
    ignored."""
    # Cells of spreadsheets and texts of catalogues have line breaks and no-break spaces in them.
    values = {name: " ".join(str(fields.get(name) or "").split()) for name in (*_REQUIRED, *_OPTIONAL)}
    try:
        _check(fields, values)
    except ValueError as problem:
        return WrongRow(sentence=f"{place}: {problem}", uuid=values["uuid"])
    gid, eid = (int(values.pop(name) or 0) or None for name in ("gid", "eid"))
    values["uuid"] = str(uuid.UUID(values["uuid"])) if values["uuid"] else ""
    return Row(place=place, gid=gid, eid=eid, **values)


# --- files ------------------------------------------------------------------------------------


def _csv_rows(path: Path, text: str) -> Iterator[Row | WrongRow]:
    """Yield the rows of CSV text. The delimiter is that of comma, semicolon and tab of which the first line
    has most: spreadsheets write the one of their country."""
    first = text.partition("\n")[0]
    delimiter = max((",", ";", "\t"), key=first.count)
    lines = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        lines.fieldnames = [name.strip().lower() for name in lines.fieldnames or ()]
        _require_columns(path, lines.fieldnames)
        for fields in lines:
            if any(fields.values()):  # spreadsheets write rows of nothing but delimiters
                yield parse(f"line {lines.line_num}", fields)
    except csv.Error as error:
        raise UsageError(f"{path}, line {lines.line_num}: {error}; correct it there") from None


def _json_rows(path: Path, text: str) -> Iterator[Row | WrongRow]:
    """Yield the rows of JSON text: a list of objects, or an object with such a list as ``services``."""
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise UsageError(f"{path} is not valid JSON: {error}; correct it") from None
    rows = document.get("services") if isinstance(document, dict) else document
    if not isinstance(rows, list):
        raise UsageError(f"{path} must be a JSON list of services, or an object with a list 'services'")
    for number, fields in enumerate(rows, 1):
        if isinstance(fields, dict):
            texts = {name: "" if value is None else str(value) for name, value in fields.items()}
            yield parse(f"item {number}", texts)
        else:
            needed = ", ".join(_REQUIRED)
            yield WrongRow(sentence=f"item {number}: it is no object; write an object with {needed}")


def _require_columns(path: Path, names: Sequence[str]) -> None:
    """Raise UsageError for a file whose first line lacks a required column, which names all columns."""
    if missing := [name for name in _REQUIRED if name not in names]:
        raise UsageError(
            f"{path} has no column {missing[0]!r}; its first line must name the columns: {', '.join(_REQUIRED)}, "
            f"and optionally {', '.join(_OPTIONAL)}"
        )


def _check(fields: Mapping[Any, Any], values: Mapping[str, str]) -> None:
    """Raise ValueError with the first fault of a row; its message goes on after the row's place."""
    if None in fields:
        raise ValueError("it has more fields than the first line names; quote texts with commas in them")
    for name in _REQUIRED:
        if not values[name]:
            raise ValueError(f"{name} is missing")
    for name, value in values.items():
        if len(value) > TEXT_MAX or not value.isprintable():
            raise ValueError(f"{name} must be one line of at most {TEXT_MAX:,} printable characters")
    for name in ("gid", "eid"):
        number = values[name]
        if number and not (number.isascii() and number.isdigit() and 0 < int(number) < 2**31):
            raise ValueError(f"{name} must be a whole number from 1, not {number!r}")
    if values["uuid"]:
        uuid.UUID(values["uuid"])  # its ValueError says what is wrong
    if not _TYPE.fullmatch(values["type"]):
        raise ValueError(f"type must be a word of up to 20 letters and digits, not {values['type'][:40]!r}")
    if "|" in values["version"]:
        raise ValueError("version must not contain '|', which tasks take for the end of the field")
    if values["language"] and not LANGUAGE.fullmatch(values["language"]):
        raise ValueError(f"language must be a tag such as 'pt' or 'pt-BR', not {values['language'][:40]!r}")
    if values["email"]:
        mailbox(values["email"])


# --- tables -----------------------------------------------------------------------------------


class _Writer:
    """Writes rows within one transaction. All entities and services are read once, at the beginning, since a
    query for each row would take far longer; what is written is entered there, too."""

    def __init__(
        self,
        connection: Connection,
        now_us: int,
        imported: Imported,
        catalogue: str,
        eids: Mapping[str, int],
    ) -> None:
        """``eids``: the numbers of entities that rows name, by the names of the entities. A new entity has its own from
        the first of its rows on, and no other gets it."""
        self._connection, self._now_us, self._imported = connection, now_us, imported
        self._catalogue, self._named_eids = catalogue, eids
        self.named: dict[int, str] = {}
        """The places of the rows by the numbers of their services."""
        self._named_uuids: dict[str, str] = {}
        self._entities = {
            row.description: row._asdict() for row in connection.execute(select(entities)).all()
        }
        self._eids = {entity["eid"] for entity in self._entities.values()}
        self._next_eid = max((*self._eids, *eids.values()), default=0) + 1
        self._services = {row.gid: row._asdict() for row in connection.execute(select(services)).all()}
        # Present services come last, so that retired ones do not hide them.
        rows = sorted(self._services.values(), key=lambda row: row["retired_us"] is None)
        self._by_uuid = {row["uuid"]: row["gid"] for row in rows}
        self._by_uri = {(row["eid"], row["uri"]): row["gid"] for row in rows}

    def write(self, row: Row) -> None:
        """Write one service and its entity. A row that means the same service as an earlier one is entered
        among the wrong ones. A catalogue's row about a service of another source changes nothing, but keeps
        that service's number from being used twice."""
        gid = self._number(row)
        other = self._named_uuids.get(row.uuid) or self.named.get(gid or 0)
        same = f"it is the same service as {other}; leave one of them out" if other else ""
        if problem := same or self._wrong_eid(row):
            self._imported.wrong.append(f"{row.place}: {problem}")
            return
        if row.uuid:
            self._named_uuids[row.uuid] = row.place
        before = self._services.get(gid or 0)
        if before and before["retired_us"] is None and self._catalogue not in ("", before["catalogue"]):
            self.named[before["gid"]] = row.place
            self._imported.same += 1
            return
        eid = self._entity(row)
        values = {
            "eid": eid,
            "type": row.type.upper(),
            "version": row.version,
            "uri": row.uri,
            "description": row.description,
            "retired_us": None,
            "catalogue": self._catalogue,
        }
        if gid is None or before is None:
            new = {**values, "uuid": row.uuid or str(uuid.uuid4()), "added_us": self._now_us}
            if gid is not None:
                new["gid"] = gid
            inserted = self._connection.execute(
                insert(services).values(new).returning(services.c.gid)
            ).scalar_one()
            self.named[inserted] = row.place
            self._by_uuid[new["uuid"]] = inserted
            self._by_uri.setdefault((eid, row.uri), inserted)
            self._imported.added += 1
            return
        if row.uuid:
            values["uuid"] = row.uuid
        self.named[gid] = row.place
        if all(before[name] == value for name, value in values.items()):
            self._imported.same += 1
            return
        self._connection.execute(update(services).where(services.c.gid == gid).values(values))
        if self._by_uri.get((before["eid"], before["uri"])) == gid:
            del self._by_uri[before["eid"], before["uri"]]
        self._by_uri.setdefault((eid, row.uri), gid)
        self._imported.changed += 1

    def advance_numbers(self, dialect: str) -> None:
        """Let new numbers begin behind those that rows named. PostgreSQL's sequence does not notice a number
        that an INSERT gives; SQLite takes the largest number plus one by itself."""
        if dialect == "postgresql":
            next_number = select(func.coalesce(func.max(services.c.gid), 0) + 1).scalar_subquery()
            sequence = func.pg_get_serial_sequence("mon_services", "gid")
            self._connection.execute(select(func.setval(sequence, next_number, False)))

    def retire(self, kept: Collection[str]) -> None:
        """Retire the services of this source that no row named, but not those with these UUIDs."""
        retired = [
            gid
            for gid, row in self._services.items()
            if gid not in self.named
            and row["retired_us"] is None
            and row["catalogue"] == self._catalogue
            and row["uuid"] not in kept
        ]
        for gid in retired:
            self._connection.execute(
                update(services).where(services.c.gid == gid).values(retired_us=self._now_us)
            )
        self._imported.retired = len(retired)

    def _number(self, row: Row) -> int | None:
        """Return the number of the service that a row means; None: it is a new one."""
        if row.gid is not None:
            return row.gid
        if row.uuid:
            return self._by_uuid.get(row.uuid)
        entity = self._entities.get(row.entity)
        return None if entity is None else self._by_uri.get((entity["eid"], row.uri))

    def _wrong_eid(self, row: Row) -> str:
        """Return why the entity cannot have the number that rows name, as clients may know either by another one;
        empty: it can, or they name none."""
        entity, named = self._entities.get(row.entity), self._named_eids.get(row.entity)
        if entity is None:
            return f"eid {named} is another entity's; correct it" if named in self._eids else ""
        if row.eid in (None, entity["eid"]):
            return ""
        return f"{row.entity!r} has the eid {entity['eid']}, and not {row.eid}; correct it"

    def _entity(self, row: Row) -> int:
        """Return the number of the row's entity, which is made where it is missing. A file changes the
        entity's details; a catalogue does not, because its records name whoever wrote them."""
        details = {
            name: getattr(row, name) for name in ("contact", "email", "language") if getattr(row, name)
        }
        entity = self._entities.get(row.entity)
        if entity is None:
            eid, key = self._named_eids.get(row.entity) or self._next_eid, secrets.token_urlsafe(18)
            values = {"eid": eid, "description": row.entity, "page_key": key, **details}
            self._connection.execute(insert(entities).values(values))
            self._entities[row.entity] = {"contact": "", "email": "", "language": "en", **values}
            self._eids.add(eid)
            self._next_eid = max(self._next_eid, eid + 1)
            return eid
        if not self._catalogue and any(entity[name] != value for name, value in details.items()):
            self._connection.execute(update(entities).where(entities.c.eid == entity["eid"]).values(details))
            entity.update(details)
        return int(entity["eid"])
