"""Signing in and out, as a browser does it."""

import pytest
from starlette.testclient import TestClient

from server.identity.conftest import LOCAL, PASSWORD, House, csrf, sign_in, who
from spinney.model.access import Role
from spinney.web.settings import ServerSettings


def test_given_name_and_password_then_a_session_begins_and_leads_where_one_wanted_to_go(house: House) -> None:
    house.user("ann", Role.SUBMITTER)
    browser = house.client()

    answer = sign_in(browser, "ann", PASSWORD, "/jobs?state=failed")

    assert (answer.status_code, answer.headers["location"]) == (303, "/jobs?state=failed")
    assert who(browser.get("/probe")) == ("ann", "session", "submitter")


def test_given_the_sessions_cookie_then_no_script_reads_it_and_it_is_signed(house: House) -> None:
    house.user()
    browser = house.client()

    cookie = sign_in(browser, "ann", PASSWORD).headers["set-cookie"]

    assert cookie.startswith("spinney_session=")
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    value = browser.cookies["spinney_session"]
    for forged in (value[:-1], value.partition(".")[0], "x", ""):
        assert house.client(Cookie=f"spinney_session={forged}").get("/probe").status_code == 401
    assert house.client(Cookie=f"spinney_session={value}").get("/probe").status_code == 200


@pytest.mark.parametrize(
    ("name", "password"),
    [("ann", "wrong"), ("nobody", PASSWORD), ("", ""), ("a\0b", "x"), ("ann", "x" * 1000)],
)
def test_given_what_is_wrong_then_it_says_so_without_telling_what(
    house: House, name: str, password: str
) -> None:
    house.user()
    browser = house.client()

    answer = sign_in(browser, name, password)

    assert answer.status_code == 401
    assert "the name or the password is wrong" in answer.text.lower()
    assert 'role="alert"' in answer.text
    assert "spinney_session" not in browser.cookies
    assert PASSWORD not in answer.text
    assert len(house.audited("login refused")) == 1


def test_given_two_sign_ins_then_they_count_against_one_limit_of_the_server(house: House) -> None:
    house.user()
    sign_in(house.client(), "ann", "wrong")
    flow = house.app.state.sign_in_flow

    sign_in(house.client(), "ann", "wrong")

    assert house.app.state.sign_in_flow is flow


def test_given_many_wrong_attempts_then_the_next_has_to_wait_and_is_told_how_long(house: House) -> None:
    house.user()
    house.guessed_at("ann")

    answer = sign_in(house.client(), "ann", PASSWORD)

    assert answer.status_code == 429
    assert int(answer.headers["retry-after"]) >= 1
    assert "try again in" in answer.text


def test_given_a_stranger_who_guesses_from_the_same_address_then_nobody_else_and_no_known_browser_waits(
    house: House,
) -> None:
    house.user("ann")
    house.user("ben")
    session = house.signed_in("ann")
    session.post("/sign-out", data={"csrf": csrf(session.get("/account").text)})
    house.guessed_at("ann")

    assert sign_in(house.client(), "ann", PASSWORD).status_code == 429
    assert sign_in(session, "ann", PASSWORD).status_code == 303
    assert sign_in(house.client(), "ben", PASSWORD).status_code == 303


def test_given_who_has_signed_in_then_the_browser_keeps_what_makes_it_known_and_no_other_can_make_it(
    house: House,
) -> None:
    house.user()
    browser = house.client()
    cookies = sign_in(browser, "ann", PASSWORD).headers.get_list("set-cookie")

    device_cookie = next(cookie for cookie in cookies if cookie.startswith("spinney_device_"))
    assert "HttpOnly" in device_cookie
    assert f"Max-Age={400 * 86_400}" in device_cookie
    name, _, value = device_cookie.partition(";")[0].partition("=")
    house.guessed_at("ann")
    stranger = house.client()
    for forged in (value[:-1], "x", ""):
        stranger.cookies.set(name, forged)
        assert sign_in(stranger, "ann", PASSWORD).status_code == 429
    stranger.cookies.set(name, value)
    assert sign_in(stranger, "ann", PASSWORD).status_code == 303


def test_given_a_proxy_that_is_not_trusted_then_the_log_says_once_that_its_word_is_ignored(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    house.user()
    for _ in range(2):
        browser = house.client(**{"X-Forwarded-For": "198.51.100.1"})
        assert sign_in(browser, "ann", PASSWORD).status_code == 303

    (warning,) = [
        record.getMessage() for record in caplog.records if "X-Forwarded-For" in record.getMessage()
    ]
    assert f"a request from {LOCAL} has X-Forwarded-For, which is ignored" in warning
    assert house.audited_details("login")[0]["address"] == LOCAL


@pytest.mark.parametrize(
    "where",
    [
        "//evil.example",
        "https://evil.example/",
        "/\\evil.example",
        "javascript:alert(1)",
        "\\/evil",
        "/a\r\nSet-Cookie: x=y",
        "/sign-out",
        "",
        "jobs",
        "/\t/evil.example",
    ],
)
def test_given_a_place_that_is_not_ours_then_it_leads_to_the_overview(house: House, where: str) -> None:
    house.user()

    assert sign_in(house.client(), "ann", PASSWORD, where).headers["location"] == "/"


def test_given_a_name_that_is_markup_then_the_page_shows_it_as_text(house: House) -> None:
    answer = sign_in(house.client(), '"><script>alert(1)</script>', "x" * 12)

    assert "<script>alert" not in answer.text
    assert "&lt;script&gt;alert" in answer.text


def test_given_a_form_of_nobodys_then_nobody_signs_in(house: House) -> None:
    house.user()
    browser = house.client()
    proof = csrf(browser.get("/sign-in").text)
    filled = {"name": "ann", "password": PASSWORD}

    for attempt in (
        browser.post("/sign-in", data=filled),
        browser.post("/sign-in", data={**filled, "csrf": "x"}),
        house.client().post("/sign-in", data={**filled, "csrf": proof}),  # another browser's
        browser.post("/sign-in", data={**filled, "csrf": proof}, headers={"Origin": "http://evil.example"}),
    ):
        assert attempt.status_code == 403
        assert "set-cookie" not in attempt.headers or "spinney_session" not in attempt.headers["set-cookie"]
    assert len(house.audited("login")) == 0


def test_given_that_somebody_signs_out_then_the_session_is_over_for_whoever_has_its_cookie(
    house: House,
) -> None:
    house.user()
    browser = house.signed_in()
    value = browser.cookies["spinney_session"]

    answer = browser.post("/sign-out", data={"csrf": csrf(browser.get("/account").text)})

    assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")
    assert "spinney_session" not in browser.cookies
    assert house.client(Cookie=f"spinney_session={value}").get("/probe").status_code == 401
    assert [entry.by for entry in house.audited("logout")] == ["ann"]


def test_given_a_foreign_page_then_it_signs_nobody_out(house: House) -> None:
    house.user()
    browser = house.signed_in()

    assert browser.post("/sign-out").status_code == 403
    assert browser.get("/probe").status_code == 200


def test_given_who_signs_in_again_then_the_session_of_before_ends(house: House) -> None:
    house.user("ann")
    house.user("bob")
    browser = house.signed_in("ann")
    first = browser.cookies["spinney_session"]
    stranger = house.client(Cookie=f"spinney_guest={browser.cookies['spinney_guest']}")
    proof = csrf(stranger.get("/sign-in").text)

    answer = browser.post("/sign-in", data={"name": "bob", "password": PASSWORD, "csrf": proof})

    assert answer.status_code == 303
    assert house.client(Cookie=f"spinney_session={first}").get("/probe").status_code == 401


def test_given_who_is_signed_in_then_the_form_leads_on(house: House) -> None:
    house.user()

    answer = house.signed_in().get("/sign-in?next=/queues")

    assert (answer.status_code, answer.headers["location"]) == (303, "/queues")


def test_given_a_reader_who_is_not_known_then_a_page_leads_to_the_form_and_back(house: House) -> None:
    answer = house.client().get("/account", headers={"Accept": "text/html"})

    assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in?next=%2Faccount")


def test_given_no_user_at_all_then_the_form_says_what_to_do(house: House) -> None:
    assert "open the link that the server printed" in house.client().get("/sign-in").text


def test_given_a_body_that_no_form_has_then_it_is_refused(house: House) -> None:
    kind = {"Content-Type": "application/x-www-form-urlencoded"}

    answer = house.client().post("/sign-in", content=b"x" * 100_000, headers=kind)

    assert answer.status_code == 413


# --- one's own account ------------------------------------------------------------------------


def test_given_a_new_password_then_this_browser_stays_and_the_others_are_out(house: House) -> None:
    house.user()
    here, there = house.signed_in(), house.signed_in()
    proof = csrf(here.get("/account").text)
    new = "another horse battery"

    answer = here.post(
        "/account/password", data={"csrf": proof, "before": PASSWORD, "password": new, "again": new}
    )

    assert answer.status_code == 303, answer.text
    assert here.get("/probe").status_code == 200
    assert there.get("/probe").status_code == 401
    assert sign_in(house.client(), "ann", new).status_code == 303


@pytest.mark.parametrize(
    ("before", "new", "again", "status", "message"),
    [
        ("wrong", "another horse battery", "another horse battery", 401, "not the password that you have"),
        (PASSWORD, "another horse battery", "different", 422, "differ"),
        (PASSWORD, "short", "short", 422, "12 to 256 characters"),
    ],
)
def test_given_what_does_not_fit_then_the_field_says_so(
    house: House, before: str, new: str, again: str, status: int, message: str
) -> None:
    house.user()
    browser = house.signed_in()
    proof = csrf(browser.get("/account").text)

    answer = browser.post(
        "/account/password", data={"csrf": proof, "before": before, "password": new, "again": again}
    )

    assert answer.status_code == status
    assert message in answer.text
    assert ' aria-invalid="true"' in answer.text
    assert 'aria-describedby="f-' in answer.text
    assert browser.get("/probe").status_code == 200


def test_given_that_the_others_are_signed_out_then_this_one_stays_with_a_new_secret(house: House) -> None:
    house.user()
    here, there = house.signed_in(), house.signed_in()
    old = here.cookies["spinney_session"]

    answer = here.post("/account/alone", data={"csrf": csrf(here.get("/account").text)})

    assert answer.status_code == 303
    assert here.cookies["spinney_session"] != old
    assert here.get("/probe").status_code == 200
    assert there.get("/probe").status_code == 401


# --- over HTTPS -------------------------------------------------------------------------------


class TestOverHttps:
    @pytest.fixture
    def settings(self) -> ServerSettings:
        return ServerSettings(url="https://spinney.example.org")

    def test_given_https_then_cookies_are_bound_to_this_host_and_go_over_nothing_else(
        self, house: House
    ) -> None:
        house.user()
        browser = house.client(base="https://spinney.example.org")

        answer = sign_in(browser, "ann", PASSWORD)

        cookie = answer.headers["set-cookie"]
        assert cookie.startswith("__Host-spinney_session=")
        assert "Secure" in cookie
        assert "Path=/" in cookie
        assert "Domain" not in cookie
        assert answer.headers["strict-transport-security"].startswith("max-age=")
        assert who(browser.get("/probe"))[0] == "ann"

    def test_given_https_then_every_cookie_goes_over_it_alone_whatever_sets_it(self, house: House) -> None:
        house.user()
        browser = house.client(base="https://spinney.example.org")
        form = browser.get("/sign-in")
        sign_in(browser, "ann", PASSWORD)
        page = browser.get("/account")
        response = browser.post(
            "/account/alone", data={"csrf": csrf(page.text)}, headers={"Sec-Fetch-Site": "same-origin"}
        )
        shown = browser.get("/account")

        cookies = [
            cookie for answer in (form, response, shown) for cookie in answer.headers.get_list("set-cookie")
        ]
        names = {cookie.partition("=")[0] for cookie in cookies}
        assert {"spinney_flash", "__Host-spinney_guest", "__Host-spinney_session"} <= names
        assert [cookie for cookie in cookies if cookie.lower().split("; ").count("secure") != 1] == []
        assert (
            "data-secure" in page.text.partition("<html")[2].partition(">")[0]
        )  # for the cookie that the script sets

    def test_given_a_cookie_that_another_host_could_have_set_then_it_says_nothing(self, house: House) -> None:
        house.user()
        browser = house.client(base="https://spinney.example.org")
        sign_in(browser, "ann", PASSWORD)
        value = browser.cookies["__Host-spinney_session"]

        stranger: TestClient = house.client(
            base="https://spinney.example.org", Cookie=f"spinney_session={value}"
        )

        assert stranger.get("/probe").status_code == 401


def test_sign_ins_are_counted_by_how_they_end(house: House) -> None:
    house.user()
    house.guessed_at("ben")
    sign_in(house.client(), "ann", PASSWORD)
    for name in ("ann", "nobody"):
        sign_in(house.client(), name, "wrong")
    sign_in(house.client(), "ben", PASSWORD)

    ends = {
        outcome: house.app.state.registry.get_sample_value(
            "spinney_sign_ins_total", {"method": "password", "outcome": outcome}
        )
        for outcome in ("ok", "refused", "throttled")
    }
    assert ends == {"ok": 1, "refused": 2, "throttled": 1}
