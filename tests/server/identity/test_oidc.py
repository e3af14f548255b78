"""Sign-in by an OpenID Connect provider: a provider made for this test, asked over HTTP.

It keeps to what OpenID Connect Core 1.0 asks of a provider, so far as a client can tell; ``lie`` has it say one thing
that a client must not believe.
"""

import base64
import hashlib
import threading
import time
from collections.abc import Callable, Iterator
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import orjson
import pytest
from joserfc import jwt
from joserfc.jwk import KeySet, OctKey, RSAKey
from starlette.testclient import TestClient

from server.identity.conftest import House, who
from spinney.features.accounts.commands import ChangeUser
from spinney.model.access import AccessScope, Rights, Role
from spinney.web.identity.oidc import Provider
from spinney.web.settings import Oidc, ServerSettings

SECRET = "s3cr:t/of the client"


@cache
def _key(kid: str, owner: str = "the provider") -> RSAKey:
    """Made once for all tests: it takes longer than most of them."""
    return RSAKey.generate_key(2048, parameters={"kid": kid})


class ProviderMadeForThisTest:
    """Serves discovery, authorization, token and keys on loopback."""

    def __init__(self) -> None:
        self.keys = [_key("one")]
        self.person: dict[str, Any] = {"sub": "1", "preferred_username": "ann", "groups": ["ops"]}
        self.lie: Callable[[dict[str, Any]], dict[str, Any]] = lambda claims: claims
        self.sign: Callable[[dict[str, Any]], str] = self._sign
        self.codes: dict[str, dict[str, str]] = {}
        self.requested_paths: list[str] = []
        self.authorization = ""
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                provider._get(self)

            def do_POST(self) -> None:
                provider._post(self)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.issuer = f"http://127.0.0.1:{self._server.server_address[1]}/realm"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def end(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def authorize(self, address: str) -> str:
        """The user signs in there and agrees; where the browser is sent."""
        query = dict(parse_qsl(urlsplit(address).query))
        assert query["response_type"] == "code"
        assert query["code_challenge_method"] == "S256"
        assert "openid" in query["scope"].split()
        code = f"code-{len(self.codes)}"
        self.codes[code] = query
        return f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query['state'], 'iss': self.issuer})}"

    def _get(self, handler: BaseHTTPRequestHandler) -> None:
        self.requested_paths.append(handler.path)
        if handler.path == "/realm/.well-known/openid-configuration":
            self._answer(
                handler,
                200,
                {
                    "issuer": self.issuer,
                    "authorization_endpoint": f"{self.issuer}/authorize",
                    "token_endpoint": f"{self.issuer}/token",
                    "jwks_uri": f"{self.issuer}/keys",
                },
            )
        elif handler.path == "/realm/keys":
            self._answer(handler, 200, KeySet(self.keys).as_dict(private=False))
        else:
            self._answer(handler, 404, {})

    def _post(self, handler: BaseHTTPRequestHandler) -> None:
        self.requested_paths.append(handler.path)
        body = handler.rfile.read(int(handler.headers["content-length"])).decode()
        form = {name: values[0] for name, values in parse_qs(body).items()}
        self.authorization = handler.headers.get("authorization", "")
        response = self.codes.pop(form.get("code", ""), None)
        verifier = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        fits = (
            response is not None
            and response["redirect_uri"] == form["redirect_uri"]
            and response["code_challenge"] == base64.urlsafe_b64encode(verifier).decode().rstrip("=")
        )
        if response is None or not fits:
            self._answer(handler, 400, {"error": "invalid_grant"})
            return
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "aud": response["client_id"],
            "iat": now,
            "exp": now + 300,
            "nonce": response["nonce"],
            **self.person,
        }
        answer = {"access_token": "a", "token_type": "Spawner", "id_token": self.sign(self.lie(claims))}
        self._answer(handler, 200, answer)

    def _sign(self, claims: dict[str, Any]) -> str:
        return jwt.encode({"alg": "RS256", "kid": self.keys[-1].kid}, claims, self.keys[-1])

    @staticmethod
    def _answer(handler: BaseHTTPRequestHandler, status: int, content: Any) -> None:
        text = orjson.dumps(content)
        handler.send_response(status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(text)))
        handler.end_headers()
        handler.wfile.write(text)


@pytest.fixture
def provider() -> Iterator[ProviderMadeForThisTest]:
    made_provider = ProviderMadeForThisTest()
    yield made_provider
    made_provider.end()


@pytest.fixture
def settings(provider: ProviderMadeForThisTest, monkeypatch: pytest.MonkeyPatch) -> ServerSettings:
    monkeypatch.setenv("SPINNEY_OIDC_SECRET", SECRET)
    roles = {"staff": Role.VIEWER, "ops": Role.OPERATOR}
    return ServerSettings(oidc=Oidc(issuer=provider.issuer, client_id="spinney", roles=roles))


def _come(
    house: House, provider: ProviderMadeForThisTest, browser: TestClient | None = None
) -> tuple[TestClient, Any]:
    browser = browser or house.client()
    away = browser.get("/sign-in/oidc?next=/queues")
    assert away.status_code == 303, away.text
    return browser, browser.get(provider.authorize(away.headers["location"]))


def test_given_somebody_of_a_group_then_a_user_is_made_and_signed_in(
    house: House, provider: ProviderMadeForThisTest
) -> None:
    browser, answer = _come(house, provider)

    assert (answer.status_code, answer.headers["location"]) == (303, "/queues")
    assert who(browser.get("/probe")) == ("ann", "session", "operator")
    user = house.store.accounts.user("ann")
    assert user.password_us is None
    assert user.by == f"oidc:{provider.issuer}"
    assert (
        provider.authorization == "Basic " + base64.b64encode(b"spinney:s3cr%3At/of%20the%20client").decode()
    )


def test_given_a_user_whom_the_store_knew_before_then_the_store_says_what_he_may(
    house: House, provider: ProviderMadeForThisTest
) -> None:
    house.user("ann", Role.VIEWER, password=None)

    browser, _ = _come(house, provider)

    assert who(browser.get("/probe")) == ("ann", "session", "viewer")


def test_given_other_groups_since_then_the_role_follows_and_an_admins_limits_stay(
    house: House, provider: ProviderMadeForThisTest
) -> None:
    _come(house, provider)
    limited = Rights(role=Role.OPERATOR, within=AccessScope(collections=("lab",)))
    house.control.do(ChangeUser(name="ann", rights=limited))
    provider.person["groups"] = ["staff", "unknown"]

    browser, _ = _come(house, provider)

    assert who(browser.get("/probe")) == ("ann", "session", "viewer")
    assert house.store.accounts.user("ann").rights.within.collections == ("lab",)


def test_given_nobody_of_a_group_any_more_then_he_is_refused_and_his_sessions_end(
    house: House, provider: ProviderMadeForThisTest
) -> None:
    before, _ = _come(house, provider)
    provider.person["groups"] = []

    _, answer = _come(house, provider)
    house.app.state.identity.forget()

    assert answer.status_code == 403
    assert "none of the groups" in answer.text
    assert before.get("/probe").status_code == 401


def test_given_a_user_who_is_disabled_then_the_provider_does_not_let_him_in(
    house: House, provider: ProviderMadeForThisTest
) -> None:
    house.user("ann", Role.VIEWER, password=None)
    house.control.do(ChangeUser(name="ann", disabled=True))

    _, answer = _come(house, provider)

    assert answer.status_code == 403


@pytest.mark.parametrize("name", ["token:ci", "socket:root", "a b", "../x"])
def test_given_a_name_that_no_user_can_have_then_it_is_refused(
    house: House, provider: ProviderMadeForThisTest, name: str
) -> None:
    provider.person["preferred_username"] = name

    _, answer = _come(house, provider)

    assert answer.status_code == 403
    assert house.store.accounts.users() == []


LIES: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "another issuer": lambda claims: {**claims, "iss": "http://evil.example"},
    "for another client": lambda claims: {**claims, "aud": "other"},
    "for several, by another": lambda claims: {**claims, "aud": ["spinney", "other"], "azp": "other"},
    "expired": lambda claims: {**claims, "exp": claims["iat"] - 3600},
    "no end": lambda claims: {name: value for name, value in claims.items() if name != "exp"},
    "of tomorrow": lambda claims: {**claims, "iat": claims["iat"] + 86_400},
    "another nonce": lambda claims: {**claims, "nonce": "x"},
    "no nonce": lambda claims: {name: value for name, value in claims.items() if name != "nonce"},
    "no name": lambda claims: {name: value for name, value in claims.items() if name != "preferred_username"},
}


@pytest.mark.parametrize("lie", LIES)
def test_given_claims_that_do_not_fit_then_nobody_comes_in_and_it_is_in_the_audit(
    house: House, provider: ProviderMadeForThisTest, lie: str
) -> None:
    provider.lie = LIES[lie]

    browser, answer = _come(house, provider)

    assert answer.status_code == 401, answer.text
    assert browser.get("/probe").status_code == 401
    assert house.store.accounts.users() == []
    assert len(house.audited("access refused")) == 1


def test_given_signatures_of_others_then_nobody_comes_in(
    house: House, provider: ProviderMadeForThisTest
) -> None:
    digest = hashlib.sha256(provider.keys[0].as_pem(private=False)).hexdigest()
    strangers = _key("one", "a stranger")
    unsigned = base64.urlsafe_b64encode(b'{"alg":"none"}').decode().rstrip("=")

    def none(claims: dict[str, Any]) -> str:
        return f"{unsigned}.{base64.urlsafe_b64encode(orjson.dumps(claims)).decode().rstrip('=')}."

    forged: list[Callable[[dict[str, Any]], str]] = [
        lambda claims: jwt.encode({"alg": "RS256", "kid": "one"}, claims, strangers),
        lambda claims: jwt.encode({"alg": "HS256", "kid": "one"}, claims, OctKey.import_key(SECRET)),
        lambda claims: jwt.encode({"alg": "HS256", "kid": "one"}, claims, OctKey.import_key(digest)),
        none,
        lambda claims: "nonsense",
    ]
    for sign in forged:
        provider.sign = sign
        _, answer = _come(house, provider)
        assert answer.status_code == 401, answer.text
    assert house.store.accounts.users() == []


def test_given_an_answer_to_another_browser_then_it_is_refused(
    house: House, provider: ProviderMadeForThisTest
) -> None:
    begun = house.client().get("/sign-in/oidc")
    back = provider.authorize(begun.headers["location"])

    assert house.client().get(back).status_code == 401  # has not begun
    other = house.client()
    other.get("/sign-in/oidc")
    assert other.get(back).status_code == 401  # has begun another


def test_given_a_code_that_was_used_then_it_is_refused(
    house: House, provider: ProviderMadeForThisTest
) -> None:
    browser = house.client()
    back = provider.authorize(browser.get("/sign-in/oidc").headers["location"])
    assert browser.get(back).status_code == 303

    assert browser.get(back).status_code == 401


def test_given_that_the_provider_refuses_then_its_words_are_text(
    house: House, provider: ProviderMadeForThisTest
) -> None:
    browser = house.client()
    query = dict(parse_qsl(urlsplit(browser.get("/sign-in/oidc").headers["location"]).query))

    back = urlencode({"error": "<script>alert(1)</script>", "state": query["state"]})
    answer = browser.get(f"/sign-in/oidc/callback?{back}")

    assert answer.status_code == 401
    assert "<script>alert" not in answer.text
    assert "alert(1)" in answer.text


def test_given_another_issuer_in_the_answer_then_it_is_refused(
    house: House, provider: ProviderMadeForThisTest
) -> None:
    browser = house.client()
    back = provider.authorize(browser.get("/sign-in/oidc").headers["location"])

    answer = browser.get(back.partition("&iss=")[0] + "&iss=http%3A%2F%2Fevil.example")

    assert answer.status_code == 401
    assert "/realm/token" not in provider.requested_paths


def test_given_no_provider_that_answers_then_the_form_says_so(
    house: House, provider: ProviderMadeForThisTest
) -> None:
    provider.end()

    answer = house.client().get("/sign-in/oidc")

    assert answer.status_code == 503
    assert "does not answer" in answer.text
    provider.end = lambda: None  # type: ignore[method-assign]


def test_given_the_form_then_it_offers_the_provider(house: House) -> None:
    page = house.client().get("/sign-in?next=/jobs").text

    assert 'href="/sign-in/oidc?next=/jobs"' in page
    assert "Sign in with your organisation" in page


# --- the provider's keys ----------------------------------------------------------------------


async def test_given_a_new_key_of_the_provider_then_it_is_asked_for_but_not_every_time(
    provider: ProviderMadeForThisTest,
) -> None:
    now = time.time()
    client = Provider(Oidc(issuer=provider.issuer, client_id="spinney"), "", clock=lambda: now)

    async def come() -> str:
        address, away = await client.begin_oidc("http://localhost/sign-in/oidc/callback")
        back = dict(parse_qsl(urlsplit(provider.authorize(address)).query))
        return (await client.complete_oidc(back, away)).name

    assert await come() == "ann"
    provider.keys.append(_key("two"))
    now += 60
    assert await come() == "ann"
    assert provider.requested_paths.count("/realm/keys") == 2
    assert await come() == "ann"
    assert provider.requested_paths.count("/realm/keys") == 2


@pytest.mark.parametrize("verified", [False, "false"])
async def test_given_an_email_that_is_not_verified_then_it_names_nobody(
    provider: ProviderMadeForThisTest, verified: bool | str
) -> None:
    provider.person |= {"email": "ann@example.org", "email_verified": verified}
    client = Provider(Oidc(issuer=provider.issuer, client_id="spinney", name_claim="email"), "")
    address, away = await client.begin_oidc("http://localhost/sign-in/oidc/callback")
    back = dict(parse_qsl(urlsplit(provider.authorize(address)).query))

    with pytest.raises(Exception, match="not verified"):
        await client.complete_oidc(back, away)
