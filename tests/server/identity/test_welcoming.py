"""One-time links: the first admin, and a new password."""

from typing import Any

import pytest
from starlette.testclient import TestClient

from server.identity.conftest import PASSWORD, House, csrf, sign_in, who
from spinney.features.accounts.commands import MakeLink
from spinney.model.access import Role
from spinney.service.sign_in import SignIn


def _first(house: House) -> str:
    secret = house.control.part(SignIn).invite_first()
    assert secret is not None
    return secret


def _open(browser: TestClient, secret: str) -> Any:
    answer = browser.get(f"/welcome?link={secret}")
    assert (answer.status_code, answer.headers["location"]) == (303, "/welcome")
    return browser.get("/welcome")


def _fill(browser: TestClient, page: str, **fields: str) -> Any:
    return browser.post(
        "/welcome", data={"csrf": csrf(page), "password": PASSWORD, "again": PASSWORD, **fields}
    )


def test_given_the_first_link_then_it_makes_an_admin_who_is_signed_in(house: House) -> None:
    browser, secret = house.client(), _first(house)

    page = _open(browser, secret).text
    answer = _fill(browser, page, name="wanda")

    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert who(browser.get("/probe")) == ("wanda", "session", "admin")


def test_given_a_link_then_its_secret_stays_in_no_address_no_page_and_no_referrer(house: House) -> None:
    browser, secret = house.client(), _first(house)

    first = browser.get(f"/welcome?link={secret}")
    page = browser.get("/welcome")

    assert first.headers["referrer-policy"] == "no-referrer"
    assert page.headers["referrer-policy"] == "same-origin"  # else its form would come from nowhere
    assert secret not in first.headers["location"] + first.text + page.text
    assert first.headers["cache-control"] == "no-store"
    assert "HttpOnly" in first.headers["set-cookie"]
    assert "Max-Age=600" in first.headers["set-cookie"]


def test_given_a_link_that_was_used_then_it_is_good_for_nothing_and_that_is_in_the_audit(
    house: House,
) -> None:
    secret = _first(house)
    browser = house.client()
    _fill(browser, _open(browser, secret).text, name="wanda")

    answer = _open(house.client(), secret)

    assert answer.status_code == 401
    assert "no longer good" in answer.text
    assert len(house.audited("access refused")) == 1


def test_given_two_browsers_with_one_link_then_one_makes_the_admin(house: House) -> None:
    secret = _first(house)
    one, two = house.client(), house.client()
    pages = [_open(browser, secret).text for browser in (one, two)]

    assert _fill(one, pages[0], name="wanda").status_code == 303
    assert _fill(two, pages[1], name="eve").status_code == 401
    assert [user.name for user in house.store.accounts.users()] == ["wanda"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": "a b"}, "cannot name a user"),
        ({"name": "token:x"}, "cannot name a user"),
        ({"name": ""}, "cannot name a user"),
        ({"name": "wanda", "again": "other"}, "differ"),
        ({"name": "wanda", "password": "short", "again": "short"}, "12 to 256"),
    ],
)
def test_given_what_does_not_fit_then_the_field_says_so_and_the_link_stays_good(
    house: House, fields: dict[str, str], message: str
) -> None:
    browser = house.client()
    page = _open(browser, _first(house)).text

    answer = _fill(browser, page, **fields)

    assert answer.status_code == 422
    assert message in answer.text
    assert ' aria-invalid="true"' in answer.text
    assert _fill(browser, page, name="wanda").status_code == 303


def test_given_a_link_to_set_a_password_then_the_page_is_of_that_user_alone(house: House) -> None:
    house.user("ann", Role.VIEWER)
    before = house.signed_in("ann")
    secret = house.control.do(MakeLink(name="ann")).secret
    browser = house.client()
    page = _open(browser, secret).text
    assert "Set a new password for ann" in page

    new = "another horse battery"
    answer = _fill(browser, page, name="eve", password=new, again=new)

    assert answer.status_code == 303
    assert who(browser.get("/probe")) == ("ann", "session", "viewer")
    assert before.get("/probe").status_code == 401
    assert sign_in(house.client(), "ann", PASSWORD).status_code == 401


def test_given_no_link_then_the_page_says_to_open_it(house: House) -> None:
    answer = house.client().get("/welcome")

    assert answer.status_code == 401
    assert "Open the link again" in answer.text


def test_given_a_form_of_another_site_then_the_link_is_not_used(house: House) -> None:
    browser = house.client()
    page = _open(browser, _first(house)).text

    answer = browser.post(
        "/welcome",
        data={"csrf": csrf(page), "name": "eve", "password": PASSWORD, "again": PASSWORD},
        headers={"Sec-Fetch-Site": "cross-site"},
    )

    assert answer.status_code == 403
    assert house.store.accounts.users() == []
