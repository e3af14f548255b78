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


def test_given_long_times_and_messages_then_each_has_room_in_its_card(page: Page, batch: int) -> None:
    page.set_viewport_size({"width": 1400, "height": 900})
    page.goto(f"/jobs/{batch}")
    # Each is set and measured at once, since an open page may be filled in anew between two steps.
    beyond, ends = page.locator(".timeline").evaluate(
        """line => {
            const times = line.querySelector(".lane .figure");
            times.textContent = "waited 59 min 59 s, ran 23 h 59 min";
            const ends = [...line.querySelectorAll(".bars")].map(bar => bar.getBoundingClientRect().right);
            return [times.scrollWidth - times.clientWidth, ends];
        }"""
    )
    assert beyond <= 0
    assert len(set(ends)) == 1

    page.goto("/jobs")
    lines = page.locator("td.wide").first.evaluate(
        """cell => {
            cell.innerHTML = "<span title=m></span>";
            cell.firstChild.textContent = "It is long. ".repeat(40);
            return cell.firstChild.clientHeight / parseFloat(getComputedStyle(cell).lineHeight);
        }"""
    )
    assert round(lines) == 2
