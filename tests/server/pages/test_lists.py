"""Lists of jobs: subjects, order, columns, filters that are kept, and whom a verb on many is for."""

import re
import threading
from typing import Any

import pytest
from starlette.testclient import TestClient

from server.conftest import RIGHTS, World
from server.pages.test_pages import HTML, get
from spinney.features.bulk import verb_forms
from spinney.features.bulk.service import Bulk
from spinney.features.jobs import sql
from spinney.features.queues.commands import CreateQueue
from spinney.features.queues.page import PAGE
from spinney.features.schedules.commands import PutSchedule
from spinney.model.jobs import Filter, Submission
from spinney.model.operators.bulk_orders import Verb
from spinney.model.operators.bulk_runs import Plan
from spinney.model.rights.actor import Actor
from spinney.web.pages import filters
from spinney.web.request_context import now_us


def listed(text: str) -> list[int]:
    """The numbers of the listed jobs, in their order."""
    return [int(number) for number in re.findall(r'id="job-(\d+)"', text)]


def headings(text: str) -> list[str]:
    row = text[text.index("<thead>") : text.index("</thead>")]
    return [re.sub(r"<[^>]*>", "", cell).strip() for cell in re.findall(r"<th[ >].*?</th>", row, re.S)]


# --- subjects ---------------------------------------------------------------------------------


def test_given_two_jobs_of_a_type_when_listed_then_their_subjects_differ_and_have_no_secrets(
    world: World,
) -> None:
    world.submit("double", {"n": 1, "name": "<b>birds</b>", "pin": "tell-nobody"})
    job = world.submit("double", {"n": 2, "name": "maps"})

    text = get(world.client("viewer"), "/jobs")

    assert 'class="subject">&lt;b&gt;birds&lt;/b&gt; · n=1</td>' in text
    assert 'class="subject">maps · n=2</td>' in text
    assert world.client("viewer").get(f"/api/v1/jobs/{job}").json()["subject"] == "maps · n=2"
    assert "tell-nobody" not in text


# --- order ------------------------------------------------------------------------------------


@pytest.fixture
def ordered(world: World) -> list[int]:
    """Three jobs: of different priorities, and one that has ended."""
    jobs = [world.submit("one", priority=priority) for priority in (50, 10, 70)]
    world.site.pass_(world.site.claim_by_job()[jobs[0]])
    return jobs


def test_given_a_heading_when_followed_then_the_list_is_sorted_by_it_and_back(
    world: World, ordered: list[int]
) -> None:
    client, (first, second, third) = world.client("viewer"), ordered
    client.cookies.set("spinney_columns", "priority.ended")

    assert listed(get(client, "/jobs?sort=priority")) == [second, first, third]
    assert listed(get(client, "/jobs?sort=-priority&state=claimed")) == [third, second]
    text = get(client, "/jobs?sort=-ended")
    assert listed(text)[0] == first  # jobs without a value come last
    assert 'aria-sort="descending"><a href="/jobs?sort=ended">' in text
    assert listed(get(client, "/jobs?sort=job")) == ordered
    assert listed(get(client, "/jobs?sort=nothing")) == ordered[::-1]


def test_given_more_jobs_than_are_sorted_then_the_page_says_so_and_each_page_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql, "SORTED_MAX", 60)
    jobs = world.site.submit("one", n=70)
    client = world.client("viewer")

    first = get(client, "/jobs?sort=priority")
    address = re.search(r'href="([^"]+)" rel="next"', first)

    assert "Sorted among the newest" in first
    assert address is not None
    second = get(client, address[1].replace("&amp;", "&"))
    assert listed(first) + listed(second) == jobs[::-1][:60]
    assert "Sorted among" not in get(client, "/jobs?sort=priority&type=three")


def test_given_many_newer_jobs_that_have_not_begun_when_sorted_by_what_they_took_then_one_that_ended_is_first(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql, "SORTED_MAX", 3)
    ended = world.submit("one")
    world.site.fail(world.site.run(ended))
    newer = world.site.submit("one", n=5)
    client = world.client("viewer")

    for sort in ("-took", "took", "-ended"):
        assert listed(get(client, f"/jobs?sort={sort}")) == [ended, *newer[:2:-1]]
    assert listed(get(client, "/jobs?sort=-took&state=pending")) == newer[:1:-1]


def test_given_many_newer_jobs_cancelled_before_they_began_when_sorted_then_one_that_took_time_is_first(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql, "SORTED_MAX", 3)
    ended = world.submit("one")
    world.site.fail(world.site.run(ended))
    newer = world.site.submit("one", n=5)
    for job_id in newer:
        world.site.cancel(job_id)

    assert listed(get(world.client("viewer"), "/jobs?sort=-took")) == [ended, *newer[:2:-1]]


def test_given_a_filter_without_index_when_sorted_then_only_the_newest_jobs_are_examined(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = world.site.submit("three", n=5)
    monkeypatch.setattr(sql, "EXAMINED_MAX", 3)
    client = world.client("viewer")

    text = get(client, "/jobs?sort=priority&stage=first")

    assert listed(text) == jobs[:1:-1]
    assert "Sorted among the newest" in text
    assert "data-topics" not in text
    assert "data-topics" in get(client, "/jobs?sort=priority&type=three")
    assert listed(get(client, "/jobs?sort=priority&type=three")) == jobs[::-1]


def test_given_limits_when_sorted_then_only_visible_jobs_are_there(world: World) -> None:
    world.submit("one", collection="other")
    mine = world.submit("one", collection="lab")

    assert listed(get(world.client("limited"), "/jobs?sort=priority")) == [mine]


@pytest.mark.parametrize("key", sql.SORT_KEYS)
def test_given_any_key_when_sorted_then_each_job_is_there_once(
    world: World, ordered: list[int], key: str
) -> None:
    for descending in (True, False):
        page = world.store.job_lists.sorted_ids(
            Filter(), key, descending=descending, offset=0, limit=10, now_us=1
        )
        assert sorted(page.ids) == ordered
        assert not page.partial


# --- columns ----------------------------------------------------------------------------------


def test_given_a_stage_that_is_named_otherwise_than_its_type_then_it_stands_below_the_type(
    world: World,
) -> None:
    world.submit("batch")
    world.submit("double")

    assert re.findall(r'<td data-label="Type">(.*?)</td>', get(world.client("viewer"), "/jobs")) == [
        "double",
        'batch <span class="stage sub">expand</span>',
    ]


def test_given_columns_when_chosen_then_the_list_has_them_until_they_are_reset(world: World) -> None:
    world.submit("one", submitter="ann")
    client = world.client("viewer")
    client.cookies.clear()
    assert headings(get(client, "/jobs")) == [
        "Job",
        "State",
        "Type",
        "Subject",
        "Created",
        "Took",
        "Ended",
        "Message",
    ]

    answer = client.post(
        "/jobs/columns", data={"column": ["submitter", "queue", "bogus"], "query": "type=one"}
    )
    assert answer.headers["location"] == "/jobs?type=one"
    assert headings(get(client, "/jobs")) == ["Job", "State", "Queue", "Submitter"]

    client.post("/jobs/columns", data={"column": "stage"})
    assert headings(get(client, "/jobs")) == ["Job", "State", "Stage"]

    client.post("/jobs/columns", data={"column": "queue", "reset": "1"})
    assert "Message" in headings(get(client, "/jobs"))


def test_given_filters_then_the_folded_form_names_them_as_its_fields_do(world: World) -> None:
    text = get(world.client("viewer"), "/jobs?root=7&created_after=2h&roots=1&queue=slow")

    filters = re.findall(r'<span class="given">(.*?)</span>', text)
    assert filters == [
        "in the tree of job: <b>7</b>",
        "submitted since: <b>2h</b>",
        "<b>root jobs only</b>",
        "queue: <b>slow</b>",
    ]


def test_given_a_scheduled_job_then_the_list_says_when_it_is_due(world: World) -> None:
    due_us = now_us() + 7_200_000_000
    world.store.submit([Submission(type="one", at_us=due_us)], now_us=now_us())

    (message,) = re.findall(r'<td data-label="Message".*</td>', get(world.client("viewer"), "/jobs"))

    assert re.search(r'due <time datetime="[^"]*" title="[^"]*" data-ago>in 2 h</time>', message)


# --- saved filters ----------------------------------------------------------------------------


def save(client: TestClient, name: str, query: str) -> str:
    answer = client.post("/jobs/saved", data={"name": name, "query": query}, headers=HTML)
    assert answer.status_code == 303
    return get(client, answer.headers["location"])


@pytest.fixture
def users(world: World) -> World:
    """A world in which Ann and Bob have accounts."""
    world.rights |= {"ann": RIGHTS["viewer"], "bob": RIGHTS["viewer"]}
    return world


def test_given_a_filter_that_was_saved_then_its_owner_alone_sees_it_wherever_he_looks(users: World) -> None:
    world = users
    text = save(world.client("ann"), "my <failures>", "state=failed&created_after=2h&sort=-ended")

    assert "saved as “my &lt;failures&gt;”" in text
    link = 'href="/jobs?state=failed&amp;created_after=2h&amp;sort=-ended">my &lt;failures&gt;</a>'
    assert link in text
    world.clients.clear()  # another browser
    assert link in get(world.client("ann"), "/jobs")
    assert "my &lt;failures" not in get(world.client("bob"), "/jobs")

    world.client("ann").post("/jobs/saved", data={"name": "my <failures>", "query": "", "remove": "1"})
    assert world.store.saved_filters.all("ann") == {}


@pytest.mark.parametrize(
    ("name", "query", "reason"),
    [
        ("", "state=failed", "ive the filter a name"),
        ("x" * 61, "state=failed", "ive the filter a name"),
        ("x", "typ=one", "not valid"),
        ("x", "type=" + "x" * 5000, "not valid"),
    ],
)
def test_given_what_cannot_be_saved_then_the_page_says_why(
    users: World, name: str, query: str, reason: str
) -> None:
    answer = users.client("ann").post("/jobs/saved", data={"name": name, "query": query}, headers=HTML)

    assert reason in users.client("ann").get("/jobs", headers=HTML).text
    assert answer.status_code == 303
    assert users.store.saved_filters.all("ann") == {}


def test_given_somebody_without_an_account_then_no_filter_is_saved(world: World) -> None:
    text = save(world.client("viewer"), "mine", "state=failed")

    assert "Filters are saved for users who have an account" in text
    assert "Save this filter" not in get(world.client("viewer"), "/jobs?state=failed")
    assert world.store.saved_filters.all("viewer") == {}


def test_given_a_user_who_is_deleted_then_his_filters_are_gone(world: World) -> None:
    actor = Actor(by="admin", call="1")
    for name in ("ann", "bob"):
        world.store.accounts.add(name, RIGHTS["viewer"], None, actor, now_us=1)
        world.store.saved_filters.save(name, "his", "state=failed")

    world.store.accounts.delete("ann", actor, now_us=2)

    assert world.store.saved_filters.all("ann") == {}
    assert world.store.saved_filters.all("bob") == {"his": "state=failed"}


# --- suggestions, and whom a verb is for ------------------------------------------------------


def test_given_jobs_then_filters_suggest_what_there_is_within_sight(world: World) -> None:
    world.submit("one", collection="lab", submitter="ann")
    world.submit("one", collection="secret", submitter="bob")

    text, within = get(world.client("admin"), "/jobs"), get(world.client("limited"), "/jobs")

    for name in ("lab", "secret", "ann", "bob", "double", "slow", "second"):
        assert f'<option value="{name}">' in text, name
    assert '<option value="lab">' in within
    assert '<option value="secret">' not in within
    assert '<option value="bob">' not in within


def test_given_a_key_in_use_when_searched_then_it_leads_to_its_job_as_a_number_does(world: World) -> None:
    job = world.submit(keys=("idx-b",))
    client = world.client("viewer")

    assert client.get("/search?q=idx-b").headers["location"] == f"/jobs/{job}"
    assert client.get(f"/search?q=%23{job}").headers["location"] == f"/jobs/{job}"
    assert client.get("/search?q=idx").headers["location"] == "/jobs?message=idx"


def test_given_a_name_that_no_message_holds_when_searched_then_its_jobs_are_offered(world: World) -> None:
    world.submit("double", {"n": 1}, queue="slow")
    client = world.client("viewer")

    of_type, in_queue, nothing = (get(client, f"/jobs?message={text}") for text in ("double", "slow", "nay"))

    for text in (of_type, in_queue, nothing):
        assert "Only numbers, keys in use and messages were searched" in text
    assert '<a href="/jobs?type=double">Jobs of type double</a>' in of_type
    assert '<a href="/jobs?queue=slow">Jobs in queue slow</a>' in in_queue
    assert ">Jobs of " not in nothing
    assert "were searched" not in get(client, "/jobs?message=nay&type=double")


def test_given_several_states_then_they_are_one_choice_of_the_form_and_another_choice_replaces_them_all(
    world: World,
) -> None:
    job = world.submit("one")
    client = world.client("viewer")

    for query in ("state=running&state=pending", "state=running,+pending"):
        text = get(client, f"/jobs?{query}")
        form = text.partition('aria-label="Filter jobs"')[2].partition("</form>")[0]
        assert '<option value="running, pending" selected>' in form
        assert 'type="hidden" name="state"' not in form
        assert "state=running&amp;state=pending&amp;sort=" in text
        assert listed(text) == [job]


@pytest.mark.parametrize("path", ["/jobs", "/batches"])
def test_given_a_state_that_does_not_exist_then_the_page_says_so(world: World, path: str) -> None:
    answer = world.client("viewer").get(f"{path}?state=runing", headers=HTML)

    assert answer.status_code == 422
    assert "there is no state &#39;runing&#39;" in answer.text


def test_given_a_filter_by_state_then_only_verbs_for_that_state_are_offered(world: World) -> None:
    world.site.submit(n=2)
    world.site.submit(at_us=world.site.now + 10**9)
    world.site.fail(world.site.claim_one())
    client = world.client("operator")

    def offered(query: str) -> list[str]:
        return re.findall(r'name="verb" value="([a-z-]+)"', get(client, f"/jobs?{query}"))

    assert offered("state=scheduled") == ["run-now", "cancel", "hold", "release", "move", "priority"]
    assert offered("state=failed") == ["retry", "rerun", "delete"]
    assert offered("state=pending") == ["cancel", "hold", "release", "move", "priority"]
    assert offered("") == [str(verb) for verb in Verb]


def test_given_a_retry_of_many_then_only_stages_that_their_types_have_are_offered(world: World) -> None:
    world.submit("three")
    world.site.fail(world.site.claim_one())
    client = world.client("operator")

    def stages(query: str) -> list[str]:
        text = get(client, f"/jobs/verbs?{query}")
        select = text.partition('name="from_stage"')[2].partition("</select>")[0]
        return [stage for stage in re.findall(r'<option value="(\w+)"', select) if stage]

    assert stages("verb=retry&all=1&state=failed") == ["first", "second", "third"]
    assert stages("verb=retry&id=1") == ["first", "second", "third"]


def test_given_the_box_for_all_when_a_verb_is_asked_for_then_it_is_for_all_that_match(world: World) -> None:
    jobs = world.site.submit("one", n=3)
    client = world.client("operator")

    assert "Cancel 1 job?" in get(client, f"/jobs/verbs?verb=cancel&type=one&id={jobs[0]}")
    assert "Cancel 3 jobs?" in get(client, f"/jobs/verbs?verb=cancel&type=one&all=1&id={jobs[0]}")


def test_given_a_filter_by_stage_when_a_verb_is_for_all_then_only_the_listed_jobs_are_deleted(
    world: World,
) -> None:
    kept, listed_job = world.submit("one"), world.submit("three")
    for claim in world.site.claim_by_job().values():
        world.site.fail(claim)
    client = world.client("operator")
    assert listed(get(client, "/jobs?stage=first")) == [listed_job]

    assert "Delete 1 job?" in get(client, "/jobs/verbs?verb=delete&all=1&stage=first")
    form = {"verb": "delete", "all": "1", "stage": "first", "expect": "1"}
    answer = client.post("/jobs/verbs", data=form, headers=HTML)

    assert answer.headers["location"] == "/jobs?stage=first"
    assert {job: world.store.job(job).state for job in (kept, listed_job)} == {
        kept: "failed",
        listed_job: "deleted",
    }


def test_given_a_verb_then_it_is_tried_once_before_it_is_confirmed_in_a_thread_for_long_calls(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.submit("one")
    plans, plan = [], Bulk.plan

    def planned(self: Bulk, *args: Any, **options: Any) -> Plan:
        plans.append((threading.current_thread().name.rpartition("_")[0], options.get("exact", False)))
        return plan(self, *args, **options)

    monkeypatch.setattr(Bulk, "plan", planned)
    client = world.client("operator")
    form = {"verb": "cancel", "all": "1", "type": "one", "expect": "1"}
    client.get("/jobs/verbs?verb=cancel&all=1&type=one", headers=HTML)
    client.post("/jobs/verbs", data=form, headers=HTML)

    assert plans == [("store-long", True), ("store-long", False)]


def test_given_the_fields_of_forms_with_a_verb_then_none_has_the_name_of_a_filter() -> None:
    assert set(verb_forms.FIELDS).isdisjoint(filters.NAMES)


def test_given_jobs_that_the_verb_would_leave_as_they_are_then_only_the_others_are_named(
    world: World,
) -> None:
    failed = world.submit("three")
    world.site.fail(world.site.claim_one())
    pending, held = world.submit("one"), world.submit("one")
    client = world.client("operator")
    client.post(f"/jobs/{held}/verb", data={"verb": "hold", "reason": "why"}, headers=HTML)

    ids = "&".join(f"id={job}" for job in (pending, failed, held))
    assert listed(get(client, f"/jobs/verbs?verb=retry&{ids}")) == [failed]
    assert listed(get(client, f"/jobs/verbs?verb=release&{ids}")) == [held]
    assert listed(get(client, f"/jobs/verbs?verb=priority&{ids}")) == [held, pending]
    planned = client.post(
        "/api/v1/jobs/verbs", json={"verb": "retry", "ids": [pending, failed, held], "dry_run": True}
    ).json()
    assert (planned["jobs"], planned["sample"]) == (1, [failed])


def test_given_jobs_that_the_verb_would_be_refused_for_then_the_page_says_why(world: World) -> None:
    needed, other = world.submit("three"), world.submit("three")
    for _ in range(2):
        world.site.fail(world.site.claim_one())
    behind = world.submit("one", needs=(needed,))
    client = world.client("operator")

    why = f"Job {behind} would fail again at once, since job {needed}, which it needs, failed"
    some = get(client, f"/jobs/verbs?verb=retry&id={other}&id={behind}")
    assert "Retry 1 job?" in some
    assert why in some
    none = get(client, f"/jobs/verbs?verb=retry&id={behind}")
    assert why in none
    assert "in a state that allows it" not in none


def test_given_a_submitter_without_jobs_when_a_verb_is_for_all_of_others_then_the_page_says_that_none_is_his(
    world: World,
) -> None:
    world.submit("one", submitter="ann")

    text = get(world.client("submitter"), "/jobs/verbs?verb=cancel&all=1&type=one")

    assert "No matching job of yours is in a state that allows it." in text


def test_given_nothing_ticked_when_a_verb_is_asked_for_then_it_is_for_no_job(world: World) -> None:
    jobs = world.site.submit("one", n=3)
    client = world.client("operator")

    shown = client.get("/jobs/verbs?verb=cancel&type=one", headers=HTML)
    response = client.post("/jobs/verbs", data={"verb": "cancel", "type": "one", "expect": "3"}, headers=HTML)

    for answer in (shown, response):
        assert answer.status_code == 422
        assert "no job is chosen" in answer.text.lower()
    assert {world.store.job(job).state for job in jobs} == {"pending"}


def test_given_ticked_jobs_with_an_expected_number_that_is_none_then_the_verb_is_refused(
    world: World,
) -> None:
    [job] = world.site.submit("one", n=1)

    response = world.client("operator").post(
        "/jobs/verbs", data={"verb": "cancel", "id": str(job), "expect": "²"}, headers=HTML
    )

    assert response.status_code == 422
    assert world.store.job(job).state == "pending"


@pytest.mark.parametrize(
    "sent",
    [
        {"created_before": "yesterdy", "expect": "3"},
        {"sate": "failed", "expect": "3"},
        {"type": "one"},
        {"type": "one", "expect": "many"},
        {"type": "one", "expect": "9" * 5000},
    ],
)
def test_given_all_with_an_invalid_filter_or_no_expected_number_then_a_verb_is_done_to_no_job(
    world: World, sent: dict[str, str]
) -> None:
    jobs = world.site.submit("one", n=3)

    response = world.client("operator").post(
        "/jobs/verbs", data={"verb": "cancel", "all": "1", **sent}, headers=HTML
    )

    assert response.status_code == 422
    assert {world.store.job(job).state for job in jobs} == {"pending"}


@pytest.mark.parametrize(
    "path",
    [
        "/jobs?state=pending&state=failed&type=one&created_after=2h",
        "/batches?type=batch",
        "/holds",
        "/locks",
        "/nodes",
        "/queues",
        "/inboxes",
        "/schedules",
        "/audit?verb=hold",
        "/webhooks",
        "/users",
    ],
)
def test_given_a_page_with_a_list_then_its_link_leads_to_the_list_as_csv(world: World, path: str) -> None:
    jobs = world.site.submit("one", n=2)
    world.submit("three")
    client = world.client("admin")

    (address,) = re.findall(r'href="(/api/v1/[^"]*format=csv[^"]*)"', get(client, path))
    answer = client.get(address.replace("&amp;", "&"))

    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/csv")
    if path.startswith("/jobs"):
        assert [line.split(",")[0] for line in answer.text.splitlines()[1:]] == [str(n) for n in jobs[::-1]]


@pytest.mark.parametrize("path", ["/queues", "/schedules"])
def test_given_more_names_than_fit_on_a_page_then_the_next_page_has_the_rest(world: World, path: str) -> None:
    names = [f"service-{n:03d}" for n in range(PAGE + 1)]
    for name in names:
        world.control().do(
            CreateQueue(name=name)
            if path == "/queues"
            else PutSchedule(name=name, type="double", every_s=60, params={"n": 1})
        )
    client = world.client("admin")

    def shown(text: str) -> list[str]:
        return re.findall(r'<tr id="[a-z]+-(service-\d+)"', text)

    first = get(client, path)
    (address,) = re.findall(rf'href="({path}[?]after=[^"]*)" rel="next"', first)
    second = get(client, address)

    assert (shown(first) + shown(second), len(shown(first)) <= PAGE) == (names, True)
    assert 'rel="next"' not in second
    assert f'<a class="button quiet" href="{path}">First</a>' in second


@pytest.mark.parametrize("path", ["/queues", "/schedules", "/locks"])
def test_given_a_page_whose_names_are_gone_then_it_does_not_say_that_there_are_none_and_leads_to_the_first(
    world: World, path: str
) -> None:
    text = get(world.client("admin"), f"{path}?after=zebra")

    assert re.findall(r'class="title">([^<]*)<', text)[0] == f"No more {path[1:]}"
    assert f'<a class="button quiet" href="{path}">First</a>' in text
