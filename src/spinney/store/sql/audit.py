"""The audit: who did what to how many jobs, each entry chained to the one before.

An operation adds its entry in its own transaction (``note``), so that there is none without the change, and
no change without it. Numbers have no gaps, and entries are never changed or removed; triggers of the database
refuse that (``schema.statements``), and ``verify`` finds what was done in spite of them, when somebody has
kept a head."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import orjson

from spinney.model.errors import AuditBroken, UsageError
from spinney.model.operators.audits import BEGINNING, AuditCall, AuditEntry, details, digest, head
from spinney.model.rights.actor import Actor
from spinney.store.sql.connection.database import Tx, list_text
from spinney.store.sql.records import RowMap, insert
from spinney.store.sql.session import SqlPart

_ENTRIES = RowMap(AuditEntry, "audit")
_BEYOND = 2**62
"""Greater than every number of an entry."""
_LAST = "select seq, link from audit where seq = (select max(seq) from audit)"
_PAGE = 5_000
_STEPS = 20
"""The jobs of how many steps of a call are put together."""
_JOBS = 100
"""How many of them a call names at most."""
_NUMBER = re.compile(r"[0-9]{1,18}")
_BACKUP = "compare the store with a backup before going on"


def note(tx: Tx, now_us: int, actor: Actor, verb: str, details: Mapping[str, Any], count: int) -> None:
    """Append an entry, in the transaction of the operation itself.

    ``details``: the arguments of the verb, stored as JSON with sorted keys, because the digest is over that
    text. ``count``: how many jobs (or other things) this transaction changed. Entries of concurrent
    operations cannot take the same number, since there is one writer at a time."""
    seq, before = tx.one(_LAST) or (0, BEGINNING)
    entry = AuditEntry(
        seq=seq + 1,
        at_us=now_us,
        by=actor.by,
        verb=verb,
        what=_text(details),
        count=count,
        reason=actor.reason,
        call=actor.call,
    )
    insert(tx, "audit", asdict(entry) | {"link": digest(before, entry)})


class SqlAudit(SqlPart):
    """The audit: an append-only chain of entries; see ``spinney.model.operators.audits``."""

    def enter(
        self, verb: str, details: Mapping[str, Any], actor: Actor, *, count: int = 0, now_us: int
    ) -> None:
        """Add an entry for something that changed nothing in the store: a refusal. (Methods that change something add
        their own entries.) As no entry is ever removed, a caller that others can trigger at will has to combine its
        entries first; see ``spinney.service.refusal_log``."""
        with self._session.write() as tx:
            note(tx, now_us, actor, verb, details, count)

    def entries(
        self,
        *,
        after: int = 0,
        limit: int = 1000,
        newest: bool = False,
        verb: str | None = None,
        by: str | None = None,
    ) -> Sequence[tuple[AuditEntry, str]]:
        """Return entries with their links, by number, after ``after``; with ``newest`` in descending order, from below
        ``after`` (0: from the last). ``verb``, ``by``: only such entries."""
        with self._session.look() as tx:
            return _entries(tx, "", after, limit, newest, verb, by)

    def calls(
        self,
        *,
        after: int = 0,
        limit: int = 1000,
        newest: bool = False,
        verb: str | None = None,
        by: str | None = None,
    ) -> Sequence[AuditCall]:
        """Return entries as ``entries`` does, but with the steps of each call combined, by the number of its first
        entry: its details name the jobs of the first steps, at most ``_JOBS``."""
        # The first entry of each call and verb; a call may have entries of several verbs.
        first = (
            "and not exists (select 1 from audit b where b.call = audit.call and b.seq < audit.seq "
            "and b.verb = audit.verb)"
        )
        with self._session.look() as tx:
            firsts = [entry for entry, _ in _entries(tx, first, after, limit, newest, verb, by)]
            steps = tx.all(
                "select call, verb, max(seq), max(at_us), sum(count), count(*) from audit "
                "where call in (select j.value from json_each(?) /* text */ j) group by call, verb",
                (list_text({e.call for e in firsts}),),
            )
            totals = {(call, verb_): rest for call, verb_, *rest in steps}
            calls = [_call(entry, *totals[entry.call, entry.verb]) for entry in firsts]
            return [_with_jobs(tx, call) if call.steps > 1 else call for call in calls]

    def head(self) -> str:
        """Return ``seq:link`` of the last entry, ``0:000…`` when there is none."""
        with self._session.look() as tx:
            return head(*(tx.one(_LAST) or (0, BEGINNING)))

    def verify(self, head: str | None = None) -> int:
        """Recompute the whole chain, and return how many entries are proven.

        ``head``: a head that was kept elsewhere (``head``). Without one only entries that were changed or
        removed in the middle are found: a chain that was cut off, or computed anew as a whole, is consistent
        in itself. It is read page by page, so entries that are added meanwhile may or may not be counted.

        Raises AuditBroken with the first entry that does not fit, or when ``head`` is not in the chain;
        UsageError for a text that is no head.
        """
        proven = _parsed(head)
        link, seq = BEGINNING, 0
        self._require_nothing_before_the_first()
        _compare(proven, seq, link)
        while page := self.entries(after=seq, limit=_PAGE):
            for entry, stored_link in page:
                if entry.seq != seq + 1:
                    raise AuditBroken(f"entry {seq + 1} of the audit is missing; {_BACKUP}")
                link, seq = _link(link, entry), entry.seq
                if link != stored_link:
                    raise AuditBroken(
                        f"entry {seq} of the audit has been changed, or one before it was cut out; {_BACKUP}"
                    )
                _compare(proven, seq, link)
        if proven is not None and proven[0] > seq:
            raise AuditBroken(
                f"the head that was kept is of entry {proven[0]}, but the audit ends with entry {seq}: it was cut "
                f"off; {_BACKUP}"
            )
        return seq

    def _require_nothing_before_the_first(self) -> None:
        """Raise AuditBroken for entries before the first number of the chain, which the chain does not prove."""
        with self._session.look() as tx:
            lowest = tx.value("select min(seq) from audit")
        if lowest is not None and lowest < 1:
            raise AuditBroken(f"entry {lowest} of the audit was put in: the first is entry 1; {_BACKUP}")


def _link(before: str, entry: AuditEntry) -> str:
    """Return the digest of an entry as it is stored; empty, which fits nothing, when it has a value of a
    wrong type."""
    try:
        return digest(before, entry)
    except TypeError:  # it contains bytes, which ``note`` never writes
        return ""


def _compare(proven: tuple[int, str] | None, seq: int, link: str) -> None:
    """Raise AuditBroken when this is the entry of the kept head, and its digest has changed."""
    if proven is not None and proven[0] == seq and proven[1] != link:
        raise AuditBroken(
            f"the audit up to entry {seq} is not the one whose head was kept: it was rewritten; {_BACKUP}"
        )


def _entries(
    tx: Tx, condition: str, after: int, limit: int, newest: bool, verb: str | None, by: str | None
) -> list[tuple[AuditEntry, str]]:
    """Return such entries with their links; see ``SqlAudit.entries``."""
    if newest:
        side, order, after = "<", "desc", after or _BEYOND
    else:
        side, order = ">", "asc"
    rows = tx.all(
        f"select {_ENTRIES.columns}, link from audit where seq {side} ?1 and (cast(?2 as text) is null or verb = ?2) "
        f"and (cast(?3 as text) is null or by = ?3) {condition} order by seq {order} limit ?4",
        (after, verb, by, limit),
    )
    return [(_ENTRIES.read(row), row[-1]) for row in rows]


def _with_jobs(tx: Tx, line: AuditCall) -> AuditCall:
    """Return a call of several steps with the jobs of further ones in its details, if the first names jobs."""
    what = details(line.what)
    if not isinstance(what, dict) or not isinstance(what.get("jobs"), list):
        return line
    texts = tx.column(
        "select what from audit where call = ? and verb = ? order by seq limit ?",
        (line.call, line.verb, _STEPS),
    )
    steps = [step for step in map(details, texts) if isinstance(step, dict)]
    jobs = [job for step in steps if isinstance(step.get("jobs"), list) for job in step["jobs"]]
    return replace(line, what=_text(what | {"jobs": jobs[:_JOBS]}))


def _text(details: Mapping[str, Any]) -> str:
    return orjson.dumps(details, option=orjson.OPT_SORT_KEYS).decode()


def _call(first: AuditEntry, last: int, until_us: int, count: int, steps: int) -> AuditCall:
    return AuditCall(
        first=first.seq,
        last=last,
        at_us=first.at_us,
        until_us=until_us,
        by=first.by,
        verb=first.verb,
        what=first.what,
        count=count,
        steps=steps,
        reason=first.reason,
        call=first.call,
    )


def _parsed(head: str | None) -> tuple[int, str] | None:
    """Return the number and the digest of a head. Raises UsageError for any other text."""
    if head is None:
        return None
    number, _, link = head.partition(":")
    if not _NUMBER.fullmatch(number) or len(link) != len(BEGINNING) or set(link) - set("0123456789abcdef"):
        raise UsageError(
            f"{head!r} is no head of an audit; copy it whole, as 'spinney audit' prints it: 42:9f86d0…"
        )
    return int(number), link
