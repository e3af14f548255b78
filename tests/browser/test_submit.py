"""Submitting in a browser: the form, what is wrong in it, files, and the keyboard."""

import re

import pytest
from playwright.sync_api import Page, Route, expect

from browser.conftest import NewPage, Sound, Violations
from browser.site import Site


def open_form(page: Page, type_: str) -> None:
    page.goto("/submit")
    page.get_by_role("link", name=re.compile(f"^{type_}")).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(f"Submit {type_}")


def test_given_the_form_when_filled_in_then_it_leads_to_the_job_which_runs(page: Page) -> None:
    open_form(page, "double")
    page.get_by_label("n (required)").fill("21")
    page.get_by_role("button", name="Submit job").click()

    expect(page).to_have_url(re.compile(r"/jobs/\d+$"))
    expect(page.get_by_text(re.compile(r"job \d+ is submitted"))).to_be_visible()
    expect(page.locator(".jobhead .state")).to_have_text("completed")


def test_given_what_does_not_fit_when_sent_then_it_is_told_there_and_what_was_written_stays(
    new_page: NewPage, violations: Violations
) -> None:
    page = new_page(loud=True)  # the browser says that the answer was 422
    open_form(page, "double")
    page.get_by_label("n (required)").fill("3")
    page.get_by_label("name", exact=True).fill("kept")
    page.get_by_label("Not before").fill("soon")
    page.locator("#f-file").set_input_files({"name": "a.txt", "mimeType": "text/plain", "buffer": b"one"})
    page.get_by_role("button", name="Submit job").click()

    at = page.get_by_label("Not before")
    expect(at).to_have_attribute("aria-invalid", "true")
    expect(at).to_have_accessible_description(re.compile("'soon' is no time"))
    expect(at).to_be_focused()
    expect(page.get_by_label("name", exact=True)).to_have_value("kept")
    expect(page.locator("[data-chosen]")).to_contain_text("a.txt")
    assert not violations(page)

    at.fill("")
    page.get_by_role("button", name="Submit job").click()
    expect(page).to_have_url(re.compile(r"/jobs/\d+$"))
    expect(page.locator("#files")).to_contain_text("a.txt")


def test_given_a_file_when_dropped_then_it_is_in_the_folder_of_the_job(page: Page, site: Site) -> None:
    open_form(page, "until")
    page.get_by_label("flag (required)").fill(str(site.flag("dropped")))
    dropped = page.evaluate_handle(
        "() => { const d = new DataTransfer(); d.items.add(new File(['x'.repeat(2000)], 'plate 7.tif')); return d; }"
    )
    page.locator("[data-drop]").dispatch_event("drop", {"dataTransfer": dropped})
    expect(page.locator("[data-chosen] li")).to_have_text("plate 7.tif2.0 kB")
    page.get_by_role("button", name="Submit job").click()

    expect(page.locator("#files")).to_contain_text("plate 7.tif")
    job = int(page.url.rsplit("/", 1)[1])
    site.flag("dropped").touch()
    site.ended(job)


def test_given_no_scripts_when_the_form_is_sent_then_it_works_as_well(new_page: NewPage) -> None:
    page = new_page(scripts=False)
    open_form(page, "double")
    page.get_by_label("n (required)").fill("4")
    page.get_by_label("Priority").fill("7")
    page.get_by_label("Choose files").set_input_files(
        {"name": "b.txt", "mimeType": "text/plain", "buffer": b"two"}
    )
    page.get_by_role("button", name="Submit job").click()

    expect(page).to_have_url(re.compile(r"/jobs/\d+$"))
    expect(page.get_by_text(re.compile(r"job \d+ is submitted"))).to_be_visible()


def test_given_any_page_here_when_axe_looks_then_it_finds_nothing_and_a_phone_has_room(sound: Sound) -> None:
    sound(("/submit", "/submit?type=until", "/submit?q=nothing"))


@pytest.mark.parametrize("answered", [True, False])
def test_given_a_server_that_cannot_answer_when_a_job_is_sent_then_the_page_says_so_and_it_can_be_sent_again(
    new_page: NewPage, answered: bool
) -> None:
    page = new_page(small=True, loud=True)
    body = '{"detail": "the store does not answer; try again"}'

    def refuse(route: Route) -> None:
        if answered:
            route.fulfill(status=503, content_type="application/problem+json", body=body)
        else:
            route.abort("connectionrefused")

    page.goto("/submit?type=tell")
    page.get_by_label("text (required)").fill("sent twice")
    page.route("**/submit", refuse)
    page.get_by_role("button", name="Submit job").click()

    flash = page.locator("#flash")
    expect(flash).to_contain_text("the store does not answer" if answered else "the server did not answer")
    expect(flash).to_be_in_viewport()
    page.unroute("**/submit")
    page.get_by_role("button", name="Submit job").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("tell")
    expect(page).to_have_url(re.compile(r"/jobs/\d+$"))


def test_given_an_upload_that_was_refused_when_it_is_sent_again_then_it_arrives(
    new_page: NewPage, site: Site
) -> None:
    page = new_page(loud=True)
    page.goto(f"/jobs/{site.ended(site.submit('double', '-p', 'n=1'))}")
    expect(page.locator("#upload-file")).to_be_visible()
    page.route("**/files", lambda route: route.abort())  # nothing replaces the form
    page.route("**/upload", lambda route: route.fulfill(status=429, json={"detail": "too many uploads"}))
    chosen = {"name": "late.txt", "mimeType": "text/plain", "buffer": b"late"}
    page.locator("#upload-file").set_input_files(chosen)  # type: ignore[arg-type]
    page.get_by_role("button", name="Upload", exact=True).click()
    expect(page.locator("#flash")).to_contain_text("too many uploads")
    expect(page.get_by_role("button", name="Upload", exact=True)).to_be_enabled()
    page.unroute_all()

    page.get_by_role("button", name="Upload", exact=True).click()

    expect(page.locator("#files .lines")).to_contain_text("late.txt")
