"""What a browser sends by itself changes nothing without a proof that a page of ours made it."""

import pytest
from starlette.testclient import TestClient

from server.identity.conftest import House, csrf, who
from spinney.features.accounts.commands import MakeToken
from spinney.model.access import Rights, Role
from spinney.web.settings import ServerSettings


@pytest.fixture
def browser(house: House) -> TestClient:
    house.user()
    return house.signed_in()


def _proof(browser: TestClient) -> str:
    return csrf(browser.get("/account").text)


def test_given_the_proof_in_a_field_then_it_is_done(browser: TestClient) -> None:
    assert who(browser.post("/probe", data={"csrf": _proof(browser)})) == ("ann", "session", "operator")


def test_given_the_proof_in_a_field_beside_a_file_then_it_is_done(browser: TestClient) -> None:
    answer = browser.post("/probe", data={"csrf": _proof(browser)}, files={"file": ("a.txt", b"x")})

    assert answer.status_code == 200


def test_given_the_proof_in_a_header_then_it_is_done(browser: TestClient) -> None:
    headers = {"X-CSRF-Token": _proof(browser), "Sec-Fetch-Site": "same-origin", "Origin": "http://localhost"}

    assert browser.post("/probe", headers=headers).status_code == 200
    assert browser.post("/api/v1/probe", headers=headers).status_code == 200


@pytest.mark.parametrize("proof", [None, "", "x", "é", "A" * 43])
def test_given_no_proof_or_a_wrong_one_then_it_is_refused_and_in_the_audit(
    house: House, browser: TestClient, proof: str | None
) -> None:
    answer = browser.post("/probe", data={} if proof is None else {"csrf": proof})

    assert answer.status_code == 403
    (record,) = house.audited_details("access refused")
    assert "out of date" in record["why"]


def test_given_the_proof_of_another_session_then_it_is_refused(house: House, browser: TestClient) -> None:
    other = _proof(house.signed_in())

    assert browser.post("/probe", data={"csrf": other}).status_code == 403


def test_given_the_api_then_a_field_is_no_proof(browser: TestClient) -> None:
    assert browser.post("/api/v1/probe", data={"csrf": _proof(browser)}).status_code == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_given_a_request_that_another_site_made_then_the_proof_does_not_help(
    browser: TestClient, site: str
) -> None:
    headers = {"X-CSRF-Token": _proof(browser), "Sec-Fetch-Site": site}

    assert browser.post("/probe", headers=headers).status_code == 403


@pytest.mark.parametrize(
    "origin", ["null", "http://evil.example", "http://localhost:3000", "http://localhost.evil.example"]
)
def test_given_another_origin_then_the_proof_does_not_help(browser: TestClient, origin: str) -> None:
    headers = {"X-CSRF-Token": _proof(browser), "Origin": origin}

    assert browser.post("/probe", headers=headers).status_code == 403


def test_given_a_browser_that_hides_where_it_comes_from_then_a_page_of_ours_still_is(
    browser: TestClient,
) -> None:
    headers = {"X-CSRF-Token": _proof(browser), "Origin": "null", "Sec-Fetch-Site": "same-origin"}

    assert browser.post("/probe", headers=headers).status_code == 200


def test_given_only_reading_then_no_proof_is_needed_from_anywhere(browser: TestClient) -> None:
    assert browser.get("/probe", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 200


def test_given_a_token_then_no_proof_is_needed(house: House) -> None:
    made = house.control.do(MakeToken(name="ci", rights=Rights(role=Role.SUBMITTER)))

    answer = house.client().post("/api/v1/probe", headers={"Authorization": f"Bearer {made.secret}"})

    assert answer.status_code == 200


class TestBehindAProxyThatPutsItsOwnNameIntoHost:
    @pytest.fixture
    def settings(self) -> ServerSettings:
        return ServerSettings(url="https://spinney.example.org", secure_cookies=False)

    def test_given_the_origin_that_people_see_then_it_is_ours(self, browser: TestClient) -> None:
        headers = {"X-CSRF-Token": _proof(browser), "Origin": "https://spinney.example.org"}

        assert browser.post("/probe", headers=headers).status_code == 200


@pytest.mark.parametrize(
    "url",
    [
        "spinney.example.org",
        "spinney.example.org:443",
        "https://example.org/spinney",
        "https://?a",
        "ftp://a",
    ],
)
def test_a_url_that_is_no_site_of_its_own_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="it must be a scheme and a host name"):
        ServerSettings(url=url)


def test_the_url_of_a_site_may_be_written_with_a_slash_and_capitals() -> None:
    settings = ServerSettings(url="HTTPS://Spinney.example.org/")
    assert settings.url == "https://spinney.example.org"
    assert settings.secure
