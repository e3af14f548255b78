"""The tree of a batch in a browser: groups open in place, one after the other."""

from pathlib import Path

from playwright.sync_api import Page, expect

from browser.conftest import Sound
from browser.site import Site
from browser.site import site as served
from spinney.model.jobs import Submission
from spinney.model.types import StageSpec, TypeSpec
from spinney.store.sql import open_store


def test_given_a_batch_when_its_group_is_opened_then_its_jobs_are_there_and_stay(
    page: Page, site: Site
) -> None:
    batch = site.ended(site.submit("parent", "-p", "n=3"))
    page.goto(f"/jobs/{batch}")
    page.get_by_role("link", name="Tree", exact=True).first.click()

    group = page.locator(".tree details").first
    group.locator("summary").click()
    expect(group.locator(".member")).to_have_count(3)
    page.evaluate("htmx.trigger(document.body, 'spinney:tree')")

    expect(group.locator(".member")).to_have_count(3)
    group.locator(".member a").first.click()
    page.get_by_role("link", name="Tree", exact=True).first.click()
    expect(page.locator(".ancestor")).to_contain_text("parent")


def test_given_a_list_of_jobs_beside_others_then_its_rows_use_the_width_that_there_is(
    page: Page, site: Site
) -> None:
    batch = site.ended(site.submit("parent", "-p", "n=2"))

    page.goto(f"/jobs/{batch}")
    expect(page.locator("#below [data-row]").first).to_have_css("display", "flex")

    page.goto("/jobs")
    expect(page.locator("[data-row]").first).to_have_css("display", "table-row")


def test_given_a_type_with_a_dotted_name_when_its_group_is_opened_then_its_jobs_are_there(
    page: Page, tmp_path: Path
) -> None:
    dotted = TypeSpec(name="monitor.thin:v1@lab", stages=(StageSpec(name="work"),))
    with served(tmp_path, node=False) as own:
        store = open_store(f"sqlite:///{own.folder}/spinney.db")
        store.register([dotted], [])
        (needed,) = store.submit([Submission(type=dotted.name)], now_us=1).ids
        store.submit([Submission(type=dotted.name, needs=(needed,))], now_us=1)
        store.close()
        page.goto(f"{own.url}/jobs/{needed}/tree")

        group = page.locator(".relations details").first
        group.locator("summary").click()

        expect(group.locator(".member")).to_have_count(1)
        page.goto("about:blank")  # closes its stream of events


def test_given_a_tree_then_it_is_sound(sound: Sound, site: Site) -> None:
    batch = site.ended(site.submit("parent", "-p", "n=2"))
    sound(
        [f"/jobs/{batch}", "/nodes/oak", f"/jobs/{batch}/tree", "/activity", "/retention"],
        settle=lambda page: page.wait_for_function(
            "[...document.querySelectorAll('#below, .bars')].every(part => part.childElementCount)"
        ),
    )
