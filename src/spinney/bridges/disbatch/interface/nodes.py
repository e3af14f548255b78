"""The routes of nodes, and what a monitoring system asks.

``GET /monitoring`` has two verdicts in the form of the releases: whether a node is at work, and whether limits are
balanced. It answers with the status 200 whatever they are."""

import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pymongo
from fastapi import APIRouter
from pymongo.errors import PyMongoError
from starlette.responses import Response

from spinney.bridges.disbatch.database import BALANCE, REACH_S, Document
from spinney.bridges.disbatch.interface.parameters import limit, refuse_unknown
from spinney.bridges.disbatch.interface.service import Params, Service, Serving, User, by_id_or
from spinney.bridges.disbatch.interface.wire import BadRequest

router, monitor = APIRouter(), APIRouter()
"""``monitor`` answers while the database is away, too."""
_YEAR_3000_S = 32_503_680_000
_BALANCE_S = 60
"""Balancing that has written no time for so long does not run."""


@router.get("/nodes")
def list_nodes(service: Serving) -> Response:
    """Return all nodes with their settings and last beats."""
    return service.wire.reply(nodes(service))


@router.get("/nodes/{node:path}")
def show_node(node: str, service: Serving) -> Response:
    """Return one node; null for an unknown one."""
    return service.wire.reply(next(iter(nodes(service, by_id_or("node", node))), None))


@router.post("/nodes/{node:path}")
def update_node(node: str, parameters: Params, service: Serving, user: User) -> Response:
    """Set how many tasks a node may run at once."""
    if not parameters.fields:
        raise BadRequest("No params")
    refuse_unknown(parameters.fields, {"maxthreads"}, "Invalid param")
    changes = {"maxthreads": limit(parameters.fields["maxthreads"], "maxthreads")}
    no_such = f"no node {node!r}; GET /nodes lists them"
    return service.wire.reply(service.update(service.nodes, by_id_or("node", node), changes, user, no_such))


@monitor.get("/monitoring")
def monitoring(service: Serving) -> Response:
    """Return whether nodes work and whether limits are balanced: OK, WARNING or CRITICAL, with a message."""
    if not service.settings.monitoring:
        disabled = _verdict("OK", "monitoring disabled")
        return service.wire.reply({"disbatch": disabled, "queuebalance": disabled})
    with pymongo.timeout(REACH_S):  # for both checks together: the monitoring system waits only briefly
        verdicts = {
            "disbatch": _judged(_of_nodes, service, "current Disbatch nodes"),
            "queuebalance": _judged(_of_balance, service, "the balance document"),
        }
    return service.wire.reply(verdicts)


def nodes(service: Service, query: dict[str, Any] | None = None) -> list[Document]:
    """Return the nodes that match a filter (all for None), by name. ``timestamp``: its last beat in
    milliseconds since 1970; ``live``: whether that is recent, by the clock of this server."""
    listed = list(service.nodes.find(query or {}).sort("node"))
    now = time.time()
    for node in listed:
        written = node.get("timestamp")
        if isinstance(written, datetime):
            seconds = written.timestamp()
        else:  # one document that somebody has spoilt must not hide the others
            seconds = written if isinstance(written, int | float) and 0 <= written < _YEAR_3000_S else 0
        node["id"] = str(node["_id"])
        node["timestamp"] = int(seconds * 1000)
        node["live"] = seconds + service.settings.live_window_s >= now
    return listed


def _verdict(status: str, message: str, **more: Any) -> dict[str, Any]:
    return {"status": status, "message": message, **more}


def _judged(judge: Callable[[Service], dict[str, Any]], service: Service, what: str) -> dict[str, Any]:
    """Return a verdict; CRITICAL where the database does not answer. ``what``: what could not be read
    then."""
    try:
        return judge(service)
    except PyMongoError as error:
        return _verdict("CRITICAL", f"Could not get {what}: {type(error).__name__}")


def _of_nodes(service: Service) -> dict[str, Any]:
    """Return the verdict on nodes, with the seconds since each node's last beat. One live node is enough."""
    listed = nodes(service)
    if not listed:
        return _verdict("WARNING", "No Disbatch nodes found")
    ages: dict[str, dict[str, int]] = {}
    for node in listed:
        age = int(time.time() - node["timestamp"] / 1000)
        ages.setdefault("fresh" if node["live"] else "stale", {})[str(node.get("node"))] = age
    if "fresh" in ages:
        return _verdict("OK", "Disbatch is running on one or more nodes", nodes=ages)
    return _verdict("CRITICAL", "No active Disbatch nodes found", nodes=ages)


def _of_balance(service: Service) -> dict[str, Any]:
    """Return the verdict on balancing: what the loop wrote last, unless it has not written for long."""
    if not service.settings.balance:
        return _verdict("OK", "queuebalance disabled")
    balance = service.db[BALANCE].find_one({}, {"_id": 0, "status": 1, "message": 1, "timestamp": 1})
    if balance is None:
        return _verdict("WARNING", "balance document not found")
    age = int(time.time() - (balance.pop("timestamp", None) or 0))
    if age > _BALANCE_S:
        return _verdict("CRITICAL", f"queuebalanced not running for {age}s")
    if balance.get("status") in ("OK", "WARNING", "CRITICAL"):
        return balance
    return _verdict("CRITICAL", "queuebalanced unknown status", result=balance)
