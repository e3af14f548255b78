"""Failures and schedules in a browser: a cause is retried with a look before, a schedule is made, paused, run."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from browser.conftest import NewPage, Sound
from browser.site import Site
from browser.site import site as served


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site of its own: failed jobs of the other modules would be in its lists."""
    with served(tmp_path_factory.mktemp("failures")) as served_site:
        yield served_site


@pytest.fixture
def failed(site: Site) -> Iterator[list[int]]:
    """Twelve of one cause, which goes with its flag; none is left behind."""
    flag = site.flag("repaired")
    flag.unlink(missing_ok=True)
    jobs = [site.submit("fragile", "-p", f"flag={flag}") for _ in range(12)]
    for job in jobs:
        site.ended(job)
    yield jobs
    flag.touch()
    site.shell.call("retry", *map(str, jobs), "--yes")
    for job in jobs:
        site.ended(job)


def test_given_any_page_here_when_axe_looks_then_it_finds_nothing_and_a_phone_has_room(
    page: Page, sound: Sound, failed: list[int]
) -> None:
    page.goto("/failures")
    cause = page.locator("[data-row] a").first.get_attribute("href")
    assert cause

    sound(("/failures", cause, "/schedules", "/make-schedule", "/make-schedule?type=double"))


def test_given_a_cause_when_some_are_tried_and_then_all_then_the_open_page_sees_them_go(
    page: Page, new_page: NewPage, site: Site, failed: list[int]
) -> None:
    watching = new_page()
    watching.goto("/failures")
    row = watching.locator("[data-row]", has_text="the flag is not up")
    expect(row.get_by_role("link").first).to_contain_text("12")
    site.flag("repaired").touch()

    page.goto("/failures")
    page.locator("[data-row] a").first.click()
    expect(page.locator(".failure")).to_contain_text("jobs.py")
    page.get_by_role("link", name="Try 10 first…").click()
    page.get_by_role("button", name="Retry 10 jobs").click()
    expect(page.get_by_text("10 jobs retried")).to_be_visible()
    expect(row.get_by_role("link").first).to_contain_text(re.compile(r"^2\b"))
    row.get_by_role("link", name=re.compile("^Retry 2")).click()
    watching.get_by_role("button", name="Retry 2 jobs").click()
    expect(watching.get_by_text("No failed job has this failure any more")).to_be_visible()
    for job in failed:
        site.ended(job)
    watching.goto("/failures")
    expect(watching.get_by_text("No failed jobs")).to_be_visible()


def test_given_the_form_when_a_schedule_is_made_then_it_is_run_paused_and_deleted(
    page: Page, new_page: NewPage
) -> None:
    page.goto("/schedules")
    page.get_by_role("link", name="Create schedule").first.click()
    page.get_by_label("Type").select_option("double")
    page.get_by_role("button", name="Continue").click()
    page.get_by_label("Name (required)").fill("hourly")
    page.get_by_label("Or interval").fill("1h")
    page.get_by_label("n (required)").fill("4")
    page.get_by_role("button", name="Create schedule").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("hourly")

    page.get_by_role("button", name="Run now").click()
    expect(page.get_by_text(re.compile(r"Schedule hourly has submitted job \d+"))).to_be_visible()
    page.get_by_role("link", name="Schedules").last.click()
    page.get_by_text("Pause…").click()
    page.get_by_label("Reason").first.fill("moving house")
    page.get_by_role("button", name="Pause", exact=True).click()
    expect(page.locator("#schedule-hourly")).to_contain_text("paused")
    page.get_by_role("button", name="Resume").click()
    expect(page.locator("#schedule-hourly")).not_to_contain_text("paused")
    # Between the deletion and its end the page may read the schedule again, which is an error 404 in its console.
    deleting = new_page(loud=True)
    deleting.goto("/schedules/hourly")
    deleting.get_by_text("Delete…").click()
    deleting.get_by_role("button", name="Delete", exact=True).click()
    expect(deleting.get_by_text("No schedules yet")).to_be_visible()
