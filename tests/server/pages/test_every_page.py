"""Every page, opened on each of the databases by who may see everything, and by who may see little."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import APIRoute
from httpx import Response

from server.conftest import World, store_at, store_on_server, world_at
from spinney.features.accounts.commands import AddUser, MakeToken
from spinney.features.holds.commands import LayHold
from spinney.features.inboxes.commands import PutInbox
from spinney.features.jobs.sql import SORT_KEYS
from spinney.features.locks.commands import SetCapacity
from spinney.features.schedules.commands import PutSchedule
from spinney.features.webhooks.commands import AddWebhook, PingWebhook
from spinney.model.access import Rights, Role
from spinney.model.outcomes import Outcome
from spinney.model.settings.holds import Scope
from spinney.model.states import State
from spinney.server import pages as ui

HTML = {"Accept": "text/html"}
WHO = ("admin", "limited")
FILTERS = (
    *(f"state={state}" for state in State),
    "type=three",
    "queue=default",
    "stage=first",
    "collection=lab",
    "submitter=ann",
    "node=n",
    "message=broken",
    "root={failed}",
    "parent={batch}",
    "created_after=1d",
    "created_before=1s",
    "failure={fingerprint}",
    "roots=1",
    "state=failed&type=three&collection=lab",
)
QUERIES = {
    "/jobs": (
        *FILTERS,
        "after=5",
        *(f"sort={sign}{column}&page=1" for column in SORT_KEYS for sign in ("", "-")),
        "sort=job&after=1",
        "sort=took&message=broken",
    ),
    "/jobs/verbs": (
        "verb=retry&all=1&state=failed",
        "verb=rerun&all=1&type=three",
        "verb=cancel&all=1&collection=lab",
        "verb=delete&id={failed}",
    ),
    "/search": ("q={failed}", "q=broken"),
    "/batches": ("state=failed", "collection=lab", "after=9"),
    "/batches/{job}": ("state=failed",),
    "/batches/{job}/grid": ("state=failed&after=1",),
    "/failures": ("type=three", "since=1h"),
    "/activity": ("type=three", "queue=default", "span=1h"),
    "/submit": ("type=three", "type=double"),
    "/make-schedule": ("type=three",),
    "/holds": ("scope=queue&name=slow",),
    "/locks": ("after=a",),
    "/audit": ("verb=retry", "by=ann", "after=9"),
    "/jobs/{job}/output": ("q=a",),
    "/jobs/{job}/tree/members": ("type=one&state=failed", "type=one&after=1", "type=one"),
    "/jobs/{job}/tree/groups": ("type=one",),
    "/webhooks/{name}": ("outcome=due", "after=9"),
    "/inboxes/{name}": ("after=9",),
}
"""What pages are asked besides, by their path."""
TAG = re.compile(r"""<[a-z][a-z0-9-]*(\s+[^\s"'=<>]+(="[^"]*"|='[^']*')?)*\s*/?>""", re.IGNORECASE)
"""A tag whose attributes are separated by blanks."""
NO_MARKUP = re.compile(r"<!--.*?-->|(?<=>)[^<]*(?=</(script|style|textarea)>)", re.DOTALL)
"""Text in which a ``<`` begins no tag."""


@dataclass
class Full:
    """A server with something to show on each of its pages."""

    world: World
    jobs: dict[str, int]
    """Jobs by what is special about them."""
    words: dict[str, str]
    """What stands in the place of a name in braces in ``QUERIES``."""


def _fill(world: World) -> Full:
    site, do = world.site, world.control("admin").do
    failed = world.submit("three", submitter="ann", collection="lab")
    site.record(
        site.claim_by_job()[failed],
        Outcome.ERROR,
        message="broken",
        error={"type": "ValueError", "message": "broken", "traceback": "ValueError: broken"},
        retryable=False,
    )
    batch = world.submit("batch", collection="lab")
    lease = site.claim_by_job()[batch]
    site.spawn(lease, "one", 3)
    site.pass_(lease)
    done = world.submit("double", {"n": 1}, collection="lab")
    leases = site.claim_by_job(slots=9)
    site.pass_(leases[done])
    locked = world.submit("locked", {"serno": "a"}, collection="lab")
    site.start(site.claim_by_job()[locked])
    waiting = world.submit("locked", {"serno": "a"}, collection="lab", needs=(locked,))
    elsewhere = world.submit("one", submitter="bob", collection="elsewhere")
    jobs = {"failed": failed, "batch": batch, "done": done, "running": locked, "waiting": waiting}
    do(LayHold(scope=Scope.QUEUE, name="slow", reason="looking"))
    do(SetCapacity(name="receiver:a", capacity=2))
    do(PutSchedule(name="s", type="one", every_s=3600.0, options={"collection": "lab"}))
    do(PutInbox(name="i", folder="/srv/i", type="one"))
    do(AddWebhook(name="w", url="https://example.org/hook", collection="lab"))
    do(PingWebhook(name="w"))
    do(AddUser(name="u", rights=Rights(role=Role.VIEWER)))
    do(MakeToken(name="t", rights=Rights(role=Role.VIEWER)))
    world.store.sweep(now_us=site.now)
    fingerprint = world.store.failures.of([failed])[failed].fingerprint
    words = {"failed": str(failed), "batch": str(batch), "fingerprint": fingerprint}
    return Full(world, {**jobs, "elsewhere": elsewhere}, words)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def full(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Full]:
    """All tests of this module only read."""
    place: Path = tmp_path_factory.mktemp("pages")
    url = store_on_server() if request.param == "postgresql" else store_at(place / "spinney.db")
    with world_at(place, url=url) as world:
        yield _fill(world)


@pytest.mark.parametrize("who", WHO)
def test_given_jobs_in_either_database_when_any_page_is_opened_then_the_server_has_no_error(
    full: Full, who: str
) -> None:
    client = full.world.client(who)
    answers: dict[str, int] = {}
    malformed: dict[str, list[str]] = {}

    for address in _addresses(full):
        answer = client.get(address, headers=HTML)
        answers[address] = answer.status_code
        if wrong := _malformed_tags(answer):
            malformed[address] = wrong

    assert {address: status for address, status in answers.items() if status >= 500} == {}
    assert [answers[path] for path in ("/", "/jobs", "/batches", "/failures", "/queues")] == [200] * 5
    assert malformed == {}


def _malformed_tags(page: Response) -> list[str]:
    """Return the tags of a page whose attributes run into each other; of other answers none."""
    if not page.headers.get("Content-Type", "").startswith("text/html"):
        return []
    markup = NO_MARKUP.sub("", page.text)
    return [
        markup[start.start() :][:300]
        for start in re.finditer("<[a-zA-Z]", markup)
        if not TAG.match(markup, start.start())
    ]


def _addresses(full: Full) -> Iterator[str]:
    """Yield the addresses of all pages: of a page on one thing those of all jobs, or of the thing that there is. Only
    the batch, which has subjobs, is asked for parts of them."""
    names: dict[str, Any] = {
        "queues": "slow",
        "nodes": full.world.store.nodes()[0].name,
        "schedules": "s",
        "inboxes": "i",
        "users": "u",
        "webhooks": "w",
    }
    for path in _paths():
        fill = {"name": names.get(path.split("/")[1]), "stream": "stdout", "run_id": "1"} | full.words
        for job in full.jobs.values() if "{job}" in path else (0,):
            fence = full.world.store.attempts(job)[-1:] if job else ()
            one = fill | {"job": str(job), "fence": str(fence[0].fence) if fence else "1"}
            for query in ("", *(QUERIES.get(path, ()) if job in (0, full.jobs["batch"]) else ())):
                yield f"{path}{'?' if query else ''}{query}".format(**one)


def _paths() -> list[str]:
    return [
        re.sub(r":\w+}", "}", route.path)
        for router in ui.routers()
        for route in router.routes
        if isinstance(route, APIRoute) and "GET" in (route.methods or ())
    ]


def test_every_query_belongs_to_a_page() -> None:
    assert set(QUERIES) <= set(_paths())
