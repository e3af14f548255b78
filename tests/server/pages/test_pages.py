"""Pages over HTTP: who gets which, what they say, and that nothing in them is anybody else's script."""

import re
from collections.abc import Iterator
from html import escape
from html.parser import HTMLParser

import pytest
from fastapi.routing import APIRoute
from starlette.testclient import TestClient

from server.conftest import World
from spinney.features.bulk import verb_forms as verbs
from spinney.features.holds.commands import LayHold
from spinney.model.access import Role
from spinney.model.errors import StoreReplaced, StoreUnavailable, StoreUnusable
from spinney.model.jobs import Submission
from spinney.model.outcomes import Outcome
from spinney.model.settings.holds import Scope
from spinney.server import pages as ui
from spinney.service.queries import Queries

HTML = {"Accept": "text/html"}
OPEN = ("/static/", "/sign-in", "/sign-out", "/welcome")
"""For who is not known yet."""
NASTY = "<img src=x onerror=alert(1)>'\"{{ 7*7 }}"


def get(client: TestClient, path: str) -> str:
    answer = client.get(path, headers=HTML)
    assert answer.status_code == 200, (path, answer.status_code, answer.text[:300])
    return str(answer.text)


@pytest.mark.parametrize(
    ("path", "back"),
    [
        ("/jobs/999", "/jobs"),
        ("/users/nobody", "/users"),
        ("/nowhere", "/jobs"),
        ("/jobs/abc", "/jobs"),
        ("/batches/abc", "/batches"),
        ("/failures/zzzz", "/failures"),
    ],
)
def test_given_nothing_at_an_address_then_the_page_leads_to_the_list_of_its_kind(
    world: World, path: str, back: str
) -> None:
    answer = world.client("admin").get(path, headers=HTML)

    assert answer.status_code == 404
    assert f'<a class="button primary" href="{back}">Show ' in answer.text


def elements(text: str) -> list[tuple[str, dict[str, str]]]:
    """The elements of a page, as a browser finds them."""
    links: list[tuple[str, dict[str, str]]] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            links.append((tag, {name: value or "" for name, value in attrs}))

    Reader().feed(text)
    return links


def test_given_an_address_with_the_name_of_another_host_then_no_link_leads_there(world: World) -> None:
    answer = world.client("viewer").get("http://localhost//example.org/jobs?state=failed", headers=HTML)

    assert answer.status_code == 404
    (refresh,) = [
        attributes["href"] for _, attributes in elements(answer.text) if "data-refresh" in attributes
    ]
    assert refresh == "/example.org/jobs?state=failed"


@pytest.fixture
def failed(world: World) -> int:
    """A job that failed with a message that would like to be markup."""
    job = world.submit("three", {"name": NASTY}, submitter="submitter", collection="lab")
    lease = world.site.claim_by_job()[job]
    trace = 'Traceback (most recent call last):\n  File "<script>", line 1, in f\nValueError: <b>bad</b>'
    error = {"type": "ValueError", "message": "<b>bad</b>", "traceback": trace}
    world.site.record(lease, Outcome.ERROR, message=NASTY, error=error, retryable=False)
    return job


def paths(job: int) -> Iterator[str]:
    yield from (
        "/",
        "/jobs",
        "/jobs?state=failed",
        "/jobs/verbs?verb=retry&all=1&state=failed",
    )
    yield from (f"/jobs/{job}{part}" for part in ("", "/output", "/files", "/below", "/postmortem"))


# --- who --------------------------------------------------------------------------------------


def test_given_nobody_when_any_page_is_asked_for_then_he_is_led_to_sign_in_and_back(world: World) -> None:
    nobody = world.client(None)
    pages = [
        route.path
        for router in ui.routers()
        for route in router.routes
        if isinstance(route, APIRoute) and "GET" in (route.methods or ()) and not route.path.startswith(OPEN)
    ]
    assert len(pages) >= 12

    for path in pages:
        url = re.sub(r"\{[^}]*\}", "1", path)
        answer = nobody.get(url, headers=HTML)
        assert answer.status_code == 303, path
        assert answer.headers["location"].startswith("/sign-in"), path


def test_given_nobody_when_a_script_of_a_page_asks_then_it_is_told_where_to_sign_in(world: World) -> None:
    answer = world.client(None).get(
        "/jobs", headers={"HX-Request": "true", "HX-Current-URL": "http://localhost/jobs?type=a"}
    )

    assert answer.status_code == 401
    assert answer.headers["hx-redirect"] == "/sign-in?next=%2Fjobs%3Ftype%3Da"


@pytest.mark.parametrize("script", [False, True])
def test_given_a_session_that_has_ended_when_a_form_is_sent_then_the_sign_in_page_says_that_nothing_was_done(
    world: World, script: bool
) -> None:
    where = "http://localhost/submit?type=one"
    headers = {"HX-Request": "true", "HX-Current-URL": where} if script else {**HTML, "Referer": where}

    answer = world.client(None).post("/submit", data={"type": "one"}, headers=headers)

    assert answer.status_code == (401 if script else 303)
    assert answer.headers["hx-redirect" if script else "location"] == "/sign-in?next=%2Fsubmit%3Ftype%3Done"
    cookie = answer.headers["set-cookie"].partition(";")[0]
    assert "nothing was done" in world.client("viewer").get("/jobs", headers=HTML | {"Cookie": cookie}).text


@pytest.mark.parametrize("error", [StoreUnavailable, StoreReplaced, StoreUnusable])
@pytest.mark.parametrize("page", ["/jobs?state=failed&type=one", "/jobs/1"])
def test_given_a_store_that_is_away_then_the_page_leads_to_where_it_can_be_tried_again(
    world: World, monkeypatch: pytest.MonkeyPatch, page: str, error: type[StoreUnusable]
) -> None:
    def away(*_: object, **__: object) -> None:
        raise error("the store does not answer")

    monkeypatch.setattr(Queries, "jobs", away)
    monkeypatch.setattr(verbs, "run_on", away)
    client, headers = world.client("operator"), {**HTML, "Referer": f"http://localhost{page}"}

    if page == "/jobs/1":
        answer = client.post("/jobs/1/verb", data={"verb": "retry"}, headers=headers)
    else:
        answer = client.get(page, headers=HTML)

    assert answer.status_code == 503
    assert f'href="{escape(page)}">Try again</a>' in answer.text
    # Somebody may have put another store in its place.
    assert ("Nothing is lost" in answer.text) is (error is StoreUnavailable)


def test_given_the_address_of_a_form_without_a_form_then_it_leads_to_the_page_of_the_form(
    world: World, failed: int
) -> None:
    client = world.client("admin")

    for path, page in ((f"/jobs/{failed}/verb", f"/jobs/{failed}"), ("/sign-out", "/")):
        answer = client.get(path, headers=HTML)
        assert (answer.status_code, answer.headers["location"]) == (303, page)
    assert client.get(f"/jobs/{failed}/verb").status_code == 405


@pytest.mark.parametrize("role", list(Role))
def test_given_any_role_when_pages_are_read_then_all_are_there(world: World, failed: int, role: Role) -> None:
    for path in paths(failed):
        if "/verbs" not in path or role.rank >= Role.OPERATOR.rank:
            get(world.client(str(role)), path)
    if role is Role.VIEWER:
        refused = world.client("viewer").get("/jobs/verbs?verb=retry&all=1&state=failed", headers=HTML)
        assert refused.status_code == 403


def test_given_somebody_limited_when_he_looks_then_what_is_out_of_sight_is_not_there(
    world: World, failed: int
) -> None:
    other = world.submit("one", submitter="elsewhere", collection="other")
    limited = world.client("limited")

    assert limited.get(f"/jobs/{other}", headers=HTML).status_code == 404
    listed = get(limited, "/jobs")
    assert f"#{failed}" in listed
    assert f"#{other}" not in listed
    for path in paths(failed):
        assert "elsewhere" not in get(limited, path)
    assert limited.get(f"/jobs/{other}/output", headers=HTML).status_code == 404
    assert limited.get(f"/jobs/{failed}/history", headers=HTML).status_code == 403


def test_given_roles_when_a_job_is_shown_then_buttons_are_those_that_they_may_use(
    world: World, failed: int
) -> None:
    def verbs(name: str) -> set[str]:
        return set(re.findall(r'name="verb" value="(\w+)"', get(world.client(name), f"/jobs/{failed}")))

    assert verbs("viewer") == set()
    assert verbs("submitter") == {"retry"}
    assert verbs("operator") == {"retry", "rerun", "delete"}


# --- what they say ----------------------------------------------------------------------------


def test_given_markup_in_what_users_wrote_when_shown_then_it_is_text(world: World, failed: int) -> None:
    client = world.client("operator")

    for path in paths(failed):
        text = get(client, path)
        assert "<img src=x" not in text
        assert "<b>bad" not in text
        assert "<script>" not in text
        assert "'&#34;49" not in text
    assert "&lt;b&gt;bad" in get(client, f"/jobs/{failed}")


def test_given_any_page_when_read_then_nothing_in_it_is_inline_or_from_elsewhere(
    world: World, failed: int
) -> None:
    for path in paths(failed):
        for tag, attributes in elements(get(world.client("admin"), path)):
            assert tag not in ("style", "iframe", "object", "embed", "img"), (path, tag)
            assert tag != "script" or attributes.get("src", "").startswith("/static/"), path
            assert not [name for name in attributes if name == "style" or name.startswith("on")], (path, tag)
            leading = [attributes.get(name) or "#" for name in ("src", "href", "action", "hx-get", "hx-post")]
            assert all(address[0] in "/#" and address[:2] != "//" for address in leading), (path, leading)


def test_given_a_secret_parameter_when_the_job_is_shown_then_it_is_masked(world: World) -> None:
    job = world.submit("double", {"n": 1, "pin": "tell-nobody"})

    text = get(world.client("admin"), f"/jobs/{job}")

    assert "tell-nobody" not in text
    assert "••••••" in text


def test_given_an_empty_store_when_pages_are_read_then_they_say_what_to_do_next(world: World) -> None:
    client = world.client("submitter")

    assert "Submit the first job" in get(client, "/jobs")
    assert "spinney submit" in get(client, "/")
    assert "No node is running" in get(client, "/")


def test_given_a_filter_that_cannot_be_meant_when_asked_for_then_nothing_is_listed_and_its_field_says_why(
    world: World, failed: int
) -> None:
    answer = world.client("viewer").get("/jobs?root=seven", headers=HTML)

    assert answer.status_code == 422
    assert "is no job" in answer.text
    assert f"#{failed}" not in answer.text
    misspelt = world.client("viewer").get("/jobs?typ=three", headers=HTML)
    assert misspelt.status_code == 422
    assert "did you mean" in misspelt.text
    assert "did you mean" in get(world.client("viewer"), "/jobs?type=thre")


def test_given_more_jobs_than_a_page_when_turned_then_each_is_seen_once(world: World) -> None:
    ids = set(world.site.submit("one", n=120))
    client, path, seen = world.client("viewer"), "/jobs?type=one", []

    while path:
        text = get(client, path)
        seen += re.findall(r'id="job-(\d+)"', text)
        match = re.search(r'href="([^"]+)" rel="next"', text)
        path = match[1].replace("&amp;", "&") if match else ""

    assert [int(n) for n in seen] == sorted(ids, reverse=True)


@pytest.mark.parametrize(
    ("path", "one_pending"),
    [
        ("/", 'state=pending"><span class="big figure">1<'),
        ("/jobs", 'pending <span class="figure" title="1">'),
        ("/jobs?type=one", 'pending <span class="figure" title="1">'),
    ],
)
def test_given_a_live_part_that_was_asked_for_just_now_when_something_changes_then_it_shows_that_at_once(
    world: World, path: str, one_pending: str
) -> None:
    assert one_pending not in get(world.client("viewer"), path)

    world.submit("one")

    assert one_pending in get(world.client("viewer"), path)  # it may be the last change for long


def test_given_a_cause_that_is_no_more_when_its_jobs_are_asked_for_then_there_are_none_and_it_is_told(
    world: World, failed: int
) -> None:
    mark = world.store.failures.groups(limit=1).items[0].fingerprint
    client = world.client("operator")

    answer = client.post(
        "/jobs/verbs", data={"verb": "retry", "all": "1", "failure": mark, "expect": "1"}, headers=HTML
    )

    assert answer.headers["location"] == f"/jobs?failure={mark}"
    text = get(client, f"/jobs?failure={mark}")
    assert "1 job retried" in text
    assert "No failed job has this failure any more" in text
    assert f"#{failed}" not in text
    assert client.get(f"/jobs?failure={mark[:5]}", headers=HTML).status_code == 422


# --- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["/nothing", "/jobs/999", "/jobs/0", "/jobs/x", "/jobs/999/output", "/jobs/runs/none"]
)
def test_given_what_is_not_there_when_asked_for_then_a_page_says_so(world: World, path: str) -> None:
    answer = world.client("viewer").get(path, headers=HTML)

    assert answer.status_code == 404
    assert answer.headers["content-type"].startswith("text/html")
    assert "There is no" in answer.text or "There is nothing at this address" in answer.text
    for_programs = world.client("viewer").get(path)
    assert for_programs.headers["content-type"] == "application/problem+json"


def test_given_a_wrong_value_in_the_address_then_the_page_says_what_it_must_be(
    world: World, failed: int
) -> None:
    answer = world.client("viewer").get(f"/jobs/{failed}/output?fence=abc", headers=HTML)

    assert answer.status_code == 422
    assert "&#39;fence&#39; in the address must be a whole number.<" in answer.text


def test_given_a_viewer_when_he_sends_a_form_then_it_is_refused_in_a_sentence(
    world: World, failed: int
) -> None:
    answer = world.client("viewer").post(f"/jobs/{failed}/verb", data={"verb": "retry"}, headers=HTML)

    assert answer.status_code == 403
    assert "is a viewer and may not" in answer.text
    assert world.store.job(failed).state == "failed"


# --- what is done -----------------------------------------------------------------------------


def test_given_a_form_when_sent_then_the_verb_is_done_told_once_and_in_the_audit(
    world: World, failed: int
) -> None:
    client = world.client("operator")

    answer = client.post(f"/jobs/{failed}/verb", data={"verb": "retry", "reason": "mended"}, headers=HTML)

    assert (answer.status_code, answer.headers["location"]) == (303, f"/jobs/{failed}")
    assert world.store.job(failed).state == "pending"
    assert "1 job retried" in get(client, f"/jobs/{failed}")
    assert "1 job retried" not in get(client, f"/jobs/{failed}")
    assert "mended" in get(client, f"/jobs/{failed}/history")


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ({"verb": "hold"}, "reason"),
        ({"verb": "polish"}, "there is no verb"),
        ({"verb": "release"}, "failed"),
        ({"verb": "priority", "to_priority": "x"}, "is no priority"),
        ({"verb": "retry", "from_stage": "nothing"}, "stage"),
    ],
)
def test_given_a_form_that_cannot_be_done_when_sent_then_the_page_says_why(
    world: World, failed: int, form: dict[str, str], says: str
) -> None:
    client = world.client("operator")

    answer = client.post(f"/jobs/{failed}/verb", data=form, headers=HTML)

    assert answer.status_code == 303
    text = get(client, f"/jobs/{failed}")
    assert re.search(r'class="refused">', text)
    assert says in text
    assert world.store.job(failed).state == "failed"


def test_given_a_message_that_somebody_made_up_when_told_then_it_is_text_or_nothing(world: World) -> None:
    for value in ("x", "eyJhIjoxfQ==", "WyJkb25lIl0=", "W10=", "%00", "A" * 10_000):
        answer = world.client("viewer").get("/jobs", headers=HTML | {"Cookie": f"spinney_flash={value}"})
        assert answer.status_code == 200


def test_given_a_filter_when_a_verb_is_asked_for_then_what_would_run_is_shown_and_done(world: World) -> None:
    ids = world.site.submit("three", n=3)
    world.site.drain(failing=ids)
    client = world.client("operator")

    shown = get(client, "/jobs/verbs?verb=retry&all=1&state=failed&type=three")
    assert "Retry 3 jobs?" in shown
    assert "third" in shown
    form = {"verb": "retry", "all": "1", "state": "failed", "type": "three", "expect": "3"}
    answer = client.post("/jobs/verbs", data=form, headers=HTML)

    assert answer.status_code == 303
    assert "3 jobs retried" in get(client, answer.headers["location"])
    assert {world.store.job(n).state for n in ids} == {"pending"}


def test_given_another_hold_when_jobs_are_released_then_the_page_and_the_question_name_it(
    world: World,
) -> None:
    jobs = [world.submit("one") for _ in range(3)]
    for job in jobs:
        world.control().do(LayHold(scope=Scope.JOB, name=str(job), reason="mine"))
    hold = world.control().do(LayHold(scope=Scope.EVERYTHING, reason="a move"))
    client = world.client("operator")

    page_text = get(client, "/jobs/verbs?verb=release&all=1")
    assert f"They stay held by hold {hold.id} on everything." in page_text
    assert 'href="/jobs">Back</a>' in page_text
    one = client.post(f"/jobs/{jobs[0]}/verb", data={"verb": "release"}, headers=HTML)
    assert f"1 job released, still held by hold {hold.id} on everything" in get(
        client, one.headers["location"]
    )
    (expect,) = re.findall(r'name="expect" value="(\d+)"', get(client, "/jobs/verbs?verb=release&all=1"))
    form = {"verb": "release", "all": "1", "expect": expect}
    many = client.post("/jobs/verbs", data=form, headers=HTML)
    assert f"2 jobs released, still held by hold {hold.id} on everything" in get(
        client, many.headers["location"]
    )


def test_given_more_fit_than_were_shown_when_confirmed_then_it_is_asked_again(world: World) -> None:
    ids = world.site.submit("three", n=3)
    client = world.client("operator")

    answer = client.post(
        "/jobs/verbs", data={"verb": "cancel", "all": "1", "type": "three", "expect": "2"}, headers=HTML
    )

    assert answer.status_code == 422
    assert "3 jobs match now" in answer.text
    assert {world.store.job(n).state for n in ids} == {"pending"}


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"verb": "hold", "until": "yesterday"}, "is no time"),
        ({"verb": "move", "to_queue": "nowhere"}, "nowhere"),
        ({"verb": "priority", "to_priority": "100"}, "is no priority"),
        ({"verb": "retry", "to_queue": "nowhere", "from_stage": "second", "and_after": "1"}, "nowhere"),
    ],
)
def test_given_many_jobs_and_a_field_that_is_wrong_when_confirmed_then_the_form_says_why_and_keeps_what_was_entered(
    world: World, form: dict[str, str], message: str
) -> None:
    world.site.submit("three", n=3)
    world.site.fail(world.site.claim_one())
    sent = form | {"all": "1", "type": "three", "expect": "3", "reason": "it is urgent"}

    answer = world.client("operator").post("/jobs/verbs", data=sent, headers=HTML)

    assert answer.status_code == 422
    refusal, _, fields = answer.text.partition('action="/jobs/verbs"')
    assert message in refusal.partition('class="refused"')[2]
    for name in form.keys() & {"until", "to_queue", "to_priority"}:
        assert re.search(rf'name="{name}"[^>]* value="{form[name]}"', fields), name
    assert 'value="it is urgent"' in fields
    assert ('value="second" selected' in fields) == ("from_stage" in form)
    assert ('name="and_after" value="1" checked' in fields) == ("and_after" in form)


def test_given_subjobs_left_out_of_a_cancel_when_it_is_asked_again_then_they_stay_left_out(
    world: World,
) -> None:
    world.site.submit("three", n=3)
    client = world.client("operator")
    ticked = 'name="tree" value="1" checked'
    assert ticked in get(client, "/jobs/verbs?verb=cancel&all=1&type=three")

    form = {"verb": "cancel", "all": "1", "type": "three", "expect": "2"}

    assert ticked not in client.post("/jobs/verbs", data=form, headers=HTML).text
    assert ticked in client.post("/jobs/verbs", data={**form, "tree": "1"}, headers=HTML).text


@pytest.mark.parametrize(
    "verb", ["retry", "rerun", "run-now", "cancel", "hold", "release", "delete", "move", "priority"]
)
def test_given_each_verb_when_asked_about_then_its_particulars_are_asked_for(world: World, verb: str) -> None:
    world.submit("one")

    assert get(world.client("operator"), f"/jobs/verbs?verb={verb}&all=1&type=one")


# --- static -----------------------------------------------------------------------------------


def test_given_what_pages_refer_to_when_fetched_then_it_is_there_for_ever_and_packed(world: World) -> None:
    addresses = re.findall(r'"(/static/[^"]+)"', get(world.client("viewer"), "/"))
    assert len(addresses) >= 5

    for address in addresses:
        answer = world.client(None).get(address)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
    assert world.client(None).get(addresses[1]).headers["content-encoding"] == "gzip"
    for coding in ("identity", "gzip;q=0"):
        plain = world.client(None).get(addresses[1], headers={"Accept-Encoding": coding})
        assert "content-encoding" not in plain.headers


@pytest.mark.parametrize(
    "path",
    ["/static/0000000000000000/spinney.css", "/static/x/../../page_responses.py", "/static/%2e%2e/words.py"],
)
def test_given_another_path_when_fetched_then_there_is_nothing(world: World, path: str) -> None:
    assert world.client(None).get(path).status_code in (400, 404)


def test_a_reader_is_not_sent_to_the_document_of_the_api(world: World) -> None:
    client = world.client("viewer")

    page = client.get("/nothing/here", headers=HTML)
    api = client.get("/api/v1/nothing", headers=HTML)

    assert (page.status_code, api.status_code) == (404, 404)
    assert "nothing at this address" in page.text
    assert "openapi.json" not in page.text
    assert "/api/v1/openapi.json lists what there is" in api.text


def test_given_a_client_that_prefers_json_when_refused_then_it_gets_no_page(world: World) -> None:
    answer = world.client("viewer").get("/jobs/999", headers={"Accept": "application/json, text/html;q=0.5"})

    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("page", ["jobs", "batches"])
def test_given_a_job_that_waits_for_others_then_the_sentence_links_to_the_first_and_names_it_once(
    world: World, page: str
) -> None:
    top = world.submit("batch")
    lease = world.site.run(top)
    (child, *_) = world.site.spawn(lease, "one", 2)
    world.site.pass_(lease)

    text = get(world.client("viewer"), f"/{page}/{top}")

    explained = text[text.index('class="explained"') :].partition("</p>")[0]
    assert f'the first of them <a class="id" href="/jobs/{child}">#{child}</a>' in explained
    assert explained.count(f"/jobs/{child}") == 1


def test_given_a_job_that_needs_several_then_its_sentence_links_to_each_of_them(world: World) -> None:
    needs = tuple(world.submit("three") for _ in range(2))
    waiting = world.store.submit([Submission(type="three", params=("{}",), needs=needs)], now_us=1).ids[0]

    text = get(world.client("viewer"), f"/jobs/{waiting}")

    explained = text[text.index('class="explained"') :].partition("</p>")[0]
    assert re.findall(r'href="/jobs/(\d+)"', explained) == [str(need) for need in needs]


@pytest.mark.parametrize("page", ["jobs", "batches"])
def test_given_failed_subjobs_then_they_are_counted_and_the_sentence_links_to_the_first(
    world: World, page: str
) -> None:
    top = world.submit("batch")
    lease = world.site.run(top)
    children = world.site.spawn(lease, "one", 2)
    world.site.pass_(lease)
    for child in children:
        world.site.fail(world.site.run(child), message="no")
    world.site.drain()

    text = get(world.client("viewer"), f"/{page}/{top}")

    explained = text[text.index('class="explained"') :].partition("</p>")[0]
    link = f'<a class="id" href="/jobs/{children[0]}">#{children[0]}</a>'
    assert f"It failed: 2 of its subjobs failed, the first of them {link}." in explained


def test_given_a_subjob_of_a_stage_that_ran_again_then_its_page_says_that_it_no_longer_counts(
    world: World,
) -> None:
    top = world.submit("batch")
    lease = world.site.run(top)
    (child,) = world.site.spawn(lease, "one", 1)
    world.site.pass_(lease)
    world.site.fail(world.site.run(child))
    world.site.drain()
    link = f'<a class="id" href="/jobs/{top}">#{top}</a>'
    client, words = (
        world.client("viewer"),
        f"It no longer counts, since job {link} was set to run again without it; it failed: ",
    )
    assert words not in get(client, f"/jobs/{child}")

    world.site.rerun(top)

    assert words in get(client, f"/jobs/{child}")
    assert words not in get(client, f"/jobs/{top}")


def test_given_a_long_message_of_an_attempt_then_all_of_it_unfolds(world: World) -> None:
    job, message = world.submit("one"), f"{'the file is too long, ' * 9}and has no end"
    world.site.fail(world.site.run(job), message=message)

    text = get(world.client("viewer"), f"/jobs/{job}")

    assert f'<p class="break">{message}</p></details>' in text


def test_given_a_message_that_names_a_job_of_its_own_then_that_is_no_link(world: World) -> None:
    failed = world.submit("one")
    world.site.fail(world.site.run(failed), message=f"job {failed} of the printer is stuck")

    text = get(world.client("viewer"), f"/jobs/{failed}")

    explained = text[text.index('class="explained"') :].partition("</p>")[0]
    assert f"It failed: job {failed} of the printer is stuck." in explained
