"""Who comes in, and who does not: with real accounts, passwords and sessions."""

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from fastapi import Request
from playwright.sync_api import Page, expect

from browser.conftest import NewPage
from browser.site import ByCookie, Site
from cli.shell import furnish
from spinney.commands.control import Control
from spinney.features.accounts.commands import AddUser
from spinney.model.access import Rights, Role
from spinney.model.errors import Forbidden
from spinney.service.sign_in import SignIn
from spinney.store.sql import open_store
from spinney.web.identity import StoreAuthenticator
from spinney.web.request_context import Principal, now_us

PASSWORD = "a spinney is a small wood"


@pytest.fixture
def house(tmp_path: Path) -> Iterator[Site]:
    """Where nobody has an account yet."""
    site = Site(shell=furnish(tmp_path), identity=StoreAuthenticator)
    site.start()
    yield site
    site.close()


@contextmanager
def opened(house: Site) -> Iterator[Control]:
    with closing(open_store(f"sqlite:///{house.folder}/spinney.db")) as store:
        yield Control(store=store, clock=now_us, wake_nodes=lambda: None, by="test")


def sign_in(page: Page, house: Site, name: str, password: str = PASSWORD) -> None:
    page.goto(f"{house.url}/sign-in")
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()


def test_from_the_first_link_to_a_colleague_who_may_less(new_page: NewPage, house: Site) -> None:
    # Given the link that the server prints where nobody has an account
    with opened(house) as control:
        secret = control.part(SignIn).invite_first()
    admin = new_page(loud=True)
    admin.goto(f"{house.url}/welcome?link={secret}")
    admin.get_by_label("Name").fill("wanda")
    for label in ("Password (required)", "Repeat the password (required)"):
        admin.get_by_label(label, exact=True).fill(PASSWORD)
    admin.get_by_role("button", name="Create account").click()
    expect(admin).to_have_url(f"{house.url}/")

    # When she makes an account for a colleague, who follows the link that comes of it
    admin.goto(f"{house.url}/users")
    admin.get_by_label("Name (required)").fill("vic")
    admin.get_by_label("Role").select_option("viewer")
    admin.get_by_role("button", name="Create user").click()
    link = admin.locator("#secret").inner_text()
    viewer = new_page(loud=True)
    viewer.goto(link)
    for label in ("Password (required)", "Repeat the password (required)"):
        viewer.get_by_label(label, exact=True).fill(PASSWORD)
    viewer.get_by_role("main").get_by_role("button").click()

    # Then he is in, and what is not for him is refused and says why
    expect(viewer).to_have_url(f"{house.url}/")
    refused = viewer.goto(f"{house.url}/users")
    assert refused is not None
    assert refused.status == 403
    expect(viewer.get_by_role("main")).to_contain_text("that takes an admin")

    # And a server that starts anew still knows both
    house.stop()
    house.start()
    for page in (admin, viewer):
        page.goto(f"{house.url}/jobs")
        expect(page.get_by_role("heading", level=1)).to_have_text("Jobs")


def test_a_wrong_password_is_refused_the_right_one_lets_in_and_out_again(
    new_page: NewPage, house: Site
) -> None:
    with opened(house) as control:
        control.do(AddUser(name="wanda", rights=Rights(role=Role.OPERATOR), password=PASSWORD))
    page = new_page(loud=True)
    page.goto(f"{house.url}/jobs?state=failed")
    expect(page).to_have_url(re.compile("/sign-in"))

    sign_in(page, house, "wanda", "a spinney is a large wood")
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.get_by_label("Name")).to_have_value("wanda")

    sign_in(page, house, "wanda")
    expect(page).to_have_url(f"{house.url}/")
    page.locator("summary", has_text="wanda").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page).to_have_url(re.compile("/sign-in"))
    page.go_back()
    page.reload()
    expect(page).to_have_url(re.compile("/sign-in"))


def test_given_a_session_that_ends_while_a_form_is_filled_in_then_it_is_filled_in_after_signing_in(
    new_page: NewPage, house: Site
) -> None:
    with opened(house) as control:
        control.do(AddUser(name="wanda", rights=Rights(role=Role.OPERATOR), password=PASSWORD))
    page = new_page(loud=True)
    sign_in(page, house, "wanda")

    # A form that is sent
    page.goto(f"{house.url}/webhooks")
    page.get_by_label("Name (required)").fill("archive")
    page.get_by_label("URL (required)").fill("https://archive.example.org/hook")
    page.get_by_label("cancelled").check()
    page.context.clear_cookies()
    page.get_by_role("button", name="Create webhook").click()
    expect(page.locator("#flash")).to_contain_text("nothing was done")
    _sign_in_again(page)
    expect(page.locator("#flash")).to_contain_text("What you had entered is in the form again")
    expect(page.get_by_label("URL (required)")).to_have_value("https://archive.example.org/hook")
    expect(page.get_by_label("cancelled")).to_be_checked()
    page.get_by_role("button", name="Create webhook").click()
    expect(page.locator("#secret")).to_be_visible()

    # A form that is not sent yet: the page asks by itself, and learns where to sign in
    page.goto(f"{house.url}/holds")
    page.get_by_label("On", exact=True).select_option("submitter")
    page.locator("#lay-reason").fill("the disk is full")
    page.context.clear_cookies()
    page.evaluate("htmx.trigger(document.body, 'spinney:holds')")
    _sign_in_again(page)
    expect(page.locator("#lay-reason")).to_have_value("the disk is full")
    expect(page.get_by_label("On", exact=True)).to_have_value("submitter")
    page.reload()
    expect(page.locator("#lay-reason")).to_have_value("")


def test_given_somebody_else_who_signs_in_then_they_do_not_see_what_was_entered_before(
    new_page: NewPage, house: Site
) -> None:
    with opened(house) as control:
        for name in ("wanda", "otto"):
            control.do(AddUser(name=name, rights=Rights(role=Role.OPERATOR), password=PASSWORD))
    page = new_page(loud=True)
    sign_in(page, house, "wanda")

    page.goto(f"{house.url}/holds")
    page.locator("#lay-reason").fill("the disk of wanda is full")
    page.context.clear_cookies()
    page.evaluate("htmx.trigger(document.body, 'spinney:holds')")
    _sign_in_again(page, "otto")
    expect(page).to_have_url(re.compile("/holds"))
    expect(page.locator("#lay-reason")).to_have_value("")

    # Nothing is kept of whoever signs out
    page.locator("#lay-reason").fill("the disk of otto is full")
    page.locator("summary", has_text="otto").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page).to_have_url(re.compile("/sign-in"))
    assert "full" not in page.evaluate("JSON.stringify(sessionStorage)")


def _sign_in_again(page: Page, name: str = "wanda") -> None:
    expect(page).to_have_url(re.compile("/sign-in"))
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()


class Doorkeeper(ByCookie):
    """Lets people in while ``door`` is open."""

    door = "open"

    async def authenticate(self, request: Request) -> Principal | None:
        if self.door == "shut":
            raise Forbidden("vic is disabled; ask an admin, who can let that user in again")
        return await super().authenticate(request) if self.door == "open" else None


@pytest.mark.parametrize("door", ["sign in", "shut"])
def test_given_an_open_page_whose_reader_may_look_no_more_then_it_says_so_and_asks_no_more(
    new_page: NewPage, tmp_path: Path, door: str
) -> None:
    doorkeeper = Doorkeeper()
    house = Site(shell=furnish(tmp_path), identity=lambda stores, settings: doorkeeper)
    house.start()
    try:
        page = new_page(loud=True)
        page.clock.install()
        page.goto(f"{house.url}/jobs")
        expect(page.locator("#live")).to_contain_text("live")

        doorkeeper.door = door
        if door == "sign in":
            expect(page).to_have_url(re.compile("/sign-in"), timeout=30_000)
        else:
            expect(page.locator("#flash")).to_contain_text("vic is disabled", timeout=30_000)
            expect(page.locator("#live")).to_contain_text("not live")

        questions: list[str] = []
        page.on("request", lambda request: questions.append(request.url))
        page.clock.fast_forward("10:00")
        page.evaluate("fetch('/health').then((answer) => answer.text())")
        assert [url for url in questions if "/events" in url or "/jobs" in url] == []
    finally:
        house.close()
