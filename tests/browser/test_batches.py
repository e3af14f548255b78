"""Batches in a browser: the grid fills in live, the keyboard reaches its cells, verbs work on the whole."""

import re

import pytest
from playwright.sync_api import Page, expect

from browser.conftest import Sound
from browser.site import Site


@pytest.fixture(scope="module")
def batch(site: Site) -> int:
    """One that has settled."""
    return site.ended(site.submit("parent", "-p", "n=30", "--submitter", "ada"))


def test_given_a_batch_when_its_objects_run_then_the_open_page_fills_in(page: Page, site: Site) -> None:
    site.shell.ok("hold", "--type", "double", "--reason", "to watch it")
    job = site.submit("parent", "-p", "n=8")
    page.goto("/batches")
    page.get_by_role("link", name=f"#{job}").click()

    cells = page.locator("[data-cells] a")
    expect(cells).to_have_count(8)
    expect(page.locator("[data-cells] a.s-held")).to_have_count(8)
    site.shell.ok("release", "--type", "double")
    expect(page.locator("[data-cells] a.s-completed")).to_have_count(8)
    expect(page.locator(".jobhead .state")).to_have_text("completed")
    expect(page.locator(".far .big")).to_have_text("100 %")


def test_given_the_grid_when_arrows_are_pressed_then_the_focus_moves_and_enter_opens(
    page: Page, batch: int
) -> None:
    page.goto(f"/batches/{batch}")
    cells = page.locator("[data-cells] a")
    cells.first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("End")
    expect(cells.last).to_be_focused()
    page.keyboard.press("ArrowLeft")
    number = cells.nth(28).get_attribute("href")
    page.keyboard.press("Enter")

    assert number
    expect(page).to_have_url(re.compile(f"{number}$"))


def test_given_a_state_when_chosen_then_it_is_in_the_address_and_shown_alone(page: Page, batch: int) -> None:
    page.goto(f"/batches/{batch}")
    page.get_by_role("navigation", name="States of subjobs").get_by_role("link", name="completed").click()

    expect(page).to_have_url(re.compile(r"\?state=completed$"))
    expect(page.locator("[data-cells] a")).to_have_count(30)


def test_given_a_batch_when_held_and_cancelled_then_it_tells_so(page: Page, site: Site) -> None:
    site.shell.ok("hold", "--type", "double", "--reason", "so that it lasts")
    job = site.submit("parent", "-p", "n=4")
    page.goto(f"/batches/{job}")
    page.get_by_text("Hold…").click()
    page.get_by_label("Reason").first.fill("until spring")
    page.get_by_role("button", name="Hold the batch").click()
    expect(page.locator(".underhold")).to_contain_text("until spring")
    page.get_by_role("button", name="Release").click()
    expect(page.locator(".underhold")).to_have_count(0)
    page.get_by_text("Cancel…").click()
    page.get_by_role("button", name="Cancel the batch").click()

    expect(page.locator(".jobhead .state")).to_have_text("cancelled")
    expect(page.locator("[data-cells] a.s-cancelled")).to_have_count(4)
    site.shell.ok("release", "--type", "double")


def test_given_any_page_here_when_axe_looks_then_it_finds_nothing_and_a_phone_has_room(
    sound: Sound, batch: int
) -> None:
    sound(("/batches", f"/batches/{batch}", "/batches?submitter=nobody", f"/batches/{batch}/report"))
