"""Pages as they are read: light and dark, on a phone, by a screen reader, and without scripts."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from browser.conftest import NewPage, Sound, Violations
from browser.site import Site

NASTY = "<script>document.title='owned'</script><b id=owned>&"


@pytest.fixture(scope="module")
def jobs(site: Site) -> dict[str, int]:
    """Return one job of each kind that pages show differently."""
    failed = site.submit("fragile", "-p", f"flag={site.flag('never')}")
    batch = site.submit("parent", "-p", "n=3")
    printing_job = site.submit("tell", "-p", f"text={NASTY}", "--collection", "maps")
    running = site.submit("until", "-p", f"flag={site.flag('reading')}")
    held = site.submit("double", "-p", "n=1", "--at", "2099-01-01T00:00")
    for job in (failed, batch, printing_job):
        site.ended(job)
    site.shell.ok("hold", str(held), "--reason", "until spring")
    return {"failed": failed, "batch": batch, "printing": printing_job, "running": running, "held": held}


@pytest.fixture(scope="module", autouse=True)
def let_go(site: Site) -> Iterator[None]:
    yield
    site.flag("reading").touch()


def pages(jobs: dict[str, int]) -> list[str]:
    return [
        "/",
        f"/jobs/{jobs['failed']}",
        "/jobs?state=failed&type=fragile&message=flag",
        "/jobs/verbs?verb=hold&all=1",
        f"/jobs/{jobs['batch']}",
        "/jobs?type=nothing",
        "/jobs?root=seven",
        f"/jobs/{jobs['running']}",
        f"/jobs/{jobs['printing']}/output?q=script",
        "/jobs/999999",
    ]


def settle(page: Page) -> None:
    """Until parts that come late are there."""
    page.wait_for_load_state("load")
    for late in ("output", "files", "history"):
        if page.locator(f"#{late}").count():
            expect(page.locator(f"#{late} .card").first).to_be_visible()


def test_given_any_page_when_axe_looks_then_it_finds_nothing_and_a_phone_has_room(
    sound: Sound, jobs: dict[str, int]
) -> None:
    sound(pages(jobs), settle=settle, loud=True)


def test_given_a_phone_when_the_places_unfold_then_they_can_be_reached(
    new_page: NewPage, jobs: dict[str, int], violations: Violations
) -> None:
    page = new_page(small=True)
    page.goto("/")
    page.locator(".places > summary").click()
    expect(page.get_by_role("link", name="Queues", exact=True)).to_be_visible()
    assert not violations(page)


def test_given_no_scripts_when_a_job_is_read_then_all_of_it_can_be_reached(
    new_page: NewPage, jobs: dict[str, int]
) -> None:
    page = new_page(scripts=False)

    page.goto(f"/jobs/{jobs['failed']}")

    expect(page.get_by_role("heading", name=f"#{jobs['failed']} fragile")).to_be_visible()
    expect(page.get_by_text("the flag is not up").first).to_be_visible()
    page.get_by_role("link", name="Output", exact=True).click()
    expect(page.get_by_role("heading", name="Output of fragile")).to_be_visible()
    page.go_back()
    page.get_by_text("Retry…").click()
    expect(page.get_by_role("button", name="Retry", exact=True)).to_be_visible()


def test_given_output_and_parameters_with_markup_when_shown_then_they_are_text(
    page: Page, jobs: dict[str, int]
) -> None:
    page.goto(f"/jobs/{jobs['printing']}")

    expect(page.locator("pre[data-output$=stdout]")).to_have_text(f"{NASTY}\n")
    expect(page.locator("#owned")).to_have_count(0)
    expect(page).to_have_title(re.compile("tell"))


def test_given_a_failed_job_when_opened_then_its_frames_and_stages_are_there(
    page: Page, jobs: dict[str, int]
) -> None:
    page.goto(f"/jobs/{jobs['failed']}")

    failure = page.locator(".failure")
    expect(failure.get_by_role("heading")).to_contain_text("ValueError in fragile")
    expect(failure.locator(".frames")).to_contain_text("jobs.py")
    expect(failure.locator(".frames pre").last).to_contain_text('raise ValueError("the flag is not up")')
    expect(page.locator(".stages li")).to_have_class(re.compile("s-failed"))


def test_given_a_batch_when_opened_then_its_subjobs_lead_up_and_down(
    page: Page, jobs: dict[str, int]
) -> None:
    page.goto(f"/jobs/{jobs['batch']}")

    below = page.locator("#below")
    expect(below.locator("tbody tr")).to_have_count(3)
    below.locator("tbody a").first.click()
    page.get_by_role("navigation", name="Above this job").get_by_role(
        "link", name=f"#{jobs['batch']}"
    ).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(f"#{jobs['batch']} parent")


def test_given_a_filter_when_its_form_is_sent_then_it_is_in_the_address(
    page: Page, jobs: dict[str, int]
) -> None:
    page.goto("/jobs")
    page.get_by_text("Filter", exact=True).first.click()
    page.get_by_role("combobox", name="Type").fill("tell")
    page.get_by_role("button", name="Filter", exact=True).click()

    expect(page).to_have_url(re.compile(r"/jobs\?type=tell$"))
    expect(page.locator("[data-row]")).to_have_count(1)
    page.get_by_role("link", name="completed 1").click()
    expect(page).to_have_url(re.compile(r"type=tell&state=completed$"))


def test_given_a_search_when_it_is_a_number_then_it_leads_to_the_job(
    page: Page, jobs: dict[str, int]
) -> None:
    page.goto("/")
    page.get_by_role("searchbox").fill(f"#{jobs['printing']}")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(rf"/jobs/{jobs['printing']}$"))

    page.get_by_label("Job number").fill("flag is not up")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/jobs\?message=flag\+is\+not\+up$"))


def test_given_a_viewer_when_looking_then_no_button_does_anything(
    new_page: NewPage, jobs: dict[str, int]
) -> None:
    page = new_page(principal="viewer")

    page.goto(f"/jobs/{jobs['failed']}")

    expect(page.get_by_text("Retry…")).to_have_count(0)
    expect(page.get_by_role("link", name="Users")).to_have_count(0)
    page.goto("/jobs")
    expect(page.locator("#pick")).to_have_count(0)
