"""The list of jobs in a browser: verbs appear with ticked boxes, columns and saved filters stay."""

import re

import pytest
from playwright.sync_api import Page, expect

from browser.conftest import NewPage, Sound
from browser.site import Site


@pytest.fixture(scope="module")
def jobs(site: Site) -> list[int]:
    return [
        site.ended(site.submit("tell", "-p", f"text=letter {n}", "--collection", "letters")) for n in range(3)
    ]


@pytest.mark.parametrize("scripts", [True, False])
def test_given_no_box_ticked_then_there_is_no_verb_and_with_one_there_is(
    new_page: NewPage, jobs: list[int], scripts: bool
) -> None:
    page = new_page(scripts=scripts)
    page.goto("/jobs?collection=letters")
    delete = page.get_by_role("button", name="Delete…")
    expect(page.locator(f"#job-{jobs[0]} .subject")).to_have_text("letter 0")
    expect(delete).to_be_hidden()

    page.get_by_label(f"Select job {jobs[0]}").check()
    expect(delete).to_be_visible()
    page.get_by_label(f"Select job {jobs[0]}").uncheck()
    expect(delete).to_be_hidden()
    page.get_by_label("All matching jobs").check()
    delete.click()

    expect(page.get_by_role("heading", level=1)).to_have_text("Delete 3 jobs?")


def test_given_a_part_that_came_anew_then_what_scripts_need_is_still_there(
    page: Page, site: Site, jobs: list[int]
) -> None:
    page.goto("/jobs?collection=letters")
    this_page = page.get_by_label("This page")
    this_page.check()
    expect(page.locator("[data-picked]")).to_have_text("With the 3 selected:")

    page.evaluate("htmx.trigger(document.body, 'spinney:jobs')")
    expect(page.locator("#jobs")).not_to_have_class(re.compile("htmx-request"))

    expect(this_page).to_be_visible()


def test_given_all_jobs_ticked_when_a_part_comes_anew_then_they_stay_ticked(
    page: Page, site: Site, jobs: list[int]
) -> None:
    page.goto("/jobs?collection=letters")
    every = page.get_by_label("All matching jobs")
    every.check()

    with page.expect_response(lambda response: "collection=letters" in response.url):
        page.evaluate("htmx.trigger(document.body, 'spinney:jobs')")
    expect(page.locator("#jobs")).not_to_have_class(re.compile("htmx-request"))

    expect(every).to_be_checked()


def test_given_columns_and_a_filter_when_chosen_then_they_stay_and_the_filter_is_in_another_browser(
    page: Page, new_page: NewPage, jobs: list[int]
) -> None:
    page.goto("/jobs?collection=letters")
    page.get_by_text("Columns").first.click()
    page.get_by_label("Submitter", exact=True).last.check()
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_role("columnheader", name="Submitter")).to_be_visible()

    page.get_by_role("link", name="Took").click()
    expect(page).to_have_url(re.compile(r"collection=letters&sort=-took$"))
    page.get_by_text("Filter", exact=True).first.click()
    page.get_by_label("Save this filter as").fill("Slow letters")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#flash")).to_contain_text("saved as “Slow letters”")

    other = new_page(small=True)
    other.goto("/jobs")
    other.get_by_role("link", name="Slow letters").click()
    expect(other.locator("[data-row]")).to_have_count(3)
    other.get_by_role("button", name="Remove the filter Slow letters").click()
    expect(other.locator("#flash")).to_contain_text("is removed")


def test_given_a_list_with_all_its_parts_then_it_is_sound(sound: Sound, jobs: list[int]) -> None:
    sound(["/jobs?collection=letters&sort=-took"])


def test_given_no_job_with_a_message_then_subjects_have_the_room(page: Page, site: Site) -> None:
    text = "the third deposit of the regional archive of film, reel 7, side B"
    job = site.ended(site.submit("tell", "-p", f"text={text}", "--collection", "reels"))
    page.set_viewport_size({"width": 1400, "height": 900})
    page.goto("/jobs?collection=reels")

    subject = page.locator(f"#job-{job} .subject").bounding_box()
    message = page.locator(f"#job-{job} .wide").bounding_box()

    assert subject is not None
    assert message is not None
    assert subject["width"] > 3 * message["width"], (subject, message)
