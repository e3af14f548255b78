"""Every route, asked by everybody: by nobody, each role, and an operator who is limited to a collection.

One row a route; a route without a row fails. What a row needs is made anew for each who asks, in the collection of the
limited one and by who asks where it is about one's own.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest
from fastapi.routing import APIRoute

from spinney.commands.control import Control
from spinney.features.accounts.commands import AddUser, MakeToken
from spinney.features.holds.commands import LayHold, LiftHold
from spinney.features.inboxes.commands import PutInbox
from spinney.features.nodes.commands import DrainNode
from spinney.features.queues.commands import CreateQueue
from spinney.features.schedules.commands import PutSchedule
from spinney.features.webhooks.commands import AddWebhook, PingWebhook
from spinney.folders.upload_folder import UploadFolder
from spinney.model.access import Rights, Role
from spinney.model.settings.holds import Scope
from spinney.model.settings.inboxes import Upload
from spinney.server.api import PARTS

from ..conftest import World, world_at

ROLES = ("viewer", "submitter", "operator", "admin")
ASKERS = ("nobody", *ROLES, "limited")
_numbers = count(1)
Made = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Row:
    """A route, what it is asked with, and who may."""

    method: str
    path: str
    least: str | None
    """The role from which on it is allowed; None: nobody of these."""
    limited: int | None = None
    """The answer for the limited operator; None: as for an operator."""
    ok: int = 200
    make: Callable[[World, str], Made] = field(default=lambda world, who: {})
    """Fields of the path; ``query``: of the query, ``json``, ``content``, ``headers``: what is sent."""
    refused: int = 403
    """What the others are answered."""

    def expected(self) -> dict[str, int]:
        allowed = dict.fromkeys(ROLES, self.refused)
        if self.least is not None:
            allowed |= dict.fromkeys(ROLES[ROLES.index(self.least) :], self.ok)
        limited = allowed["operator"] if self.limited is None else self.limited
        return {"nobody": 401, **allowed, "limited": limited}


# --- what rows need ---------------------------------------------------------------------------


def nothing(**sent: Any) -> Callable[[World, str], Made]:
    return lambda world, who: sent


def job(world: World, who: str, **sent: Any) -> Made:
    return {"job": world.submit("one", collection="lab", submitter=who), **sent}


def sends(**sent: Any) -> Callable[[World, str], Made]:
    return lambda world, who: job(world, who, **sent)


def claimed(world: World, who: str) -> Any:
    world.site.drain()
    world.site.submit_one("one", {}, collection="lab", submitter=who)
    return world.site.claim_one()


def failed(world: World, who: str) -> Made:
    lease = claimed(world, who)
    world.site.fail(lease)
    return {"job": lease.job_id, "json": {}}


def completed(world: World, who: str) -> Made:
    lease = claimed(world, who)
    world.site.pass_(lease)
    return {"job": lease.job_id, "json": {}, "fence": lease.fence, "stream": "stdout"}


def running(world: World, who: str) -> Made:
    lease = claimed(world, who)
    world.store.started([lease.fence], now_us=world.site.now)
    return {"job": lease.job_id, "json": {}, "fence": lease.fence}


def held(world: World, who: str) -> Made:
    made = job(world, who)
    context(world, who).do(LayHold(scope=Scope.JOB, name=str(made["job"]), reason="looking"))
    return {**made, "json": {}}


def scheduled(world: World, who: str) -> Made:
    at_us = world.site.now + 10**9
    return {"job": world.submit("one", collection="lab", submitter=who, at_us=at_us), "json": {}}


def context(world: World, who: str) -> Control:
    """The store itself at hand, in somebody's name."""
    return Control(store=world.store, clock=lambda: world.site.now, wake_nodes=lambda: None, by=who)


def with_file(world: World, who: str) -> Made:
    made = job(world, who)
    (world.folder(made["job"]) / "a.txt").write_text("x")
    return {**made, "path": "a.txt"}


def batch(world: World, who: str) -> Made:
    world.site.drain()
    top = world.site.submit_one("batch", {}, collection="lab")
    lease = world.site.claim_one()
    world.site.spawn(lease, "one", n=2)
    world.site.pass_(lease)
    return {"job": top}


def fingerprint(world: World, who: str) -> Made:
    made = failed(world, who)
    return {"fingerprint": world.store.failures.of([made["job"]])[made["job"]].fingerprint}


def node(**sent: Any) -> Callable[[World, str], Made]:
    def make(world: World, who: str) -> Made:
        name = f"node-{next(_numbers)}"
        world.site.node(name)
        return {"node": name, **sent}

    return make


def new_queue(world: World, who: str) -> Made:
    name = f"q{next(_numbers)}"
    context(world, who).do(CreateQueue(name=name))
    return {"name": name}


def drained(world: World, who: str) -> Made:
    made = node(json={})(world, who)
    context(world, who).do(DrainNode(node=made["node"]))
    return made


def hold(scope: Scope, name: str) -> Callable[[World, str], Made]:
    return lambda world, who: {
        "hold": context(world, who).do(LayHold(scope=scope, name=name, reason=f"x{next(_numbers)}")).id
    }


def locked(world: World, who: str) -> Made:
    world.site.drain()
    name = f"n{next(_numbers)}"
    world.site.submit_one("locked", {"serno": name})
    world.site.claim()
    return {"name": f"receiver:{name}", "query": {"reason": "gone"}}


def capacity(world: World, who: str) -> Made:
    return {"name": f"receiver:c{next(_numbers)}", "json": {"capacity": 2}}


def schedule(**sent: Any) -> Callable[[World, str], Made]:
    def make(world: World, who: str) -> Made:
        name = f"s{next(_numbers)}"
        options = {"collection": "lab"}
        context(world, who).do(
            PutSchedule(name=name, type="one", every_s=3600.0, options=options, overlap="allow")
        )
        return {"name": name, **sent}

    return make


def inbox(**sent: Any) -> Callable[[World, str], Made]:
    def make(world: World, who: str) -> Made:
        name = f"i{next(_numbers)}"
        context(world, who).do(PutInbox(name=name, folder=f"/srv/{name}", type="one"))
        return {"name": name, **sent}

    return make


def upload(**sent: Any) -> Callable[[World, str], Made]:
    """An upload of who asks; nobody else's is found."""

    def make(world: World, who: str) -> Made:
        made = inbox()(world, who)
        begun = UploadFolder(world.folders).begin(Upload(id="", inbox=made["name"], by=who, **FILE))
        return {**made, "upload": begun.id, **sent}

    return make


def new_inbox(world: World, who: str) -> Made:
    name = f"i{next(_numbers)}"
    return {"name": name, "json": {"folder": f"/srv/{name}", "type": "one"}}


def new_schedule(world: World, who: str) -> Made:
    options = {"collection": "lab", "submitter": who}
    return {"name": f"s{next(_numbers)}", "json": {"type": "one", "every_s": 60.0, "options": options}}


def user(**sent: Any) -> Callable[[World, str], Made]:
    def make(world: World, who: str) -> Made:
        name = f"u{next(_numbers)}"
        context(world, who).do(AddUser(name=name, rights=Rights(role=Role.VIEWER)))
        return {"name": name, **sent}

    return make


def new_user(world: World, who: str) -> Made:
    return {"json": {"name": f"u{next(_numbers)}", "rights": {"role": "viewer"}}}


def token(world: World, who: str) -> Made:
    answer = context(world, who).do(MakeToken(name=f"t{next(_numbers)}", rights=Rights(role=Role.VIEWER)))
    return {"token": answer.token.id}


def new_token(world: World, who: str) -> Made:
    return {"json": {"name": f"t{next(_numbers)}", "rights": {"role": "viewer"}}}


def webhook(**sent: Any) -> Callable[[World, str], Made]:
    def make(world: World, who: str) -> Made:
        name = f"w{next(_numbers)}"
        context(world, who).do(AddWebhook(name=name, url="https://example.org/hook", collection="lab"))
        return {"name": name, **sent}

    return make


def new_webhook(world: World, who: str) -> Made:
    form = {"name": f"w{next(_numbers)}", "url": "https://example.org/hook", "collection": "lab"}
    return {"json": form}


def delivery(world: World, who: str) -> Made:
    made = webhook()(world, who)
    return {"delivery": context(world, who).do(PingWebhook(name=made["name"])).delivery, "json": {}}


FILE = {"name": "a.zip", "size": 3}
LINES = {
    "content": '{"type": "one", "collection": "lab"}',
    "headers": {"Content-Type": "application/x-ndjson"},
}
ONE = {"type": "one", "collection": "lab"}
VERB = {"verb": "cancel", "filter": {"collection": "lab"}, "dry_run": True}
EXTERNAL = {"worker": "p1", "job": 1, "fence": 1}
ROWS = (
    Row(method="POST", path="/jobs", least="submitter", ok=201, make=nothing(json=ONE)),
    Row(method="POST", path="/jobs/batch", least="submitter", ok=201, make=nothing(**LINES)),
    Row(method="POST", path="/jobs/verbs", least="submitter", make=sends(json=VERB)),
    Row(method="GET", path="/jobs", least="viewer"),
    Row(method="GET", path="/jobs/count", least="viewer"),
    Row(method="GET", path="/jobs/obstacles", least="viewer", make=nothing(query={"jobs": 1})),
    *(
        Row(method="GET", path=f"/jobs/{{job}}{what}", least="viewer", make=job)
        for what in (
            "",
            "/tree",
            "/children",
            "/children/count",
            "/attempts",
            "/data",
            "/results",
            "/explain",
            "/holds",
            "/files",
        )
    ),
    Row(method="POST", path="/jobs/{job}/stacks", least="viewer", make=running),
    Row(method="GET", path="/jobs/{job}/stacks/{fence}", least="viewer", make=running),
    Row(method="GET", path="/bridges", least="viewer", limited=403),
    Row(
        method="DELETE",
        path="/bridges/{name}",
        least="admin",
        ok=404,
        make=lambda w, who: {"name": "none"},
    ),
    Row(method="POST", path="/jobs/{job}/retry", least="submitter", make=failed),
    Row(method="POST", path="/jobs/{job}/rerun", least="operator", make=completed),
    Row(method="POST", path="/jobs/{job}/run-now", least="submitter", make=scheduled),
    Row(method="POST", path="/jobs/{job}/cancel", least="submitter", make=sends(json={})),
    Row(method="POST", path="/jobs/{job}/hold", least="submitter", make=sends(json={"reason": "x"})),
    Row(method="POST", path="/jobs/{job}/release", least="submitter", make=held),
    Row(method="POST", path="/jobs/{job}/move", least="operator", make=sends(json={"queue": "slow"})),
    Row(method="POST", path="/jobs/{job}/priority", least="operator", make=sends(json={"priority": 50})),
    Row(
        method="DELETE",
        path="/jobs/{job}",
        least="operator",
        make=lambda w, who: {"job": completed(w, who)["job"]},
    ),
    Row(
        method="POST",
        path="/jobs/{job}/collection",
        least="operator",
        limited=403,
        make=lambda w, who: {"job": completed(w, who)["job"], "json": {"collection": "lab"}},
    ),
    Row(method="GET", path="/jobs/{job}/files/{path:path}", least="viewer", make=with_file),
    Row(
        method="PUT",
        path="/jobs/{job}/files/{path:path}",
        least="submitter",
        ok=201,
        make=sends(path="b.txt", content=b"x"),
    ),
    Row(method="GET", path="/jobs/{job}/attempts/{fence}/{stream}", least="viewer", make=completed),
    Row(method="GET", path="/batches", least="viewer"),
    Row(method="GET", path="/batches/{job}", least="viewer", make=batch),
    Row(method="GET", path="/batches/{job}/objects", least="viewer", make=batch),
    Row(method="GET", path="/failures", least="viewer"),
    Row(method="GET", path="/failures/{fingerprint}", least="viewer", make=fingerprint),
    Row(method="GET", path="/queues", least="viewer"),
    Row(method="GET", path="/queues/{name}", least="viewer", make=nothing(name="slow")),
    Row(
        method="POST",
        path="/queues",
        least="operator",
        limited=403,
        ok=201,
        make=lambda w, who: {"json": {"name": f"q{next(_numbers)}"}},
    ),
    Row(method="DELETE", path="/queues/{name}", least="admin", ok=204, make=new_queue),
    Row(
        method="PATCH",
        path="/queues/{name}",
        least="operator",
        limited=403,
        make=nothing(name="slow", json={"limit": 3}),
    ),
    Row(method="GET", path="/nodes", least="viewer"),
    Row(method="POST", path="/nodes/{node}/drain", least="operator", limited=403, make=node(json={})),
    Row(method="POST", path="/nodes/{node}/resume", least="operator", limited=403, make=drained),
    Row(
        method="PUT", path="/nodes/{node}/slots", least="operator", limited=403, make=node(json={"slots": 2})
    ),
    Row(method="GET", path="/holds", least="viewer"),
    Row(
        method="POST",
        path="/holds",
        least="operator",
        limited=403,
        ok=201,
        make=nothing(json={"scope": "type", "name": "three", "reason": "x"}),
    ),
    Row(method="GET", path="/holds/{hold}/held", least="viewer", make=hold(Scope.COLLECTION, "lab")),
    Row(method="DELETE", path="/holds/{hold}", least="operator", make=hold(Scope.COLLECTION, "lab")),
    Row(method="GET", path="/locks", least="viewer"),
    Row(method="GET", path="/locks/{name}", least="viewer", make=nothing(name="receiver:none")),
    Row(method="DELETE", path="/locks/{name}", least="operator", limited=409, make=locked),
    Row(method="GET", path="/capacities", least="viewer"),
    Row(method="PUT", path="/capacities/{name}", least="operator", limited=403, make=capacity),
    Row(method="GET", path="/schedules", least="viewer"),
    Row(method="GET", path="/schedules/{name}", least="viewer", make=schedule()),
    Row(method="PUT", path="/schedules/{name}", least="operator", make=new_schedule),
    Row(method="PATCH", path="/schedules/{name}", least="operator", make=schedule(json={"paused": True})),
    Row(method="DELETE", path="/schedules/{name}", least="operator", ok=204, make=schedule()),
    Row(method="POST", path="/schedules/{name}/run", least="operator", ok=201, make=schedule(json={})),
    Row(method="GET", path="/schedules/{name}/runs", least="viewer", make=schedule()),
    Row(method="GET", path="/schedules/{name}/coming", least="viewer", make=schedule()),
    Row(method="GET", path="/inboxes", least="operator", limited=403),
    Row(method="GET", path="/inboxes/{name}", least="operator", limited=403, make=inbox()),
    Row(method="PUT", path="/inboxes/{name}", least="admin", make=new_inbox),
    Row(method="PATCH", path="/inboxes/{name}", least="admin", make=inbox(json={"paused": True})),
    Row(method="POST", path="/inboxes/{name}/scan", least="operator", limited=403, make=inbox(json={})),
    Row(method="DELETE", path="/inboxes/{name}", least="admin", ok=204, make=inbox()),
    Row(method="GET", path="/inboxes/{name}/arrivals", least="operator", limited=403, make=inbox()),
    Row(method="POST", path="/inboxes/{name}/uploads", least="submitter", ok=201, make=inbox(json=FILE)),
    Row(method="GET", path="/inboxes/{name}/uploads/{upload}", least="submitter", make=upload()),
    Row(
        method="PUT",
        path="/inboxes/{name}/uploads/{upload}",
        least="submitter",
        make=upload(query={"offset": 0}, content=b"abc"),
    ),
    Row(method="DELETE", path="/inboxes/{name}/uploads/{upload}", least="submitter", ok=204, make=upload()),
    Row(method="GET", path="/stats", least="viewer"),
    Row(method="GET", path="/types", least="viewer"),
    Row(method="GET", path="/types/{name}", least="viewer", make=nothing(name="one")),
    Row(method="GET", path="/doctor/rules", least="admin"),
    Row(
        method="POST", path="/doctor/examine", least="admin", make=nothing(json={"only": ["pending-nowhere"]})
    ),
    Row(
        method="POST", path="/doctor/repair", least="admin", make=nothing(json={"only": ["pending-nowhere"]})
    ),
    # The folders of this store are shared.
    Row(method="GET", path="/homes", least="admin", ok=409, make=nothing(query={"host": "thor"})),
    Row(
        method="POST",
        path="/homes/{home}/release",
        least="admin",
        ok=409,
        make=lambda w, who: {"home": 1, "json": {}},
    ),
    Row(method="POST", path="/jobs/{job}/rehome", least="admin", ok=409, make=sends(json={})),
    Row(method="GET", path="/retention", least="viewer"),
    Row(method="GET", path="/retention/clock", least="viewer"),
    Row(
        method="PUT",
        path="/retention/{type}/{state}",
        least="admin",
        make=nothing(type="one", state="completed", json={"keep_s": 1e6}),
    ),
    Row(
        method="DELETE",
        path="/retention/{type}/{state}",
        least="admin",
        make=nothing(type="one", state="failed"),
    ),
    Row(method="GET", path="/webhooks", least="operator"),
    Row(method="POST", path="/webhooks", least="operator", ok=201, make=new_webhook),
    Row(method="GET", path="/webhooks/{name}", least="operator", limited=404, make=webhook()),
    Row(
        method="PATCH",
        path="/webhooks/{name}",
        least="operator",
        limited=404,
        make=webhook(json={"paused": True}),
    ),
    Row(method="DELETE", path="/webhooks/{name}", least="operator", limited=404, ok=204, make=webhook()),
    Row(method="POST", path="/webhooks/{name}/rotate", least="operator", limited=404, make=webhook(json={})),
    Row(method="POST", path="/webhooks/{name}/test", least="operator", limited=404, ok=202, make=webhook()),
    Row(method="GET", path="/webhooks/{name}/deliveries", least="operator", limited=404, make=webhook()),
    Row(method="GET", path="/webhooks/deliveries/{delivery}", least="operator", limited=404, make=delivery),
    Row(
        method="POST",
        path="/webhooks/deliveries/{delivery}/retry",
        least="operator",
        limited=404,
        ok=202,
        make=delivery,
    ),
    Row(method="GET", path="/users", least="admin"),
    Row(method="POST", path="/users", least="admin", ok=201, make=new_user),
    Row(method="GET", path="/users/{name}", least="admin", make=user()),
    Row(method="PATCH", path="/users/{name}", least="admin", make=user(json={"disabled": True})),
    Row(method="DELETE", path="/users/{name}", least="admin", ok=204, make=user()),
    Row(method="POST", path="/users/{name}/link", least="admin", ok=201, make=user()),
    Row(method="GET", path="/users/{name}/sessions", least="admin", make=user()),
    Row(method="DELETE", path="/users/{name}/sessions", least="admin", make=user()),
    Row(
        method="POST",
        path="/me/password",
        least=None,
        refused=404,  # who asks here is no user of the store
        make=nothing(json={"before": "x", "after": "correct horse battery"}),
    ),
    Row(method="GET", path="/tokens", least="viewer"),
    Row(method="POST", path="/tokens", least="admin", ok=201, make=new_token),
    Row(method="DELETE", path="/tokens/{token}", least="admin", refused=404, make=token),
    Row(method="GET", path="/me", least="viewer"),
    Row(method="GET", path="/audit", least="operator", limited=403),
    Row(method="GET", path="/audit/entries", least="operator", limited=403),
    Row(method="GET", path="/audit/head", least="operator", limited=403),
    Row(method="GET", path="/audit/verify", least="admin"),
)
EXTERNAL_ROUTES = "/api/v1/external"
"""Who may is said by the rights for job types, not by the role: test_external."""
_IDS = [f"{row.method} {row.path}" for row in ROWS]


@pytest.fixture(scope="module")
def one_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Of all rows: each makes what it needs."""
    with world_at(tmp_path_factory.mktemp("access")) as world:
        yield world


@pytest.mark.parametrize("row", ROWS, ids=_IDS)
def test_who_may_what(one_world: World, row: Row) -> None:
    statuses: dict[str, int] = {}
    bodies: dict[str, str] = {}

    for who in ASKERS:
        made = dict(row.make(one_world, who))
        sent = {name: made.pop(name) for name in ("json", "content", "headers") if name in made}
        path = row.path.replace("{path:path}", "{path}").format(**made)
        client = one_world.client(None if who == "nobody" else who)
        answer = client.request(row.method, f"/api/v1{path}", params=made.get("query"), **sent)
        statuses[who], bodies[who] = answer.status_code, answer.text[:200]

        for left in one_world.store.holds.all():  # else nothing that other rows submit could be claimed
            context(one_world, "operator").do(LiftHold(hold=left.id))

    assert statuses == row.expected(), bodies


def test_every_route_has_a_row() -> None:
    routes = {
        (method, route.path.removeprefix("/api/v1"))
        for part in PARTS
        for route in part.routes
        if isinstance(route, APIRoute) and not route.path.startswith(EXTERNAL_ROUTES)
        for method in route.methods
    }

    assert routes == {(row.method, row.path) for row in ROWS}


def test_no_route_of_external_stages_is_open(one_world: World) -> None:
    for route in (r for part in PARTS for r in part.routes if isinstance(r, APIRoute)):
        if route.path.startswith(EXTERNAL_ROUTES):
            for method in route.methods:
                path = route.path.format(**EXTERNAL)
                assert one_world.client(None).request(method, path, json={}).status_code in (401, 422), path
                assert one_world.client("operator").request(method, path, json={}).status_code in (
                    200,
                    403,
                    404,
                    422,
                )
