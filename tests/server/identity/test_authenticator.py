"""Tokens, peers and proxies: who is told to ask, in which order, and who is not let in."""

import os
import pwd

import pytest

from contract.words import ONE
from server.identity.conftest import House, who
from spinney.features.accounts.commands import ChangeUser, MakeToken, RevokeToken
from spinney.model.access import AccessScope, Rights, Role
from spinney.web.request_context import now_us
from spinney.web.settings import ServerSettings

ME = pwd.getpwuid(os.geteuid()).pw_name
OTHER = next(user for user in pwd.getpwall() if user.pw_uid != os.geteuid())


def _bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def test_given_nothing_then_nobody_asks_and_the_audit_is_not_filled(house: House) -> None:
    answer = house.client().get("/probe")

    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert house.audited("access refused") == []


def test_given_a_users_token_then_its_owner_asks_with_what_both_allow(house: House) -> None:
    house.user("ann", Role.OPERATOR)
    answer = house.control.do(MakeToken(name="night", owner="ann", rights=Rights(role=Role.SUBMITTER)))

    assert who(house.client().get("/probe", headers=_bearer(answer.secret))) == ("ann", "token", "submitter")


def test_given_a_machines_token_then_its_name_is_no_users(house: House) -> None:
    answer = house.control.do(MakeToken(name="ci", rights=Rights(role=Role.SUBMITTER)))

    assert who(house.client().get("/probe", headers=_bearer(answer.secret))) == (
        "token:ci",
        "token",
        "submitter",
    )


def test_given_a_token_that_was_revoked_then_it_is_refused_once_asked_anew(house: House) -> None:
    answer = house.control.do(MakeToken(name="ci", rights=Rights(role=Role.SUBMITTER)))
    client = house.client()
    assert client.get("/probe", headers=_bearer(answer.secret)).status_code == 200

    house.control.do(RevokeToken(token=answer.token.id))
    house.app.state.identity.forget()

    assert client.get("/probe", headers=_bearer(answer.secret)).status_code == 401


def test_given_a_token_that_expires_then_it_is_refused_at_that_moment_although_it_is_remembered(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    until_us = now_us() + 3_600_000_000
    answer = house.control.do(MakeToken(name="ci", rights=Rights(role=Role.VIEWER), expires=until_us))
    client = house.client()
    monkeypatch.setattr("spinney.web.identity.authenticator.now_us", lambda: until_us - 1)
    assert client.get("/probe", headers=_bearer(answer.secret)).status_code == 200

    monkeypatch.setattr("spinney.web.identity.authenticator.now_us", lambda: until_us)

    assert client.get("/probe", headers=_bearer(answer.secret)).status_code == 401


@pytest.mark.parametrize(
    "secret", ["", "x", "spn_0123456789abcdef_" + "A" * 43, "spn_é", "spn_" + "0" * 5000]
)
def test_given_a_wrong_token_then_it_is_refused_and_in_the_audit_without_its_secret(
    house: House, secret: str
) -> None:
    answer = house.client().get("/probe", headers={"Authorization": f"Bearer {secret}".encode("latin-1")})

    assert answer.status_code == 401
    assert "spinney token make" in answer.json()["detail"]
    (record,) = house.audited_details("access refused")
    assert record["why"] == "wrong token"
    assert record["address"] == "10.1.2.3"
    assert "A" * 43 not in str(record)


def test_given_a_hundred_wrong_tokens_then_the_audit_has_one_entry(house: House) -> None:
    client = house.client()
    for _ in range(100):
        assert client.get("/probe", headers=_bearer("nonsense")).status_code == 401

    assert [entry.count for entry in house.audited("access refused")] == [1]


def test_given_wrong_tokens_that_all_differ_then_the_audit_has_one_entry(house: House) -> None:
    for number in range(30):
        secret = f"spn_{number:016x}_{'A' * 43}"
        assert house.client(f"10.1.2.{number}").get("/probe", headers=_bearer(secret)).status_code == 401

    assert [entry.count for entry in house.audited("access refused")] == [1]


def test_given_a_user_with_limits_then_what_is_not_there_for_him_is_in_the_audit_be_it_there_or_not(
    house: House,
) -> None:
    house.store.register([ONE], [])
    seen, unseen = (house.submit(name) for name in ("maps", "coins"))
    limited = Rights(role=Role.OPERATOR, within=AccessScope(collections=("maps",)))
    secret = house.control.do(MakeToken(name="ci", rights=limited)).secret
    client = house.client(**_bearer(secret))
    assert client.get(f"/api/v1/jobs/{seen}").status_code == 200
    assert house.audited("refused") == []

    for job in (unseen, 999):
        assert client.get(f"/api/v1/jobs/{job}").status_code == 404
        assert client.post(f"/api/v1/jobs/{job}/cancel").status_code == 404
    body = client.post("/api/v1/jobs/verbs", json={"verb": "cancel", "ids": [unseen, 999]}).json()

    assert body["refused_jobs"] == 2, body
    assert [entry["why"] for entry in house.audited_details("refused")] == [
        f"there is no job {unseen}; check its number in the list of jobs",
        "there is no job 999; check its number in the list of jobs",
        f"2 jobs that do not exist: {unseen}, 999",
    ]
    admin = house.control.do(MakeToken(name="all", rights=Rights(role=Role.ADMIN))).secret
    assert house.client(**_bearer(admin)).get("/api/v1/jobs/999").status_code == 404
    assert len(house.audited("refused")) == 3


def test_given_the_token_of_somebody_else_then_to_revoke_it_is_refused_as_not_there_and_in_the_audit(
    house: House,
) -> None:
    house.user("ann", Role.SUBMITTER)
    answer = house.control.do(MakeToken(name="ci", rights=Rights(role=Role.VIEWER)))
    own = house.control.do(MakeToken(name="own", owner="ann")).secret

    assert house.client(**_bearer(own)).delete(f"/api/v1/tokens/{answer.token.id}").status_code == 404

    assert [(entry.by, "you have no token" in entry.what) for entry in house.audited("refused")] == [
        ("ann", True)
    ]


def test_given_a_wrong_token_beside_a_good_session_then_it_is_refused(house: House) -> None:
    house.user()
    browser = house.signed_in()

    assert browser.get("/probe", headers=_bearer("nonsense")).status_code == 401


def test_given_another_scheme_then_it_is_passed_over(house: House) -> None:
    house.user()
    browser = house.signed_in()

    assert who(browser.get("/probe", headers={"Authorization": "Basic YTpi"})) == (
        "ann",
        "session",
        "operator",
    )


# --- peers ------------------------------------------------------------------------------------


def test_given_the_servers_own_user_at_the_socket_then_it_is_admin_in_a_name_no_user_can_have(
    house: House,
) -> None:
    house.user("root" if ME == "root" else ME, Role.VIEWER)

    assert who(house.client(f"uid:{os.geteuid()}").post("/probe")) == (f"socket:{ME}", "peer", "admin")


@pytest.mark.parametrize("key", [OTHER.pw_name, str(OTHER.pw_uid)])
def test_given_a_peer_that_is_configured_then_it_has_that_role(house: House, key: str) -> None:
    house.app.state.identity._settings = ServerSettings(peers={key: Role.SUBMITTER})

    answer = house.client(f"uid:{OTHER.pw_uid}").get("/probe")

    assert who(answer) == (f"socket:{OTHER.pw_name}", "peer", "submitter")


def test_given_any_other_peer_then_it_is_refused_and_in_the_audit(house: House) -> None:
    answer = house.client(f"uid:{OTHER.pw_uid}").get("/probe")

    assert answer.status_code == 403
    assert "peers of [server]" in answer.json()["detail"]
    (entry,) = house.audited("access refused")
    assert entry.by == f"socket:{OTHER.pw_name}"


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "Via", "X-Real-IP"])
def test_given_a_proxy_at_the_socket_then_its_visitors_are_not_taken_for_it(
    house: House, header: str
) -> None:
    answer = house.client(f"uid:{os.geteuid()}").get("/probe", headers={header: "192.0.2.1"})

    assert answer.status_code == 403
    assert "over TCP" in answer.json()["detail"]


@pytest.mark.parametrize("address", ["uid", "127.0.0.1", "testclient"])
def test_given_a_tcp_address_then_it_is_no_peer(house: House, address: str) -> None:
    assert house.client(address).get("/probe").status_code == 401


# --- proxies ----------------------------------------------------------------------------------


class TestBehindAProxy:
    @pytest.fixture
    def settings(self) -> ServerSettings:
        return ServerSettings(trusted_header="X-Remote-User", trusted_proxies=("10.9.0.0/16",))

    def test_given_a_user_it_names_then_that_one_asks_with_his_own_rights(self, house: House) -> None:
        house.user("ann", Role.SUBMITTER, password=None)

        answer = house.client("10.9.0.7").get("/probe", headers={"X-Remote-User": "ann"})

        assert who(answer) == ("ann", "proxy", "submitter")

    def test_given_the_header_from_anywhere_else_then_it_says_nothing(self, house: House) -> None:
        house.user("ann")

        assert house.client("10.8.0.7").get("/probe", headers={"X-Remote-User": "ann"}).status_code == 401

    def test_given_somebody_whom_the_store_does_not_know_then_he_is_refused(self, house: House) -> None:
        answer = house.client("10.9.0.7").get("/probe", headers={"X-Remote-User": "bob"})

        assert answer.status_code == 403
        assert "spinney user add bob --no-password" in answer.json()["detail"]
        assert len(house.audited("access refused")) == 1

    def test_given_a_role_for_such_then_he_has_that_role(
        self, house: House, settings: ServerSettings
    ) -> None:
        house.app.state.identity._settings = settings.model_copy(update={"trusted_role": Role.VIEWER})

        answer = house.client("10.9.0.7").get("/probe", headers={"X-Remote-User": "bob"})

        assert who(answer) == ("bob", "proxy", "viewer")

    def test_given_a_user_who_is_disabled_then_a_role_for_all_does_not_let_him_in(
        self, house: House, settings: ServerSettings
    ) -> None:
        house.app.state.identity._settings = settings.model_copy(update={"trusted_role": Role.VIEWER})
        house.user("ann", Role.VIEWER)
        house.control.do(ChangeUser(name="ann", disabled=True))

        assert house.client("10.9.0.7").get("/probe", headers={"X-Remote-User": "ann"}).status_code == 403

    @pytest.mark.parametrize("name", ["token:ci", "socket:root", "a b", "x" * 200, "a,b"])
    def test_given_a_name_that_no_user_can_have_then_it_is_refused(
        self, house: House, settings: ServerSettings, name: str
    ) -> None:
        house.app.state.identity._settings = settings.model_copy(update={"trusted_role": Role.VIEWER})

        assert house.client("10.9.0.7").get("/probe", headers={"X-Remote-User": name}).status_code == 403

    def test_given_the_header_twice_then_it_is_refused(self, house: House) -> None:
        house.user("ann")
        headers = [("X-Remote-User", "ann"), ("X-Remote-User", "eve")]

        assert house.client("10.9.0.7").get("/probe", headers=headers).status_code == 403

    def test_given_a_change_then_it_has_to_bear_a_proof(self, house: House) -> None:
        house.user("ann")

        answer = house.client("10.9.0.7").post("/probe", headers={"X-Remote-User": "ann"})

        assert answer.status_code == 403

    def test_given_a_page_for_a_reader_then_its_refusal_is_counted_once(self, house: House) -> None:
        house.client("10.9.0.7").get("/probe", headers={"X-Remote-User": "bob", "Accept": "text/html"})
        refusals = house.app.state.refusals

        refusals.flush(house.store.audit, now_us=now_us(), all_=True)

        assert [entry.count for entry in house.audited("access refused")] == [1]
