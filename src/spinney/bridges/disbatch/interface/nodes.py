"""The routes of nodes, and what a monitoring system asks."""

import time
from datetime import datetime
from typing import Any

from fastapi import APIRouter
from pymongo.errors import PyMongoError
from starlette.responses import Response

from spinney.bridges.disbatch.database import BALANCE, NODES, Document
from spinney.bridges.disbatch.interface.parameters import whole
from spinney.bridges.disbatch.interface.service import Params, Service, Serving, User
from spinney.bridges.disbatch.interface.wire import BadRequest, oid, updated

router = APIRouter()
_BALANCE_S = 60
"""Balancing that has written no time for so long does not run."""


@router.get("/nodes")
def list_nodes(service: Serving) -> Response:
    """Return all nodes."""
    return service.wire.reply(nodes(service))


@router.get("/nodes/{node:path}")
def show_node(node: str, service: Serving) -> Response:
    """Return one node; null for an unknown one."""
    return service.wire.reply(next(iter(nodes(service, _named(node))), None))


@router.post("/nodes/{node:path}")
def update_node(node: str, given: Params, service: Serving, user: User) -> Response:
    """Set how many tasks a node may run at once."""
    if not given.fields:
        raise BadRequest("No params")
    if unknown := sorted(given.fields.keys() - {"maxthreads"}):
        raise BadRequest("Invalid param", param=unknown[0])
    most = given.fields["maxthreads"]
    if most is not None and whole(most) is None:
        raise BadRequest("maxthreads must be a non-negative integer or null")
    result = service.nodes.update_one(
        _named(node), {"$set": {"maxthreads": None if most is None else whole(most)}}
    )
    content = updated(result.matched_count, result.modified_count)
    if not result.matched_count:
        raise BadRequest(f"no node {node!r}; GET /nodes lists them", **content)
    if result.modified_count:
        service.changed(NODES, service.nodes.find_one(_named(node)), user)
    return service.wire.reply(content)


@router.get("/monitoring")
def monitoring(service: Serving) -> Response:
    """Return whether nodes work and whether limits are balanced: OK, WARNING or CRITICAL, with a message."""
    if not service.settings.monitoring:
        disabled = {"status": "OK", "message": "monitoring disabled"}
        return service.wire.reply({"disbatch": disabled, "queuebalance": disabled})
    return service.wire.reply(
        {"disbatch": _nodes_verdict(service), "queuebalance": _balance_verdict(service)}
    )


def nodes(service: Service, query: dict[str, Any] | None = None) -> list[Document]:
    """Return nodes by name. ``live``: whether a node has written its time lately, by the server's clock."""
    listed = list(service.nodes.find(query or {}).sort("node"))
    now = time.time()
    for node in listed:
        written = node.get("timestamp")
        seconds = written.timestamp() if isinstance(written, datetime) else float(written or 0)
        node["id"] = str(node["_id"])
        node["timestamp"] = int(seconds * 1000)
        node["live"] = seconds + service.settings.live_window_s >= now
    return listed


def _named(node: str) -> dict[str, Any]:
    id_ = oid(node)
    return {"node": node} if id_ is None else {"_id": id_}


def _nodes_verdict(service: Service) -> dict[str, Any]:
    try:
        listed = nodes(service)
    except PyMongoError as error:
        return {
            "status": "CRITICAL",
            "message": f"Could not get current Disbatch nodes: {type(error).__name__}",
        }
    if not listed:
        return {"status": "WARNING", "message": "No Disbatch nodes found"}
    ages: dict[str, dict[str, int]] = {}
    for node in listed:
        age = int(time.time() - node["timestamp"] / 1000)
        ages.setdefault("fresh" if node["live"] else "stale", {})[str(node.get("node"))] = age
    if "fresh" in ages:
        return {"status": "OK", "message": "Disbatch is running on one or more nodes", "nodes": ages}
    return {"status": "CRITICAL", "message": "No active Disbatch nodes found", "nodes": ages}


def _balance_verdict(service: Service) -> dict[str, Any]:
    if not service.settings.balance:
        return {"status": "OK", "message": "queuebalance disabled"}
    try:
        balance = service.db[BALANCE].find_one({}, {"_id": 0, "status": 1, "message": 1, "timestamp": 1})
    except PyMongoError as error:
        return {
            "status": "CRITICAL",
            "message": f"Could not get the balance document: {type(error).__name__}",
        }
    if balance is None:
        return {"status": "WARNING", "message": "balance document not found"}
    age = int(time.time() - (balance.pop("timestamp", None) or 0))
    if age > _BALANCE_S:
        return {"status": "CRITICAL", "message": f"queuebalanced not running for {age}s"}
    if balance.get("status") in ("OK", "WARNING", "CRITICAL"):
        return balance
    return {"status": "CRITICAL", "message": "queuebalanced unknown status", "result": balance}
