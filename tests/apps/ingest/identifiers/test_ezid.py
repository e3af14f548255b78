"""An EZID service is asked as often as it is sensible, and what it answers is not believed blindly."""

import base64
import logging
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.ingest.identifiers import ezid_server
from apps.ingest.identifiers.ezid_server import ARK, EzidServer, says
from spinney.apps.ingest.config import profiles, settings
from spinney.apps.ingest.deposits import identities
from spinney.apps.ingest.identifiers import EzidMinter, MintFailed
from spinney.apps.ingest.identifiers.minters import Minter
from spinney.apps.ingest.inventory import open_inventory
from spinney.files.paths import NotAdmitted

PASSWORD = "pass:wörd 100%"


@pytest.fixture
def server() -> Iterator[EzidServer]:
    with EzidServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.over.set()
        server.shutdown()
        thread.join()


def minter(server: EzidServer, pauses: list[int] | None = None, **fields: Any) -> EzidMinter:
    chosen: dict[str, Any] = {
        "shoulder": "ark:/99999/fk4",
        "user": "us",
        "password": PASSWORD,
        "tries": 3,
        **fields,
    }
    pause = pauses.append if pauses is not None else lambda tries: None
    return EzidMinter(url=server.url, pause=pause, **chosen)


def test_what_it_is_asked(server: EzidServer) -> None:
    about = {"who": "Gibbon, Edward", "what": "Decline:\n100%", "target": "http://x/y", "my:own": "z"}

    ark = minter(server).mint("job-1", about)

    path, headers, body = server.requests[0]
    assert ark == ARK
    assert path == "/shoulder/ark:/99999/fk4"
    assert headers["Content-Type"] == "text/plain; charset=UTF-8"
    assert base64.b64decode(headers["Authorization"].removeprefix("Basic ")).decode() == f"us:{PASSWORD}"
    assert body.splitlines() == [
        "_profile: erc",
        "erc.who: Gibbon, Edward",
        "erc.what: Decline:%0A100%25",
        "_target: http://x/y",
        "my%3Aown: z",
    ]


@pytest.mark.parametrize(
    "text",
    [
        f"success: {ARK}\n",
        "success: ark:99999/fk4-rx9d523",
        f"success: {ARK} | ark:/b5072/fk2",
        f"success:{ARK}",
    ],
)
def test_an_ark_comes_in_its_one_form(text: str, server: EzidServer) -> None:
    server.answers = [says(text)]

    assert minter(server).mint("job-1", {}) == ARK


PASSING = {
    "500": says("error: internal server error", 500),
    "503": says("error: concurrency limit exceeded", 503),
    "429": says("error: slow down", 429),
    "an answer that breaks off": ezid_server.breaks_off,
    "an answer of which nobody knows the end": ezid_server.breaks_off_without_a_length,
    "a line that is cut": ezid_server.hangs_up,
}


@pytest.mark.parametrize("trouble", PASSING)
def test_trouble_that_passes_is_waited_out(trouble: str, server: EzidServer) -> None:
    server.answers = [PASSING[trouble], PASSING[trouble], says(f"success: {ARK}")]
    pauses: list[int] = []

    ark = minter(server, pauses).mint("job-1", {})

    assert (ark, pauses, len(server.requests)) == (ARK, [1, 2], 3)


LASTING = {
    "silence": (ezid_server.is_silent, "no whole answer within 0.1 s"),
    "a head that drips": (ezid_server.drips, "no whole answer within 0.1 s"),
    "an answer without end": (ezid_server.goes_on_and_on, "longer than 65536 bytes"),
    "500": (says("error: internal\nserver error", 500), "500 'error: internal\\nserver error'"),
}


@pytest.mark.parametrize("trouble", LASTING)
def test_trouble_that_lasts_ends_the_tries(trouble: str, server: EzidServer) -> None:
    answer, words = LASTING[trouble]
    server.answers = [answer]
    pauses: list[int] = []
    timeout_s = 0.1 if words.startswith("no whole") else 30.0

    with pytest.raises(MintFailed) as failure:
        minter(server, pauses, timeout_s=timeout_s).mint("job-1", {})

    assert "no ARK in 3 tries" in str(failure.value)
    assert words in str(failure.value)
    assert pauses == [1, 2], "three tries"
    # On a busy machine a try may be over before the server has read its request.
    assert len(server.requests) <= 3 if timeout_s < 1 else len(server.requests) == 3


def test_nobody_there() -> None:
    with EzidServer() as gone:
        url_of = minter(gone)

    with pytest.raises(MintFailed, match="in 3 tries"):
        url_of.mint("job-1", {})


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (400, "error: bad request - no such shoulder"),
        (401, "error: unauthorized"),
        (403, "error: no"),
        (404, "?"),
    ],
)
def test_a_refusal_is_not_asked_again(status: int, text: str, server: EzidServer) -> None:
    server.answers = [says(text, status)]

    with pytest.raises(NotAdmitted, match=f"refused to mint on ark:/99999/fk4: {status}"):
        minter(server).mint("job-1", {})

    assert len(server.requests) == 1


def test_the_password_goes_nowhere_else(server: EzidServer) -> None:
    with EzidServer() as other:
        server.answers = [says("", 307, Location=f"{other.url}/shoulder/ark:/99999/fk4")]

        with pytest.raises(NotAdmitted, match="307"):
            minter(server).mint("job-1", {})

        assert not other.requests


@pytest.mark.parametrize(
    "answer",
    [
        says("<html>Please log in</html>"),
        says("error: with the status of success"),
        says("success:"),
        says("success: doi:10.5072/FK2X"),
        says("success: ark:/99999/fk4rx9d5"),  # the last characters are gone
        says("success: ark:/99999/fk5rx9d523"),
        says("success: ark:/12345/fk4rx9d523"),
        says("success: ark:/99999/../../etc"),
    ],
)
def test_an_answer_that_names_no_ark_of_ours(answer: ezid_server.Answer, server: EzidServer) -> None:
    server.answers = [answer]

    with pytest.raises(MintFailed, match="answered"):
        minter(server).mint("job-1", {})

    assert len(server.requests) == 1  # it may have minted: another request would waste another


def test_the_setting_that_a_refusal_names_admits_shoulders_without_check_characters(
    server: EzidServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPINNEY_EZID_PASSWORD", PASSWORD)
    server.answers = [says("success: ark:/99999/fk4plain")] * 2

    def of_settings(more: str) -> Minter:
        file = tmp_path / "ingest.toml"
        file.write_text(
            '[storage.main]\nurl = "archive"\n[minters.main]\nnaan = "99999"\nshoulder = "fk4"\n'
            f'url = "{server.url}"\nuser = "us"\n{more}\n'
        )
        loaded = settings.load({settings.VARIABLE: str(file)})
        profile = profiles.Profile(name="maps", collections=("maps",), minter="main", storage="main")
        return identities.minter(loaded, profile, open_inventory(f"sqlite:///{tmp_path / 'i.db'}"))

    with pytest.raises(MintFailed, match=r"set check_characters = false for this minter"):
        of_settings("").mint("job-1", {})
    assert of_settings("check_characters = false").mint("job-1", {}) == "ark:/99999/fk4plain"


@pytest.mark.parametrize("answer", [ezid_server.repeats_secrets, says("error", 500), ezid_server.hangs_up])
def test_the_password_is_told_to_nobody(
    answer: ezid_server.Answer, server: EzidServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.answers = [answer]
    caplog.set_level(logging.DEBUG)
    ours = minter(server)

    with pytest.raises((NotAdmitted, MintFailed)) as failure:
        ours.mint("job-1", {})

    output = "".join(traceback.format_exception(failure.value)) + caplog.text + repr(ours)
    secrets = (PASSWORD, base64.b64encode(f"us:{PASSWORD}".encode()).decode())
    assert not any(secret in output for secret in secrets)
    assert "\x1b" not in str(failure.value)


@pytest.mark.parametrize(
    "fields",
    [
        {"url": "http://ezid.example.org"},
        {"url": "ftp://ezid.example.org"},
        {"url": f"https://us:{PASSWORD.replace('%', '')}@ezid.example.org"},
        {"url": "https://ezid.example.org:port"},
        {"url": "https://"},
        {"url": "http://localhost.example.org"},
        {"shoulder": "fk4"},
        {"tries": 0},
    ],
)
def test_what_cannot_mint_is_refused_at_once(fields: dict[str, object]) -> None:
    whole: dict[str, Any] = {
        "url": "https://ezid.example.org",
        "shoulder": "ark:/99999/fk4",
        "user": "us",
        "password": "p",
        **fields,
    }

    with pytest.raises(NotAdmitted) as refusal:
        EzidMinter(**whole)

    assert "wörd" not in str(refusal.value)
