"""Balancing: the routes of its settings, and the loop that applies them every 30 seconds.

The loop writes the field ``threads`` of queues, and nothing else of them; nodes read it before they claim. It runs in a
thread of the server; two servers that balance compute the same limits."""

import logging
import threading
import time
from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter
from pymongo.errors import PyMongoError
from starlette.responses import Response

from spinney.bridges.disbatch.database import BALANCE, QUEUES
from spinney.bridges.disbatch.interface.balance import KEY, Load, limits, maximum
from spinney.bridges.disbatch.interface.parameters import whole
from spinney.bridges.disbatch.interface.queues import count_tasks
from spinney.bridges.disbatch.interface.service import Params, Service, Serving, User
from spinney.bridges.disbatch.interface.wire import BadRequest
from spinney.bridges.disbatch.limits import number

router = APIRouter()
log = logging.getLogger(__name__)
EVERY_S = 30.0
_FIELDS = {"max_tasks", "queues"}
_BY = "balance"


@router.get("/balance")
def show_balance(service: Serving) -> Response:
    """Return the settings of balancing, and what it last did."""
    balance = service.db[BALANCE].find_one({}, {"_id": 0}) or {"notice": "balance document not found"}
    settings = {
        "enabled": service.settings.balance,
        "pretend": service.settings.pretend,
        "log": True,
        "verbose": False,
    }
    names = sorted(str(name) for name in service.queues.distinct("name"))
    return service.wire.reply({**balance, "known_queues": names, "settings": settings}, pretty=True)


@router.post("/balance")
def set_balance(parameters: Params, service: Serving, user: User) -> Response:
    """Replace the settings by which limits of queues are balanced. Raises BadRequest for invalid ones."""
    changes = _checked(parameters.fields, set(service.queues.distinct("name")))
    service.db[BALANCE].update_one({}, {"$set": changes}, upsert=True)
    service.changed(BALANCE, service.db[BALANCE].find_one(), user)
    return service.wire.reply({"status": "success: queuebalance modified"})


def run(service: Service, stop: threading.Event) -> None:
    """Balance every 30 seconds until ``stop`` is set, also after errors of the database."""
    while not stop.is_set():
        try:
            balance_once(service, datetime.now().astimezone())
        except PyMongoError as error:
            log.warning("limits are not balanced now: %s; trying again in %d s", error, EVERY_S)
        stop.wait(EVERY_S)


def balance_once(service: Service, now: datetime) -> None:
    """Write the limits of queues for this local time, and how that went, into the document of balancing,
    where monitoring finds it. A wrong document is an outcome, too (``CRITICAL``). Raises the errors of the
    driver."""
    documents = list(service.db[BALANCE].find().limit(2))
    if not documents:
        return  # balancing was never set up, which monitoring reports
    balance = documents[0]
    try:
        if len(documents) > 1:
            raise ValueError("the collection balance must have one document, and has several")
        status, message = _apply(service, balance, now)
    except (ValueError, OverflowError, TypeError, KeyError, AttributeError) as error:
        status, message = "CRITICAL", f"QueueBalance: {error}"
    outcome = {"timestamp": int(now.timestamp()), "status": status, "message": message}
    service.db[BALANCE].update_one({"_id": balance["_id"]}, {"$set": outcome})
    if (status, message) != (balance.get("status"), balance.get("message")):
        log.log(logging.INFO if status == "OK" else logging.WARNING, "%s", message)
        service.changed(BALANCE, {**balance, **outcome}, _BY)


def _apply(service: Service, balance: dict[str, Any], now: datetime) -> tuple[str, str]:
    """Write the limits that differ, and return a status and a sentence about it."""
    disabled = number(balance.get("disabled"))  # the releases store what they are sent, text or number
    if now.timestamp() < disabled:
        until = datetime.fromtimestamp(disabled, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        return "OK", f"QueueBalance disabled until {until}"
    most = maximum(balance["max_tasks"], now)
    if most is None:
        return "WARNING", "QueueBalance has no max_tasks, and leaves all limits as they are"
    names = [name for group in balance["queues"] for name in group]
    stored = {queue["name"]: queue for queue in service.queues.find({"name": {"$in": names}})}
    counts = count_tasks(service, [queue["_id"] for queue in stored.values()])
    loads = {
        name: Load(name, counts[queue["_id"]]["queued"], counts[queue["_id"]]["running"])
        for name, queue in stored.items()
    }
    groups = [[loads[name] for name in group if name in loads] for group in balance["queues"]]
    for name, threads in limits(groups, int(most)).items():
        queue = stored[name]
        if queue.get("threads") == threads:
            continue
        pretended = "(pretended) " if service.settings.pretend else ""
        log.info("%slimit of %s: %s -> %d", pretended, name, queue.get("threads"), threads)
        if not service.settings.pretend:
            # Not by its name: somebody may rename it, or set the limit, between the read and this write.
            same = {"_id": queue["_id"], "threads": queue.get("threads")}
            if service.queues.update_one(same, {"$set": {"threads": threads}}).modified_count:
                service.changed(QUEUES, {**queue, "threads": threads}, _BY)
    missing = sorted(set(names) - stored.keys())
    if missing:
        return "WARNING", f"QueueBalance is running, but knows no queue {', '.join(missing)}"
    return "OK", "QueueBalance is running"


def _checked(fields: Any, queue_names: set[str]) -> dict[str, Any]:
    """Return settings as they are stored. Raises BadRequest with the sentence under the key that clients of
    the releases read."""

    def refuse(reason: str) -> BadRequest:
        refused = BadRequest(reason)
        # Clients of the releases read this key.
        refused.content = {"status": f"failed: invalid json passed {reason}"}
        return refused

    if not _FIELDS <= fields.keys() <= _FIELDS | {"disabled"}:
        raise refuse("the keys must be max_tasks, queues and, if it is to pause, disabled")
    disabled, queues, entries = fields.get("disabled"), fields["queues"], fields["max_tasks"]
    if disabled is not None and whole(disabled) is None:
        raise refuse("disabled must be a time in seconds since 1970, or null")
    if disabled and int(disabled) < time.time():
        raise refuse("disabled must be a time in the future")
    if not isinstance(queues, list) or not all(isinstance(group, list) for group in queues):
        raise refuse("queues must be an array of arrays of names")
    names = [name for group in queues for name in group]
    if not all(isinstance(name, str) and name in queue_names for name in names):
        raise refuse("queues must name queues that exist")
    if len(set(names)) < len(names):
        raise refuse("queues must name each queue once")
    if not isinstance(entries, dict) or not all(KEY.fullmatch(key) for key in entries):
        raise refuse("the keys of max_tasks must be a weekday (0 to 6, or *) and a time, as in '5 19:00'")
    if any(whole(most) is None for most in entries.values()):
        raise refuse("the values of max_tasks must be non-negative integers")
    checked = {"max_tasks": {key: whole(most) for key, most in entries.items()}, "queues": queues}
    return checked | ({"disabled": whole(disabled) or None} if "disabled" in fields else {})
