"""Queues, nodes, holds, locks, users and tokens in a browser: live, on a phone, and for a screen reader."""

import re

import pytest
from playwright.sync_api import Page, Request, Route, expect

from browser.conftest import NewPage, Sound
from browser.site import Site
from waiting import until

LONG_NAME = "digitisation-of-the-nineteenth-century-newspapers-2026"
PAGES = (
    "/queues",
    "/queues/default",
    "/nodes",
    "/holds",
    "/locks",
    "/audit",
    "/users",
    "/users/grace",
    "/tokens",
    "/schedules",
    "/webhooks",
    f"/webhooks/{LONG_NAME}",
    "/webhooks/archive",
    "/api?group=queues",
)


@pytest.fixture(scope="module")
def furnished(site: Site) -> Site:
    """With something on every page."""
    ok = site.shell.ok
    ok("queue", "closed", "--create")
    site.submit("double", "-p", "n=1", "--queue", "closed", "--at", "2099-01-01T00:00")
    ok("hold", "--queue", "closed", "--reason", "until spring")
    ok("user", "add", "grace", "--role", "operator", "--collection", "maps", "--no-password")
    ok("token", "make", "nightly", "--user", "grace")
    ok("webhook", "add", "archive", "http://127.0.0.1:9/hook")
    ok("lock", "download:*", "--capacity", "4")
    ok(
        "hold",
        "--collection",
        LONG_NAME,
        "--reason",
        "the contractor delivers the wrong colour profile",
        "--yes",
    )
    ok("webhook", "add", LONG_NAME, "https://integration.staging.library.example.org/api/v2/hooks/deposited")
    zone = ("--zone", "America/Argentina/Buenos_Aires")
    ok("schedule", "add", LONG_NAME, "double", "-p", "n=1", "--cron", "15 3 1,15 * mon-fri", *zone)
    return site


def test_given_any_of_these_pages_when_axe_looks_then_it_finds_nothing_and_a_phone_has_room(
    sound: Sound, furnished: Site
) -> None:
    sound(PAGES)


def test_given_a_phone_when_a_form_unfolds_then_it_can_be_reached(new_page: NewPage, furnished: Site) -> None:
    page = new_page(small=True)
    page.goto("/holds")
    page.get_by_text("Release…").first.click()
    expect(page.get_by_role("button", name="Release", exact=True)).to_be_in_viewport()


def test_given_a_form_that_is_refused_then_what_was_entered_is_in_it_again(page: Page, site: Site) -> None:
    job = site.submit("double", "-p", "n=1", "--at", "2099-01-01T00:00")
    page.goto(f"/jobs/{job}")
    page.get_by_text("Hold…").click()
    page.get_by_label("Reason").locator("visible=true").fill("until the disk is there")
    page.get_by_label("Until").fill("soon")
    page.keyboard.press("Enter")

    expect(page.locator("#flash .refused")).to_contain_text("'soon' is no time")
    expect(page.get_by_label("Reason").locator("visible=true")).to_have_value("until the disk is there")
    expect(page.get_by_label("Until")).to_be_visible()


def test_given_a_long_heading_when_forms_unfold_then_they_are_on_the_screen(
    new_page: NewPage, furnished: Site
) -> None:
    flag = (
        furnished.folder / "a-folder-with-a-long-name" / "another-folder-with-a-name-that-is-as-long" / "flag"
    )
    job = furnished.ended(furnished.submit("fragile", "-p", f"flag={flag}"))
    page = new_page()
    for width in (1280, 1024, 850):
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(f"/jobs/{job}")
        forms = page.locator(".heading .ask").all()
        assert len(forms) >= 2  # Retry and Rerun, at least
        for form in forms:
            form.locator("summary").click()
            expect(form.locator("form")).to_be_in_viewport(ratio=1)
            form.locator("summary").click()


def test_given_two_browsers_when_one_lays_a_hold_and_releases_it_then_the_other_sees_both(
    new_page: NewPage, furnished: Site
) -> None:
    mine, other = new_page(), new_page(principal="viewer")
    mine.goto("/holds")
    other.goto("/holds")
    expect(other.locator("#live")).to_contain_text("live")
    row = other.locator("[data-row]").filter(has_text="the disk is full")

    mine.get_by_label("On", exact=True).select_option("submitter")
    mine.get_by_label("Name or number").fill("linus")
    mine.locator("#lay-reason").fill("the disk is full")
    mine.get_by_role("button", name="Place hold").click()
    expect(mine.locator("#flash")).to_contain_text("submitter linus")
    expect(row).to_contain_text("linus")
    expect(other.get_by_text("Release…")).to_have_count(0)

    mine.locator("[data-row]").filter(has_text="the disk is full").get_by_text("Release…").click()
    mine.get_by_role("button", name="Release", exact=True).click()
    expect(mine.locator("#flash")).to_contain_text("released")
    expect(row).to_have_count(0)


def test_given_a_queue_when_its_limit_is_changed_then_the_page_and_another_s_list_show_it(
    new_page: NewPage, furnished: Site
) -> None:
    page, other = new_page(), new_page(principal="viewer")
    other.goto("/queues")
    expect(other.locator("#live")).to_contain_text("live")
    page.goto("/queues/default")

    page.locator("#ask-limit summary").click()
    page.get_by_label("Limit", exact=True).fill("7")
    page.locator("#limit-reason").fill("a slow disk")
    page.get_by_role("button", name="Save").click()

    expect(page.locator("#flash")).to_contain_text("the limit 7")
    expect(other.locator("#queue-default")).to_contain_text("of 7")


def test_given_a_node_when_it_is_drained_and_resumed_then_the_page_follows(
    page: Page, furnished: Site
) -> None:
    page.goto("/nodes")

    page.get_by_text("Drain…").click()
    page.get_by_label("Reason").first.fill("a new disk")
    page.get_by_role("button", name="Drain oak").click()
    expect(page.locator("[data-row]")).to_contain_text("drained")
    expect(page.locator("[data-row]")).to_contain_text("a new disk")

    page.get_by_text("Resume…").click()
    page.get_by_role("button", name="Resume oak").click()
    expect(page.locator("[data-row]")).to_contain_text("active")


def test_given_an_admin_when_he_makes_a_user_and_a_token_then_each_secret_is_shown_on_one_page(
    page: Page, furnished: Site
) -> None:
    page.goto("/users")
    page.get_by_label("Name (required)").fill("linus")
    page.get_by_label("Role").select_option("submitter")
    page.get_by_role("button", name="Create user").click()
    expect(page.locator("#secret")).to_have_text(re.compile(r"/welcome\?link=[\w-]{43}$"))
    page.get_by_role("link", name="Back to linus").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("linus")

    page.goto("/tokens")
    page.get_by_label("Name (required)").fill("robot")
    page.get_by_label("Acts as").select_option("linus")
    page.get_by_label("Expires").fill("90d")
    page.get_by_role("button", name="Create token").click()
    expect(page.locator("#secret")).to_have_text(re.compile(r"^spn_[0-9a-f]{16}_[\w-]{43}$"))
    page.get_by_role("link", name="Back to tokens").click()
    expect(page.locator("[data-row]").filter(has_text="robot")).to_contain_text("valid, expires in")


def test_given_a_part_fetched_between_two_changes_that_cancel_out_when_it_is_quiet_then_the_page_is_right(
    new_page: NewPage, furnished: Site
) -> None:
    page = new_page()
    fetched = []

    def is_fetched_again() -> bool:
        page.wait_for_timeout(50)  # the functions of routes are called meanwhile
        return len(fetched) > 1

    def once_stale(route: Route, request: Request) -> None:
        fetched.append(request.url)
        answer = route.fetch()
        stale = answer.text().replace("until spring", "released long ago")
        route.fulfill(response=answer, body=stale if len(fetched) == 1 else None)

    page.goto("/holds")
    expect(page.locator("#live")).to_contain_text("live")
    page.route(lambda url: url.endswith("/holds"), once_stale)
    furnished.shell.ok("hold", "--queue", "closed", "--reason", "a change")

    # Before, the page may show what it fetched when its stream of events began, and that is right by chance.
    until(is_fetched_again, "the page fetches the part again")
    expect(page.locator("#holds")).to_contain_text("a change")
    expect(page.locator("#holds")).to_contain_text("until spring")
    expect(page.locator("#holds")).not_to_contain_text("released long ago")


def test_given_no_scripts_when_a_hold_is_laid_then_it_is(new_page: NewPage, furnished: Site) -> None:
    page = new_page(scripts=False)
    page.goto("/holds?scope=queue&name=closed#lay")

    expect(page.get_by_label("Name or number")).to_have_value("closed")
    page.locator("#lay-reason").fill("without scripts")
    page.get_by_role("button", name="Place hold").click()

    expect(page.locator("#flash")).to_contain_text("queue closed")
    expect(page.locator("#holds")).to_contain_text("without scripts")


@pytest.mark.parametrize(
    ("who", "path"), [("viewer", "/users"), ("operator", "/tokens"), ("submitter", "/webhooks")]
)
def test_given_who_may_not_when_he_goes_there_then_a_page_says_why(
    new_page: NewPage, furnished: Site, who: str, path: str
) -> None:
    page = new_page(principal=who, loud=True)

    answer = page.goto(path)

    assert answer is not None
    assert answer.status == 403
    expect(page.get_by_role("main")).to_contain_text("that takes an")
