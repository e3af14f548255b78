"""Parties that run external stages: nodes with an owner, who speaks for them from outside.

A party that joins again gets its old row of ``nodes``, so that rows do not pile up and its history bears its name;
``joins`` tells the joinings apart. What it had before has been taken back by then (``Store.recover``).
"""

from collections.abc import Sequence
from typing import Any

import orjson

from spinney.model.errors import Refused, UsageError
from spinney.model.external import Given, NoSuchParty, Party, PartyGone
from spinney.model.jobs import NodeInfo
from spinney.model.names import PARTY_PREFIX
from spinney.model.operators import Author
from spinney.model.types import Isolation
from spinney.model.unreadable import json_list
from spinney.stores.sql import nodes
from spinney.stores.sql.auditing import note
from spinney.stores.sql.database import SCHEMA_VERSION, Tx
from spinney.stores.sql.session import Session

_PARTY = (
    "select n.id, n.name, p.owner, p.joins, n.slots, p.lease_s, p.lanes, n.serves, n.state from nodes n "
    "join parties p on p.node_id = n.id"
)
_WISHED = (
    "(select min(w.at_us) from wishes w where w.job_id = l.job_id or (w.tree = 1 "
    "and jobs.lineage > w.lineage || '.' and jobs.lineage < w.lineage || '/'))"
)


class SqlParties:
    """``spinney.stores.operators.Parties`` on SQL."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def all(self) -> Sequence[Party]:
        with self._session.look() as tx:
            return [_party(row) for row in tx.all(f"{_PARTY} where n.state <> 'left' order by n.id")]

    def named(self, name: str) -> Party | None:
        with self._session.look() as tx:
            return _named(tx, name)

    def join(self, party: Party, author: Author, *, version: str, now_us: int) -> Party:
        with self._session.write() as tx:
            self._require_shared_folders()
            self._require_external(party)
            before = _named(tx, party.name)
            if before is not None and before.state != "left":
                raise Refused(
                    f"party {party.name} has joined just now; if that was another, give this one another name"
                )
            if before is None:
                node_id, joins = nodes.join(tx, _info(party, version, now_us), 0, now_us), 1
                tx.run(
                    "insert into parties (node_id, owner, joins, lease_s, lanes) values (?, ?, 1, ?, ?)",
                    (node_id, party.owner, party.lease_s, _lanes(party)),
                )
            else:
                node_id, joins = before.id, before.joins + 1
                self._revive(tx, before, party, version, now_us)
            note(
                tx, now_us, author, "join", {"party": party.name, "lanes": [list(x) for x in party.lanes]}, 1
            )
            return _found(tx, node_id, joins)

    def _revive(self, tx: Tx, before: Party, party: Party, version: str, now_us: int) -> None:
        if tx.value("select 1 from leases where node_id = ? limit 1", (before.id,)) is not None:
            raise Refused(
                f"what party {party.name} had is still being taken back; let it join again in a moment"
            )
        tx.run(
            "update nodes set state = 'active', beat = beat + 1, slots = ?, started_us = ?, seen_us = ?, version = ?, "
            "types = ?, serves = ?, schema_version = ?, trouble = null where id = ?",
            (
                party.slots,
                now_us,
                now_us,
                version,
                orjson.dumps(list(_types(party))).decode(),
                None if party.serves.all else orjson.dumps(party.serves.to_json()).decode(),
                SCHEMA_VERSION,
                before.id,
            ),
        )
        tx.run(
            "update parties set owner = ?, joins = joins + 1, lease_s = ?, lanes = ? where node_id = ?",
            (party.owner, party.lease_s, _lanes(party), before.id),
        )
        if party.serves != before.serves:
            self._session.registry.touch(tx)  # which lanes are closed to it is remembered by its number

    def _require_shared_folders(self) -> None:
        if self._session.registry.homes.local:
            raise Refused(
                "the folders of this store are local, and a party has none: a job would lose its folder by it; run "
                "external stages with a store of shared folders"
            )

    def _require_external(self, party: Party) -> None:
        for type_, stage in party.lanes:
            found = self._session.registry.type(type_).stage(stage)
            if found is None or found.isolation is not Isolation.EXTERNAL:
                raise UsageError(
                    f"job type {type_!r} has no external stage {stage!r}; name one that its application declares so"
                )

    def find(self, node_id: int, joins: int, owner: str) -> Party:
        with self._session.look() as tx:
            found = _found(tx, node_id, None)
            if found.owner != owner:
                raise NoSuchParty(f"{node_id}-{joins}")
            if found.joins != joins:
                raise PartyGone(
                    f"party {found.name} has joined again since; what it had before goes on elsewhere, so stop that"
                )
            return found

    def given(self, node_id: int) -> Sequence[Given]:
        with self._session.look() as tx:
            found = tx.all(
                f"select l.job_id, l.fence, l.slot, l.lane, coalesce(l.running_us, l.claimed_us), {_WISHED} "
                "from leases l join jobs on jobs.id = l.job_id where l.node_id = ? order by l.fence",
                (node_id,),
            )
            lanes = self._session.registry.lanes
            return [
                Given(
                    job_id=job_id,
                    fence=fence,
                    slot=slot,
                    type=lanes[lane].type,
                    stage=lanes[lane].stage,
                    running_us=running_us,
                    wish_us=wish_us,
                )
                for job_id, fence, slot, lane, running_us, wish_us in found
            ]

    def lapse(self, node_id: int, beat: int, *, now_us: int) -> bool:
        with self._session.write() as tx:
            state, now = tx.one("select state, beat from nodes where id = ?", (node_id,)) or ("left", beat)
            if state != "left" and now == beat:
                nodes.update(tx, node_id, "left", now_us)
            return bool(state == "left" or now == beat)

    def left(self, party: Party, author: Author, *, now_us: int) -> None:
        with self._session.write() as tx:
            nodes.update(tx, party.id, "left", now_us)
            note(tx, now_us, author, "leave", {"party": party.name}, 1)


def _party(row: Sequence[Any]) -> Party:
    id_, name, owner, joins, slots, lease_s, lanes, serves, state = row
    pairs = tuple(
        (lane[0], lane[1]) for lane in json_list(lanes) if isinstance(lane, list) and len(lane) == 2
    )
    return Party(
        id=id_,
        name=_bare(str(name)),
        owner=owner,
        joins=joins,
        slots=slots,
        lease_s=lease_s,
        lanes=pairs,  # columns of this module, in its order
        serves=nodes.serves(serves),
        state=state,
    )


def _bare(name: str) -> str:
    return name.removeprefix(PARTY_PREFIX)


def _found(tx: Tx, node_id: int, joins: int | None) -> Party:
    row = tx.one(f"{_PARTY} where n.id = ?", (node_id,))
    if row is None:
        raise NoSuchParty(f"{node_id}-{joins or 0}")
    return _party(row)


def _named(tx: Tx, name: str) -> Party | None:
    row = tx.one(f"{_PARTY} where n.name = ?", (PARTY_PREFIX + name,))
    return None if row is None else _party(row)


def _types(party: Party) -> Sequence[str]:
    """What it runs, as others see it: no type's name has a slash, so that none takes it for a node that knows one."""
    return tuple(f"{type_}/{stage}" for type_, stage in party.lanes)


def _lanes(party: Party) -> str:
    return orjson.dumps(party.lanes).decode()


def _info(party: Party, version: str, now_us: int) -> NodeInfo:
    return NodeInfo(
        id=0,
        name=PARTY_PREFIX + party.name,
        boot_id="",
        host=party.owner,
        pid=0,
        slots=party.slots,
        state="active",
        beat=0,
        started_us=now_us,
        seen_us=now_us,
        version=version,
        types=tuple(_types(party)),
        serves=party.serves,
    )
