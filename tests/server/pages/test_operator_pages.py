"""Queues, nodes, holds, locks and the audit over HTTP: what is shown, what is done, and who may not."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from starlette.testclient import TestClient

from server.conftest import World
from spinney.features.audit.details import in_words
from spinney.features.holds.commands import LayHold
from spinney.features.queues import page as queues_page
from spinney.features.queues.commands import ChangeQueue
from spinney.model.access import AccessScope, Rights, Role
from spinney.model.outcomes import Outcome
from spinney.model.rights.actor import Actor
from spinney.model.settings.holds import Scope
from spinney.web.pages.text_formats import moment

HTML = {"Accept": "text/html"}
READ = ("/queues", "/queues/slow", "/nodes", "/holds", "/locks", "/api")


def get(client: TestClient, path: str, status: int = 200) -> str:
    answer = client.get(path, headers=HTML)
    assert answer.status_code == status, (path, answer.status_code, answer.text[:500])
    return answer.text


def post(client: TestClient, path: str, **form: Any) -> str:
    """What the page says that it leads to."""
    answer = client.post(path, data=form, headers=HTML)
    assert answer.status_code == 303, (path, answer.status_code, answer.text[:500])
    response = client.get(answer.headers["location"], headers=HTML)
    match = re.search(r'<div id="flash".*?</div>', response.text, re.S)
    assert match is not None
    return match[0]


def refused(client: TestClient, path: str, **form: Any) -> int:
    return client.post(path, data=form, headers=HTML).status_code


@pytest.fixture
def locked(world: World) -> tuple[int, int]:
    """Two jobs that want one lock; the first has it."""
    jobs = [world.submit("locked", {"serno": "SG-1"}) for _ in range(2)]
    world.site.claim_by_job()
    return jobs[0], jobs[1]


# --- who --------------------------------------------------------------------------------------


@pytest.mark.parametrize("who", ["viewer", "submitter", "operator", "admin", "limited"])
def test_given_any_role_when_pages_are_read_then_all_are_there(
    world: World, locked: tuple[int, int], who: str
) -> None:
    world.control().do(LayHold(scope=Scope.QUEUE, name="slow", reason="why not"))
    for path in READ:
        get(world.client(who), path)
        part = world.client(who).get(path, headers={**HTML, "HX-Request": "true"})
        assert part.status_code == 200
        assert path == "/api" or "<html" not in part.text


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("/queues", {"name": "new"}),
        ("/queues/slow/limit", {"limit": "3"}),
        ("/queues/slow/type", {"type": "one"}),
        ("/queues/slow/pinned", {"nodes": "oak"}),
        ("/queues/slow/declared", {"field": "limit"}),
        ("/queues/slow/delete", {}),
        ("/nodes/oak/drain", {}),
        ("/nodes/oak/resume", {}),
        ("/nodes/oak/slots", {"slots": "3"}),
        ("/holds", {"scope": "everything", "reason": "no"}),
        ("/locks/free", {"name": "receiver:SG-1", "reason": "no"}),
        ("/locks/capacity", {"name": "receiver:SG-1", "capacity": "3"}),
        ("/audit/prove", {}),
    ],
)
def test_given_who_may_not_when_he_tries_then_he_is_refused_and_nothing_has_changed(
    world: World, locked: tuple[int, int], path: str, form: dict[str, str]
) -> None:
    before = world.store.queue_admin.all()

    for who in ("viewer", "submitter"):
        assert refused(world.client(who), path, **form) == 403
    if not path.startswith("/locks"):
        assert refused(world.client("limited"), path, **form) == 403

    assert world.store.queue_admin.all() == before
    assert not world.store.holds.all()
    assert world.store.locks.get("receiver:SG-1")[0].owner_id == locked[0]


def test_given_a_viewer_when_he_reads_then_no_button_does_anything(
    world: World, locked: tuple[int, int]
) -> None:
    world.control().do(LayHold(scope=Scope.QUEUE, name="slow", reason="why not"))
    for path in READ:
        text = get(world.client("viewer"), path)
        assert not re.search(r'<form[^>]*method="post"[^>]*action="(?!/sign-out)', text), path


@pytest.mark.parametrize("who", ["viewer", "submitter", "limited"])
def test_given_less_than_an_operator_of_all_when_he_asks_for_the_audit_then_he_is_refused(
    world: World, who: str
) -> None:
    get(world.client(who), "/audit", 403)


# --- queues -----------------------------------------------------------------------------------


def test_given_a_queue_when_its_limit_and_type_are_set_then_they_are_and_can_be_taken_back(
    world: World,
) -> None:
    client = world.client("operator")
    world.site.node("elm", types=("other",))

    assert "the limit 4" in post(client, "/queues/slow/limit", limit="4", reason="a faster store")
    assert "the default type one" in post(client, "/queues/slow/type", type="one")
    spec = world.store.queue_admin.get("slow").in_force
    assert (spec.limit, spec.type) == (4, "one")
    page = get(client, "/queues/slow")
    assert "declared: 1" in page
    assert page.count("knows none of its job types") == 1

    assert "reset to what is declared" in post(client, "/queues/slow/declared", field="limit")
    assert "the limit 50% (" in post(client, "/queues/slow/limit", limit="50%")
    assert "50% (" in get(client, "/queues/slow")
    assert "50% (" in get(client, "/queues")
    assert "no limit" in post(client, "/queues/slow/limit", limit="")
    assert world.store.queue_admin.get("slow").in_force.limit is None


class _Counted(list[Any]):
    """A list that counts how often it is read."""

    reads = 0

    def __iter__(self) -> Iterator[Any]:
        self.reads += 1
        return super().__iter__()


def test_given_many_queues_then_their_holds_and_figures_are_read_once_for_all(world: World) -> None:
    control = world.control("ann")
    for name in ("slow", "default"):
        control.do(LayHold(scope=Scope.QUEUE, name=name, reason="the disk is full"))
    infos, stats = control.queries.queues(), world.store.statistics.stats(window_s=60, now_us=world.site.now)
    holds, figures = _Counted(control.queries.holds()), _Counted(stats.queues)
    listed = queues_page.QueueList(
        queues=infos, stats=replace(stats, queues=figures), holds=holds, types=(), nodes=()
    )

    rows = queues_page._rows(infos, listed, ())

    assert len(rows) == 2
    assert (holds.reads, figures.reads) == (1, 1)
    assert [row.info.queue for row in rows if any("is held by ann" in note for note in row.notes)] == [
        "default",
        "slow",
    ]


@pytest.mark.parametrize(("scope", "name"), [(Scope.QUEUE, "slow"), (Scope.EVERYTHING, "")])
def test_given_a_hold_on_a_queue_then_the_pages_of_queues_say_who_holds_it_and_why(
    world: World, scope: Scope, name: str
) -> None:
    world.control("ann").do(LayHold(scope=scope, name=name, reason="the disk is full"))

    for path in ("/queues", "/queues/slow"):
        assert "is held by ann, so that nothing starts: the disk is full" in get(world.client(), path)
    assert ("is held by" in get(world.client(), "/queues/default")) == (scope is Scope.EVERYTHING)


def test_given_pending_jobs_that_no_node_may_serve_then_the_queue_says_so_once(world: World) -> None:
    world.submit("one", queue="slow")
    here = world.site.here.name
    assert f'href="/nodes/{here}"' in get(world.client(), "/queues/slow")

    post(world.client("operator"), "/queues/slow/pinned", was="", nodes="elsewhere")

    page_text = get(world.client(), "/queues/slow")
    assert "None of the active nodes may serve this queue" in page_text
    assert "may not serve it" not in page_text


def test_given_pins_that_another_set_meanwhile_when_one_is_added_then_the_others_stay(world: World) -> None:
    client = world.client("operator")
    post(client, "/queues/slow/pinned", was="", nodes="oak, ash")
    world.control().do(ChangeQueue(name="slow", pin=["elm"]))

    page_text = post(client, "/queues/slow/pinned", was="oak, ash", nodes="oak yew")

    assert set(world.store.queue_admin.get("slow").in_force.pinned) == {"oak", "elm", "yew"}
    assert "no node has ever joined with the name yew" in page_text
    assert (
        "the list of nodes is unchanged"
        in post(client, "/queues/slow/barred", was="oak", nodes="oak").lower()
    )


@pytest.mark.parametrize("limit", ["four", "-1", "1.5", "9" * 30])
def test_given_no_number_when_it_is_to_be_a_limit_then_the_page_says_so(world: World, limit: str) -> None:
    assert "not a limit; enter a whole number" in post(
        world.client("operator"), "/queues/slow/limit", limit=limit
    )
    assert world.store.queue_admin.get("slow").in_force.limit == 1


def test_given_an_operator_when_he_makes_a_queue_then_it_is_there_and_an_admin_deletes_it(
    world: World,
) -> None:
    client = world.client("operator")

    assert "new is created" in post(
        client, "/queues", name="new", order="fifo", limit="2", reason="for imports"
    )
    assert world.store.queue_admin.get("new").in_force.order == "fifo"
    again = client.post("/queues", data={"name": "new", "limit": "7"}, headers=HTML)
    assert again.status_code == 422
    assert 'value="7"' in again.text
    assert "data-topics" not in again.text  # the next change would replace the form

    post(client, "/queues", name="fair", sharing="quota")
    assert "first in, first out" in get(client, "/queues")
    assert "a quota for each share" in get(client, "/queues")
    assert "no share takes all slots" in get(client, "/queues/fair")

    assert refused(client, "/queues/new/delete") == 403
    assert "is deleted" in post(world.client("admin"), "/queues/new/delete", reason="done")
    get(client, "/queues/new", 404)


def test_given_an_operator_of_one_queue_when_he_looks_then_he_may_set_it_and_sees_no_other(
    world: World,
) -> None:
    world.rights["keeper"] = Rights(role=Role.OPERATOR, within=AccessScope(queues=("slow",)))
    keeper = world.client("keeper")

    assert re.findall(r'id="queue-([^"]*)"', get(keeper, "/queues")) == ["slow"]
    get(keeper, "/queues/default", 404)
    assert "the limit 9" in post(keeper, "/queues/slow/limit", limit="9")
    assert refused(keeper, "/queues/default/limit", limit="9") == 403


# --- nodes ------------------------------------------------------------------------------------


def test_given_a_node_when_drained_resumed_and_given_slots_then_the_page_shows_it(
    world: World, locked: tuple[int, int]
) -> None:
    client = world.client("operator")
    name = world.store.fleet.all(now_us=world.control().clock())[0].node

    assert "takes no new jobs" in post(client, f"/nodes/{name}/drain", reason="a new <disk>")
    assert "a new &lt;disk&gt;" in get(client, "/nodes")
    assert "takes jobs again" in post(client, f"/nodes/{name}/resume")
    assert "9 slots" in post(client, f"/nodes/{name}/slots", slots="9")
    assert "as it was started with" in post(client, f"/nodes/{name}/slots", slots="")
    assert "no node" in post(client, "/nodes/nowhere/drain").lower()


# --- holds ------------------------------------------------------------------------------------


def test_given_a_hold_when_laid_then_it_shows_what_it_covers_and_is_released_with_all_others(
    world: World,
) -> None:
    client = world.client("operator")
    world.submit("one", queue="slow")

    page_text = post(client, "/holds", scope="queue", name="slow", reason="<b>", until="2h")
    assert "A hold is placed on queue slow" in page_text
    post(client, "/holds", scope="queue", name="slow", reason="another")
    shown = get(client, "/holds")
    assert "&lt;b&gt;" in shown
    assert "/jobs?state=held&amp;queue=slow" in shown
    assert "Also release all other holds on it" in shown

    first = world.store.holds.all()[0].id
    assert "2 holds on queue slow released" in post(
        client, f"/holds/{first}/release", all="1", reason="mended"
    )
    assert not world.store.holds.all()
    assert "there is no hold" in post(client, f"/holds/{first}/release").lower()


@pytest.mark.parametrize(
    "form",
    [
        {"scope": "queue", "name": "slow"},
        {"scope": "queue", "name": "slwo", "reason": "typo"},
        {"scope": "nothing", "name": "slow", "reason": "why"},
        {"scope": "job", "name": "seven", "reason": "why"},
        {"scope": "queue", "name": "slow", "reason": "why", "until": "soon"},
    ],
)
def test_given_a_hold_that_cannot_be_meant_when_sent_then_the_form_says_why_and_keeps_what_was_typed(
    world: World, form: dict[str, str]
) -> None:
    answer = world.client("operator").post("/holds", data=form, headers=HTML)

    assert answer.status_code == 422
    assert 'role="alert"' in answer.text
    assert f'value="{form["name"]}"' in answer.text
    assert "data-topics" not in answer.text  # the next change would replace the form
    assert not world.store.holds.all()


def test_given_the_page_of_holds_then_a_name_is_required_and_a_hold_on_everything_is_asked_about(
    world: World,
) -> None:
    client = world.client("operator")

    text = get(client, "/holds")

    assert re.search(r'<input id="lay-name"[^>]* required', text)
    assert '<option value="everything"' not in text
    question = text.partition('id="ask-everything"')[2].partition("</details>")[0]
    assert "No job of any queue starts until this hold is released" in question
    assert '<input type="hidden" name="scope" value="everything">' in question
    assert 'id="ask-everything"' not in get(world.client("limited"), "/holds")
    page_text = post(client, "/holds", scope="everything", reason="a move")
    assert "A hold is placed on everything: nothing new starts</" in page_text


def test_given_a_submitter_when_he_holds_his_job_then_he_may_release_it_and_no_other(world: World) -> None:
    mine = world.submit("one", submitter="submitter")
    others = world.control().do(LayHold(scope=Scope.QUEUE, name="slow", reason="not yours"))
    client = world.client("submitter")

    assert f"job {mine}" in post(client, "/holds", scope="job", name=f"#{mine}", reason="wait")
    text = get(client, "/holds")

    own = next(hold.id for hold in world.store.holds.all() if hold.by == "submitter")
    assert f"/holds/{own}/release" in text
    assert f"/holds/{others.id}/release" not in text
    assert refused(client, f"/holds/{others.id}/release") == 403
    assert "released" in post(client, f"/holds/{own}/release")


# --- locks ------------------------------------------------------------------------------------


def test_given_a_lock_when_it_is_freed_then_its_owner_has_lost_it(
    world: World, locked: tuple[int, int]
) -> None:
    client = world.client("operator")
    shown = get(client, "/locks")
    assert "receiver:SG-1" in shown
    assert f'href="/jobs/{locked[0]}"' in shown

    assert "reason" in post(client, "/locks/free", name="receiver:SG-1").lower()
    assert world.store.locks.get("receiver:SG-1")[0].owner_id == locked[0]
    assert "1 job lost the lock receiver:SG-1" in post(
        client, "/locks/free", name="receiver:SG-1", reason="it is gone"
    )

    assert all(line.owner_id != locked[0] for line in world.store.locks.get("receiver:SG-1"))


def test_given_a_family_when_its_capacity_is_set_then_it_is_and_can_be_taken_back(world: World) -> None:
    client = world.client("operator")

    assert "The capacity of receiver:* is now 3" in post(
        client, "/locks/capacity", name="receiver:*", capacity="3"
    )
    assert "receiver:*" in get(client, "/locks")
    assert "is not a capacity" in post(client, "/locks/capacity", name="receiver:*", capacity="many")
    assert "is reset" in post(client, "/locks/declared", name="receiver:*")

    assert not world.store.locks.capacities()


def test_given_an_operator_of_some_locks_when_he_names_another_then_he_is_refused(
    world: World, locked: tuple[int, int]
) -> None:
    world.rights["some"] = Rights(role=Role.OPERATOR, locks=("download:*",))

    assert "/locks/free" not in get(world.client("some"), "/locks")
    assert refused(world.client("some"), "/locks/free", name="receiver:SG-1", reason="mine") == 403


def test_given_a_stage_that_one_of_its_jobs_put_to_sleep_then_the_page_of_the_queue_says_why_nothing_runs(
    world: World,
) -> None:
    node = world.site.node("a", types=("one",))
    world.site.submit("one", n=3)
    (lease,) = world.site.claim(node, slots=1)
    world.site.record(lease, Outcome.DEFER, lane=True, delay_s=600.0)

    text = get(world.client("viewer"), "/queues/default")

    assert re.search(r"was put to sleep by one of its jobs, until [\d-]+ [\d:]+ UTC; its jobs wait", text)


# --- the audit --------------------------------------------------------------------------------


def test_given_what_was_done_when_the_audit_is_read_then_it_tells_it_and_filters(world: World) -> None:
    client = world.client("operator")
    post(client, "/queues/slow/limit", limit="4", reason="a <faster> store")
    world.control("admin").do(ChangeQueue(name="slow", limit=5, reason="other"))

    assert "a &lt;faster&gt; store" in get(client, "/audit")
    mine = get(client, "/audit?by=operator&verb=queue")
    assert "a &lt;faster&gt; store" in mine
    assert ">other<" not in mine
    assert "No entry matches" in get(client, "/audit?verb=nothing")


def test_given_jobs_that_retention_removed_then_their_ranges_are_shown(world: World) -> None:
    retention, jobs = world.store.retention, world.site.submit("one", n=3)
    for job in jobs:
        world.site.cancel(job)
    retention.set("one", "cancelled", 0.0, Actor(by="ann", call="c"), now_us=world.site.now)
    after: int | None = 0
    for _ in range(2):  # it marks what is to go, then removes it
        _, after = retention.sweep(after or 0, Actor(by="oak", call="r"), now_us=world.site.now + 1)

    text = get(world.client("operator"), "/audit?verb=remove")

    assert f"jobs {jobs[0]}-{jobs[2]}" in text
    assert " more" not in text


def test_given_a_long_entry_then_all_of_it_unfolds(world: World) -> None:
    world.control().do(ChangeQueue(name="slow", pin=[f"{'a-long-name-' * 5}{n}" for n in range(4)]))

    text = get(world.client("operator"), "/audit")

    assert '<details class="fold"><summary>queue slow, ' in text
    assert "a-long-name-3</p></details>" in text


def test_given_many_entries_when_paged_then_each_is_shown_once(world: World) -> None:
    control = world.control()
    for n in range(60):
        control.do(ChangeQueue(name="slow", limit=n))
    client = world.client("operator")

    first = get(client, "/audit?verb=queue")
    older = re.search(r'href="(/audit\?after=[^"]*)"', first)
    assert older is not None
    second = get(client, older[1].replace("&amp;", "&"))

    entries = re.findall(r'id="call-(\d+)"', first) + re.findall(r'id="call-(\d+)"', second)
    assert len(entries) == len(set(entries)) == 60


def test_given_a_head_when_the_audit_is_proven_then_the_page_says_so_and_a_wrong_one_does_not(
    world: World,
) -> None:
    world.control().do(ChangeQueue(name="slow", limit=3))
    admin = world.client("admin")
    head = world.store.audit.head()
    number = head.partition(":")[0]

    whole = admin.post("/audit/prove", data={"head": head}, headers=HTML)
    wrong = admin.post("/audit/prove", data={"head": f"{number}:{'0' * 64}"}, headers=HTML)
    nonsense = admin.post("/audit/prove", data={"head": "nonsense"}, headers=HTML)

    assert "intact, and those up to that head are the same" in whole.text
    for answer in (wrong, nonsense):
        assert 'role="alert"' in answer.text
    assert refused(world.client("operator"), "/audit/prove", head=head) == 403


@pytest.mark.parametrize(
    ("what", "words"),
    [
        (
            {"queue": "slow", "limit": 6, "barred": ["oak"], "pinned": "as declared"},
            "queue slow, limit 6, not on nodes oak, only on nodes as declared",
        ),
        (
            {"queue": "slow", "barred": "none", "pinned": "none"},
            "queue slow, barred from no node, pinned to no node",
        ),
        ({"jobs": [11]}, "job 11"),
        ({"user": "ann", "password": True}, "user ann, with a password"),
        ({"user": "ann", "password": False}, "user ann, without a password"),
        (
            {"hold": 7, "name": "thumbnail", "scope": "type", "until_us": 1_796_227_396_985_138},
            "hold 7 on type thumbnail, until 2026-12-02 16:03:16 UTC",
        ),
        ({"hold": 8, "name": "", "scope": "all"}, "hold 8 on all jobs"),
        (
            {"many": list(range(7)), "tree": True, "force": False, "which": {"states": ["failed"]}},
            "many 0 1 2 3 4 and 2 more, with all subjobs, filter (state failed)",
        ),
        (
            {"every_s": 5400.0, "params": {"url": "https://a.example", "n": 3}, "schedule": "hourly"},
            "schedule hourly, every 90 minutes, parameters (url https://a.example, n 3)",
        ),
        (
            {
                "rights": {
                    "role": "operator",
                    "within": {"collections": ["maps"], "queues": None},
                    "priorities": [10, 90],
                },
                "user": "ann",
            },
            "user ann, role operator, only collections maps, priorities 10 to 90",
        ),
        (
            {"keep_s": None, "state": "failed", "type": "scan"},
            "kept for ever, state failed, type scan",
        ),
        ({"keep_s": "as declared", "type": "scan"}, "kept as declared, type scan"),
        ({"keep_s": 2_592_000.0, "type": "scan"}, "kept 30 days, type scan"),
        ({"node": "oak", "slots": None}, "node oak, slots as each node is started with"),
        ({"user": None}, ""),  # the link for the first admin, who has no name yet
    ],
)
def test_given_details_of_a_call_when_put_into_words_then_people_can_read_them(
    what: dict[str, Any], words: str
) -> None:
    assert in_words(what, moment) == words


def test_given_details_that_name_some_of_the_jobs_then_the_others_are_counted() -> None:
    assert in_words({"jobs": [1, 2, 3, 4, 5, 6]}, moment, 1_200) == "jobs 1 2 3 4 5 and 1,195 more"
    assert in_words({"jobs": [1, 2]}, moment, 2) == "jobs 1 2"
    assert (
        in_words({"jobs": [8, 9], "below": [7], "tree": True}, moment, 2)
        == "jobs 8 9, below job 7, with all subjobs"
    )
    assert in_words({"jobs": [1]}, moment, 2) == "jobs 1 and 1 more"


# --- the API ----------------------------------------------------------------------------------


def test_given_the_document_of_the_api_when_its_page_is_read_then_every_route_is_on_it(world: World) -> None:
    text = get(world.client("viewer"), "/api")
    document = world.client("viewer").get("/api/v1/openapi.json").json()

    for path in document["paths"]:
        assert f">{path}</code>" in text


def test_given_a_group_when_it_is_chosen_then_its_routes_tell_parameters_and_problems(world: World) -> None:
    text = get(world.client("viewer"), "/api?group=queues")

    assert ">/api/v1/queues/{name}</code>" in text
    assert "<code>csv</code> answers with the whole list, or <code>limit</code> of it" in text
    assert ">/api/v1/jobs</code>" not in text
    assert ">404</span>" in text
