"""Uploading to an inbox in a browser, with scripts and without."""

import re

import pytest
from playwright.sync_api import Page, expect

from browser.conftest import NewPage, Sound
from browser.site import Site

UPLOAD = "/inboxes/cards/upload"


@pytest.fixture(autouse=True)
def inbox(site: Site) -> None:
    site.shell.ok("inbox", "add", "cards", str(site.folder / "cards"), "double", "-p", "n=1", "--replace")


def choose(page: Page, name: str, content: bytes) -> None:
    page.locator("#f-file").set_input_files({"name": name, "mimeType": "application/zip", "buffer": content})


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_given_a_file_when_uploaded_then_it_leads_to_its_job_and_twice_to_the_same(
    new_page: NewPage, scripts: bool
) -> None:
    page, content = new_page(scripts=scripts, loud=True), b"with" if scripts else b"without"
    page.goto("/inboxes/cards")
    page.get_by_role("link", name="Upload").click()
    choose(page, "card.zip", content)
    page.get_by_role("button", name="Upload").click()
    expect(page).to_have_url(re.compile(r"/jobs/\d+$"))
    if scripts:
        expect(page.locator("#files")).to_contain_text("card.zip")
    else:
        expect(page.get_by_text(re.compile(r"card.zip became job \d+"))).to_be_visible()
    job = page.url.rsplit("/", 1)[1]

    page.goto(UPLOAD)
    choose(page, "again.zip", content)
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_text(re.compile(f"its bytes came before.*became job {job}"))).to_be_visible()


def test_given_any_page_here_when_axe_looks_then_it_finds_nothing_and_a_phone_has_room(sound: Sound) -> None:
    sound((UPLOAD, "/inboxes/cards"))


def test_given_the_details_of_an_inbox_then_long_names_leave_room_for_what_they_name(page: Page) -> None:
    page.goto("/inboxes/cards")

    widths = page.locator(".facts dd").evaluate_all("values => values.map(value => value.clientWidth)")

    assert min(widths) > 90, widths
