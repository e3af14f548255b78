"""Minting by an EZID service over HTTP.

After "The EZID API, Version 2", operation "mint identifier": POST to ``/shoulder/<shoulder>`` with ANVL
in the body; the answer is ``success: <identifier>`` or ``error: <reason>``.

EZID mints a new ARK at each request. An answer that is lost, because the connection broke, the time limit
passed or this process died, leaves an ARK that nobody uses; the next try mints another. That is the
price of a service without idempotency keys; an ARK is never given twice.
"""

import asyncio
import base64
import functools
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from spinney.apps.ingest.identifiers import anvl, arks, noid
from spinney.files.paths import NotAdmitted, shown
from spinney.safe_http import is_loopback

ANSWER_MAX_BYTES = 64 << 10

_HEADERS = {
    "Content-Type": "text/plain; charset=UTF-8",
    "Accept": "text/plain",
    "Accept-Encoding": "identity",
}
_ERC_NAMES = {"who": "erc.who", "what": "erc.what", "when": "erc.when", "target": "_target"}
_LENGTHS = {"content-length", "transfer-encoding"}


class MintFailed(Exception):
    """The service gave no ARK; the message says how often it was tried, and what to do."""


class _Again(Exception):
    """This try got no answer, and another might."""


def _pause(tries: int) -> None:
    time.sleep(min(2.0 ** (tries - 1), 30.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class EzidMinter:
    """Mints on one shoulder of an EZID service.

    A repeated call with the same key may return another ARK; the caller keeps the first.
    """

    url: str
    """The URL of the service: ``https://ezid.example.org``. Plain http only to this host itself (loopback)."""
    shoulder: str
    """The shoulder with the NAAN: ``ark:/99999/fk4``."""
    user: str
    password: str = field(repr=False)
    tries: int = 4
    """The maximum number of tries for one ARK."""
    timeout_s: float = 30.0
    """The time limit of one try, from the connection to the last byte of the answer."""
    pause: Callable[[int], None] = field(default=_pause, repr=False)
    """Called before the next try, with the number of tries so far; waits."""
    check_characters: bool = True
    """Whether the shoulder's names end in a NOID check character, as EZID's do; a wrong one is refused."""

    def __post_init__(self) -> None:
        _require_safe_url(self.url)
        if self.tries < 1:
            raise NotAdmitted(f"{self.tries} tries mint nothing; give 1 or more")
        arks.canonical(self.shoulder)

    def mint(self, key: str, about: Mapping[str, str]) -> str:
        """Mint a new ARK; ``about`` has who, what, when, target, or elements by EZID's own names.

        It cannot be called in a running event loop (call it in a thread there).

        Raises NotAdmitted when the service refuses (another try would have the same result), MintFailed when
        it did not answer in ``tries`` tries or gave an invalid answer.
        """
        body = _body(about)
        for tries in range(1, self.tries + 1):
            try:
                return self._ark_of(self._answer(body))
            except _Again as error:
                reason = str(error)
            if tries < self.tries:
                self.pause(tries)
        raise MintFailed(
            f"EZID at {self.url} gave no ARK in {self.tries} tries (the last: {reason}); retry when it is back"
        )

    def _answer(self, body: str) -> str:
        """Return the text of a successful answer."""
        import httpx  # slow to load, and most services mint themselves

        try:
            # An event loop of its own: httpx's timeouts are for each piece, and a service that drips could hold
            # a stage for ever. Here the whole try has a time limit.
            status, text = asyncio.run(self._request(body))
        except TimeoutError:
            raise _Again(f"no whole answer within {self.timeout_s:g} s") from None
        except httpx.TransportError as error:
            raise _Again(self._shown(str(error) or type(error).__name__)) from None
        if status >= 500 or status == 429:
            raise _Again(f"{status} '{text[:200]}'")
        if status not in (200, 201):
            raise NotAdmitted(
                f"EZID at {self.url} refused to mint on {self.shoulder}: {status} '{text[:200]}'; correct the "
                f"profile's minter, its account or the description of the object"
            )
        return text

    async def _request(self, body: str) -> tuple[int, str]:
        """Send one request, and return the status and the text of the answer. Raises _Again where another try may
        help."""
        import httpx

        content = b""
        async with (
            asyncio.timeout(self.timeout_s),
            httpx.AsyncClient(verify=_tls(), timeout=None, follow_redirects=False) as client,  # noqa: S113
            client.stream(
                "POST",
                f"{self.url.rstrip('/')}/shoulder/{self.shoulder}",
                headers=_HEADERS,
                content=body.encode(),
                auth=httpx.BasicAuth(self.user, self.password),
            ) as response,
        ):
            if not _LENGTHS & set(response.headers):
                raise _Again("its answer has no length, so that it cannot be known to be complete")
            async for piece in response.aiter_raw():
                content += piece
                if len(content) > ANSWER_MAX_BYTES:
                    raise _Again(f"its answer is longer than {ANSWER_MAX_BYTES} bytes")
        return response.status_code, self._shown(content.decode("utf-8", "backslashreplace"))

    def _ark_of(self, answer: str) -> str:
        """Return the ARK in an answer. An invalid answer is not tried again, since the service may have minted."""
        word, _, rest = answer.partition(":")
        identifier = rest.partition("|")[0].strip()
        try:
            ark = arks.canonical(identifier)
        except NotAdmitted:
            ark = ""
        if word.strip() != "success" or not ark:
            raise MintFailed(
                f"EZID at {self.url} answered '{answer[:200]}', which names no ARK; look at the service"
            )
        if not ark.startswith(arks.canonical(self.shoulder)):
            raise MintFailed(
                f"EZID at {self.url} answered {ark}, which is not on {self.shoulder}; look at the service"
            )
        if self.check_characters and not noid.verify(ark.removeprefix("ark:/")):
            raise MintFailed(
                f"EZID at {self.url} answered {ark}, whose check character is wrong; retry, or set "
                f"check_characters = false for this minter if names of {self.shoulder} have none"
            )
        return ark

    def _shown(self, text: str) -> str:
        """Return foreign text on one line, and without the password, which the service might repeat."""
        header = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
        for secret in (header, self.password):
            if secret:
                text = text.replace(secret, "***")
        return shown(text.strip())


def _body(about: Mapping[str, str]) -> str:
    """Return the request's body: the description as ANVL, in the profile ERC."""
    elements = {_ERC_NAMES.get(name, name): value for name, value in about.items()}
    return anvl.line("_profile", "erc") + "".join(
        anvl.line(n, v) for n, v in elements.items() if n != "_profile"
    )


def _require_safe_url(text: str) -> None:
    """Raise NotAdmitted unless the password can be sent to this URL safely."""
    import httpx

    try:
        url = httpx.URL(text)
    except httpx.InvalidURL:
        raise NotAdmitted("EZID's address is no URL; give one like https://ezid.example.org") from None
    if url.userinfo:
        raise NotAdmitted(
            f"EZID's address has a user or password in it (host {shown(url.host)}); give them apart"
        )
    if (url.scheme == "https" and url.host) or (url.scheme == "http" and is_loopback(url.host)):
        return
    raise NotAdmitted(
        f"'{shown(text)}' is not https, and the password would go in the clear; give an https address"
    )


@functools.cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()  # tens of milliseconds: once a process
