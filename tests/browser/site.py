"""A store with a node at work and a server before it, as a browser meets them."""

import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fastapi import Request

from cli.shell import Shell, furnish
from http_listener import Listening
from spinney.model.access import ALL_RIGHTS, Rights, Role
from spinney.schemas import AuthMethod
from spinney.server.application import Parts, make
from spinney.store.sql import open_store
from spinney.web.request_context import Authenticator, Principal
from spinney.web.settings import ServerSettings
from spinney.web.store_pool import StorePool

_COOKIE = "principal"


class ByCookie:
    """Identity made for tests: whoever the cookie ``principal`` names, with the role of that name; an admin without
    one.
    Who signs in for real is tested where that is made (``test_signing_in``)."""

    async def authenticate(self, request: Request) -> Principal | None:
        name = request.cookies.get(_COOKIE, "admin")
        if name == "nobody":
            return None
        rights = ALL_RIGHTS if name == "admin" else Rights(role=Role(name))
        return Principal(name=name, rights=rights, how=AuthMethod.SESSION, csrf="the-form's-own")

    async def reauthenticate(self, request: Request) -> Principal | None:
        return await self.authenticate(request)


def by_cookie(stores: StorePool, settings: ServerSettings) -> Authenticator:
    return ByCookie()


@dataclass
class Site:
    """A folder with a store; ``start`` and ``stop`` a server on it, at an address that stays."""

    shell: Shell
    identity: Callable[[StorePool, ServerSettings], Authenticator] = by_cookie
    port: int = 0
    _server: Listening | None = field(default=None, repr=False)
    _node: "subprocess.Popen[str] | None" = field(default=None, repr=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def folder(self) -> Path:
        return self.shell.folder

    def start(self) -> None:
        """Serve; returns when it answers."""
        settings = ServerSettings(threads=3)
        app = make(
            Parts(
                settings=settings,
                open_store=lambda: open_store(f"sqlite:///{self.folder}/spinney.db"),
                folders=self.folder / "spinney.folders",
                run_dir=str(self.folder / "spinney.db.run"),
                identity=self.identity,
            )
        )
        self._server = Listening(app, settings, port=self.port)
        self.port = self._server.port

    def stop(self) -> None:
        """End the server; the address is kept for the next."""
        if self._server is not None:
            self._server.end()
        self._server = None

    def start_node(self, name: str = "oak", slots: int = 3) -> None:
        # A long lease: on a machine so busy that heartbeats are late by 15 s, its guard would end the node.
        words = ["--name", name, "--slots", str(slots), "--lease", "10m"]
        self._node = self.shell.start("node", "jobs:app", *words)

    def close(self) -> None:
        self.stop()
        if self._node is not None:
            self._node.terminate()
            # The second request ends jobs that a failed test has left, too.
            self._node.send_signal(signal.SIGINT)
            try:
                self._node.communicate(timeout=60)
            except subprocess.TimeoutExpired:
                self._node.kill()
                self._node.communicate()

    # --- jobs -----------------------------------------------------------------------------

    def submit(self, *words: str) -> int:
        """As on the command line; the number of the first job."""
        if self._node is not None and self._node.poll() is not None:
            raise AssertionError(f"the node of the site has ended: {self._node.communicate()}")
        output = re.search(r"\d+", self.shell.ok("submit", *words))
        assert output is not None
        return int(output[0])

    def ended(self, job: int) -> int:
        """Wait until it has settled."""
        self.shell.call("wait", str(job))
        return job

    def flag(self, name: str) -> Path:
        """A file that is not there yet, for jobs that wait for it."""
        return self.folder / f"{name}.flag"


@contextmanager
def site(folder: Path, *, node: bool = True) -> Iterator[Site]:
    """With a server, and a node at work."""
    furnished = Site(shell=furnish(folder))
    try:
        if node:
            furnished.start_node()
        furnished.start()
        yield furnished
    finally:
        furnished.close()
