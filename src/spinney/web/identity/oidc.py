"""Sign-in by an OpenID Connect provider: the authorization code flow with PKCE, state and nonce (OpenID Connect Core
1.0, RFC 7636, RFC 9207).

The browser is sent to the provider and keeps what it has to bring back (``PendingAuthorization``, in a signed cookie of
ten minutes). It comes back with a code, which is exchanged for an ID token over a connection of the server's own. The
token is accepted only with the provider's signature, for this client and this nonce, and while it is valid. Signatures
with a shared secret, and unsigned tokens, are refused.

authlib, joserfc and httpx are imported when the first sign-in needs them.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from spinney.model.errors import BadLogin, StoreUnavailable, UsageError
from spinney.model.rights.accounts import new_secret
from spinney.web.settings import Oidc

ANSWER_S = 10.0
"""How many seconds the provider may take for each step of an answer."""
ANSWER_MAX_BYTES = 1_000_000
"""A longer answer of the provider is refused."""
KEYS_S = 3600.0
"""How many seconds the provider's description and keys are kept. A key that is not among them is asked for
earlier."""
KEYS_AGAIN_S = 30.0
"""Where a token names a key that is not among those that are kept, they are fetched again, unless that was done within
this many seconds."""
LEEWAY_S = 60
"""How many seconds the provider's clock may differ from that of this host."""
SIGNATURES = (
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "EdDSA",
    "Ed25519",
)
_AGAIN = "sign in again"


class ProviderAway(StoreUnavailable):
    """The identity provider does not answer; try again, or sign in with a password."""

    is_public = True


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingAuthorization:
    """What must come back with a browser that was sent to the provider."""

    state: str
    """Random text that the provider hands back in the address, so that no other sign-in can be completed here."""
    nonce: str
    """Random text that the ID token must contain."""
    verifier: str
    """The secret of PKCE, whose digest was sent at the beginning (RFC 7636)."""
    redirect_uri: str
    """The address to which the provider sends the browser back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcUser:
    """The user who has signed in at the identity provider, with the groups that the provider names."""

    name: str
    groups: tuple[str, ...]
    """The groups that the provider names; none where it names none."""


class Provider:
    """The client of one issuer. It fetches the provider's description and keys when they are needed, and keeps them for
    ``KEYS_S`` seconds."""

    def __init__(self, oidc: Oidc, secret: str, *, clock: Callable[[], float] = time.time) -> None:
        self._oidc, self._secret, self._clock = oidc, secret, clock
        self._described: tuple[float, Mapping[str, Any]] | None = None
        self._keys: tuple[float, Any] | None = None
        self._once = asyncio.Lock()

    async def begin_oidc(self, redirect_uri: str) -> tuple[str, PendingAuthorization]:
        """Return the address to which the browser is sent, and what must come back with it. Raises ProviderAway."""
        from authlib.oauth2.rfc7636 import create_s256_code_challenge

        away = PendingAuthorization(
            state=new_secret(), nonce=new_secret(), verifier=new_secret(), redirect_uri=redirect_uri
        )
        challenge = create_s256_code_challenge(away.verifier)  # type: ignore[no-untyped-call]
        described = await self._description()
        query = {
            "response_type": "code",
            "client_id": self._oidc.client_id,
            "redirect_uri": redirect_uri,
            "scope": " ".join(self._oidc.scopes),
            "state": away.state,
            "nonce": away.nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        address = str(described["authorization_endpoint"])
        return f"{address}{'&' if '?' in address else '?'}{urlencode(query)}", away

    async def complete_oidc(self, query: Mapping[str, str], away: PendingAuthorization) -> OidcUser:
        """Return the user who has come back with this query. Raises BadLogin when the answer does not belong to
        ``away`` or cannot be trusted, and ProviderAway."""
        if query.get("state") != away.state:
            raise BadLogin(f"this sign-in was not begun here, or is long over; {_AGAIN}")
        if query.get("iss", self._oidc.issuer) != self._oidc.issuer:
            raise BadLogin(f"another provider than {self._oidc.issuer} has answered; {_AGAIN}")
        if "error" in query or not query.get("code"):
            raise BadLogin(
                f"the provider refused: {_plain(query.get('error', 'no code'))}; {_AGAIN}, or ask its admin"
            )
        claims = await self._claims(await self._token(query["code"], away), away)
        return self._person(claims)

    # --- from a code to claims ------------------------------------------------------------

    async def _token(self, code: str, away: PendingAuthorization) -> Mapping[str, Any]:
        """Exchange the code for tokens, by the authentication that the provider supports. Raises BadLogin when the
        provider does not take the code."""
        described = await self._description()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": away.redirect_uri,
            "code_verifier": away.verifier,
            "client_id": self._oidc.client_id,
        }
        headers = {"Accept": "application/json"}
        ways = described.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        if self._secret and "client_secret_basic" not in ways and "client_secret_post" in ways:
            form["client_secret"] = self._secret
        elif self._secret:
            headers["Authorization"] = _basic(self._oidc.client_id, self._secret)
        status, answer = await self._ask("POST", described["token_endpoint"], data=form, headers=headers)
        if status != 200 or not isinstance(answer.get("id_token"), str):
            raise BadLogin(
                f"the provider did not take the code ({_plain(answer.get('error', status))}); {_AGAIN}"
            )
        return answer

    async def _claims(self, token: Mapping[str, Any], away: PendingAuthorization) -> Mapping[str, Any]:
        """Return the claims of the ID token, after checking its signature, issuer, audience, nonce and times. The keys
        are fetched once more for a key that is not known. Raises BadLogin."""
        from authlib.oidc.core import CodeIDToken
        from joserfc import jwt
        from joserfc.errors import InvalidKeyIdError, JoseError

        for fresh in (False, True):
            keys = await self._keys_(fresh=fresh)
            try:
                decoded = jwt.decode(token["id_token"], keys, algorithms=SIGNATURES)
                claims = CodeIDToken(
                    decoded.claims,
                    decoded.header,
                    options={
                        "iss": {"essential": True, "value": self._oidc.issuer},
                        "aud": {"essential": True, "value": self._oidc.client_id},
                        "sub": {"essential": True},
                    },
                    params={
                        "nonce": away.nonce,
                        "client_id": self._oidc.client_id,
                        "access_token": token.get("access_token"),
                    },
                )
                claims.validate(now=int(self._clock()), leeway=LEEWAY_S)
            except InvalidKeyIdError:
                continue  # it signs with a new one
            except (JoseError, ValueError, TypeError, KeyError) as error:
                raise BadLogin(f"the provider's token is not valid ({_plain(error)}); {_AGAIN}") from None
            return dict(claims)
        raise BadLogin(f"the provider's token is not signed with any of its keys; {_AGAIN}")

    def _person(self, claims: Mapping[str, Any]) -> OidcUser:
        """Return the user that the claims name. Raises BadLogin when they name none, or an address that is not
        verified."""
        name = claims.get(self._oidc.name_claim)
        if not isinstance(name, str) or not name:
            raise BadLogin(
                f"the provider does not send the claim {self._oidc.name_claim!r}; set name_claim of [server.oidc] to "
                f"one that it sends, or add the scope that includes it to scopes"
            )
        # Some providers say it as text.
        if self._oidc.name_claim == "email" and claims.get("email_verified") in (False, "false"):
            raise BadLogin("the provider has not verified this address; verify it there, then sign in again")
        groups = claims.get(self._oidc.groups_claim, [])
        groups = [groups] if isinstance(groups, str) else groups
        group_list = groups if isinstance(groups, list) else []
        return OidcUser(name=name, groups=tuple(group for group in group_list if isinstance(group, str)))

    # --- discovery document of the provider -----------------------------------------------

    async def _description(self) -> Mapping[str, Any]:
        """Return the description of the provider (OpenID Connect Discovery 1.0), fetched at most once an hour. Raises
        ProviderAway."""
        async with self._once:
            if self._described is None or self._clock() - self._described[0] >= KEYS_S:
                address = f"{self._oidc.issuer.rstrip('/')}/.well-known/openid-configuration"
                status, document = await self._ask("GET", address)
                if status != 200:
                    raise ProviderAway(
                        f"{address} answers {status}; check issuer of [server.oidc], or try again"
                    )
                self._require_fit(document)
                self._described = self._clock(), document
            return self._described[1]

    def _require_fit(self, document: Mapping[str, Any]) -> None:
        """Raise ProviderAway unless the description is that of the issuer, and its addresses are as well protected
        (HTTPS) as the issuer's."""
        if document.get("issuer") != self._oidc.issuer:
            raise ProviderAway(
                f"the provider calls itself {_plain(document.get('issuer'))}, not {self._oidc.issuer}; set issuer of "
                f"[server.oidc] to what it says"
            )
        scheme = urlsplit(self._oidc.issuer).scheme
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            if urlsplit(str(document.get(name, ""))).scheme not in {"https", scheme}:
                raise ProviderAway(
                    f"the provider has no safe {name}; ask its admin, or sign in with a password"
                )

    async def _keys_(self, *, fresh: bool) -> Any:
        """Return the keys of the provider. ``fresh``: they lack the one that is needed, so fetch them again unless that
        was just done."""
        from joserfc.errors import JoseError
        from joserfc.jwk import KeySet

        described = await self._description()
        async with self._once:
            age_s = KEYS_S if self._keys is None else self._clock() - self._keys[0]
            if self._keys is None or age_s >= (KEYS_AGAIN_S if fresh else KEYS_S):
                status, document = await self._ask("GET", described["jwks_uri"])
                if status != 200:
                    raise ProviderAway(
                        f"the provider does not give its keys ({status}); try again in a moment"
                    )
                try:
                    self._keys = self._clock(), KeySet.import_key_set(document)  # type: ignore[arg-type]
                except (JoseError, ValueError, KeyError, TypeError):
                    raise ProviderAway("the provider's keys cannot be read; ask its admin") from None
            return self._keys[1]

    async def _ask(self, method: str, address: str, **more: Any) -> tuple[int, Mapping[str, Any]]:
        """Send a request to the provider, and return status and JSON object of its answer, which is bounded
        in time and size; an answer that is no JSON object counts as an empty one. Redirects are not followed,
        since the provider's addresses are configured or described by itself. Raises ProviderAway."""
        import httpx
        import orjson

        try:
            async with (
                httpx.AsyncClient(timeout=ANSWER_S, follow_redirects=False) as client,
                client.stream(method, address, **more) as answer,
            ):
                content = b""
                async for piece in answer.aiter_bytes():
                    content += piece
                    if len(content) > ANSWER_MAX_BYTES:
                        raise ProviderAway("the provider's answer is far too long; ask its admin")
            document = orjson.loads(content) if content else {}
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ProviderAway(
                f"the identity provider does not answer ({type(error).__name__}); try again, or sign in with a password"
            ) from None
        except orjson.JSONDecodeError:
            document = {}
        return answer.status_code, document if isinstance(document, dict) else {}


def provider(oidc: Oidc, environment: Mapping[str, str]) -> Provider:
    """Return the provider that is configured; its client secret comes from ``environment``. Raises UsageError where a
    package that it needs is not installed."""
    try:
        import authlib.oidc.core  # noqa: F401
        import httpx  # noqa: F401
        import joserfc  # noqa: F401
    except ImportError as error:
        raise UsageError(
            f"sign-in by a provider needs {error.name}; install it with: pip install 'spinney[oidc]'"
        ) from None
    return Provider(oidc, environment.get(oidc.client_secret_variable, ""))


def _basic(client_id: str, secret: str) -> str:
    """Return the header by which the client authenticates itself. RFC 6749, section 2.3.1: both parts are
    encoded as forms are, first."""
    from base64 import b64encode

    return f"Basic {b64encode(f'{quote(client_id)}:{quote(secret)}'.encode()).decode()}"


def _plain(value: object) -> str:
    """Return something of the provider's as part of a sentence of ours: short, printable, and without what
    separates our sentences."""
    return "".join(c for c in str(value)[:100] if c.isprintable() and c != ";")
