"""Payloads handed in by who has HTTP alone: as a body, as a form, once more, and with curl as the guide has it."""

import hashlib
import json
import re
import shutil
import subprocess
import textwrap
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from httpx import Response

import job_verbs
from http_listener import Listening
from spinney.apps.ingest.deposits.orders import BatchOrder
from spinney.apps.ingest.verbs.arrivals import Arrival
from spinney.apps.ingest.verbs.batches import Status
from spinney.apps.ingest.verbs.lookup import batches
from spinney.apps.ingest.verbs.service import Service as Ingest
from spinney.model.errors import CommitUncertain
from spinney.web.settings import ServerSettings

from ..access.filled_service import MAIL
from .conftest import Served, build

SUBMIT = "/api/v1/apps/ingest/submit"
GUIDE = Path(__file__).parents[4] / "docs" / "ingest.md"
PAYLOAD = b"some bytes"
QUERY = {"name": "map.tif", "profile": "maps", "kind": "file"}
FIELDS = {
    "profile": "maps",
    "kind": "file",
    "digest": f"sha256:{hashlib.sha256(PAYLOAD).hexdigest()}",
    "local-id": ["a", "b"],
    "primary-id": "ark:/99999/fk4abc",
    "title": "A map",
    "creator": "Ann",
    "date": "1912",
    "update": "true",
    "response": "xml",
    "submitter": "",
}
EDGE = "a-line-between"


def form(*parts: tuple[str, str | None, bytes], ends: bool = True) -> dict[str, Any]:
    """Parts with their names, those of their files, and what they hold, in this order."""
    body = b"".join(
        f'--{EDGE}\r\nContent-Disposition: form-data; name="{name}"'.encode()
        + (b"" if file is None else f'; filename="{file}"'.encode())
        + b"\r\n\r\n"
        + content
        + b"\r\n"
        for name, file, content in parts
    )
    end = f"--{EDGE}--\r\n".encode() if ends else b""
    return {"content": body + end, "headers": {"content-type": f"multipart/form-data; boundary={EDGE}"}}


PROFILE, KIND, FILE = ("profile", None, b"maps"), ("kind", None, b"file"), ("file", "map.tif", PAYLOAD)


def orders(served: Served) -> list[BatchOrder]:
    with served.service.control() as control:
        service = Ingest(control=control, settings=served.service.settings)
        return [batch.order for batch in batches(service)]


def incoming(served: Served) -> Mapping[str, bytes]:
    """What lies there, by batch and name."""
    folder = served.service.settings.incoming
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def nothing(served: Served) -> bool:
    return not list(served.service.settings.incoming.iterdir()) and not orders(served)


def test_a_body_becomes_a_batch_whatever_type_it_is_called(served: Served) -> None:
    types = (
        "application/octet-stream",
        "application/x-www-form-urlencoded",
        None,
    )  # the second is what curl says
    for type_ in types:
        headers = {} if type_ is None else {"content-type": type_}
        answer = served["ann"].post(SUBMIT, params=QUERY, content=PAYLOAD, headers=headers)

        assert answer.status_code == 202
        body = answer.json()
        assert body["state"] == "pending"
        assert body["links"].keys() == {"status", "report"}
        assert answer.headers["location"] == body["links"]["status"]
        shown = served["ann"].get(body["links"]["status"]).json()
        assert (shown["batch"], shown["job"], shown["state"]) == (body["bid"], body["job"], "pending")
        assert "it has not reported yet" in served["ann"].get(body["links"]["report"]).json()["detail"]
    assert list(incoming(served).values()) == [PAYLOAD] * len(types)


def test_the_fields_of_a_form_say_what_the_query_says(served: Served) -> None:
    answer = served["ann"].post(SUBMIT, data=FIELDS, files={"file": ("map.tif", PAYLOAD)})

    assert answer.status_code == 202, answer.text
    (order,) = orders(served)
    assert (order.name, order.profile, order.submitter, order.update, order.response) == (
        "map.tif",
        "maps",
        "ann",
        True,
        "xml",
    )
    assert asdict(order.about) == {
        "primary_id": "ark:/99999/fk4abc",
        "local_ids": ("a", "b"),
        "creator": "Ann",
        "title": "A map",
        "date": "1912",
    }
    assert order.digest is not None
    assert incoming(served) == {f"{answer.json()['bid']}/map.tif": PAYLOAD}


def test_query_and_form_say_it_together_and_a_name_in_words_counts(served: Served) -> None:
    parts = form(("name", None, "Karte ü.tif".encode()), ("local-id", None, b"b"), FILE)
    query = {"profile": "maps", "kind": "file", "local_id": "a"}
    assert served["ann"].post(SUBMIT, params=query, **parts).status_code == 202
    (order,) = orders(served)
    assert (order.name, order.about.local_ids) == ("Karte ü.tif", ("a", "b"))


REFUSED: Sequence[tuple[Sequence[tuple[str, str | None, bytes]], int, str]] = [
    ([PROFILE, KIND], 422, "the form has no file"),
    ([FILE, PROFILE, KIND], 422, "profile"),
    ([PROFILE, KIND, FILE, ("title", None, b"x")], 422, "'title' comes behind the file"),
    ([PROFILE, KIND, FILE, FILE], 422, "'file' comes behind the file"),
    ([PROFILE, KIND, ("payload", "map.tif", b"x")], 422, "'payload' of the form is a file"),
    ([PROFILE, KIND, ("file", None, b"x")], 422, "is no file but text"),
    ([PROFILE, PROFILE, KIND, FILE], 422, "'profile' is given twice"),
    ([PROFILE, KIND, ("local-ids", None, b"x"), FILE], 422, "did you mean 'local-id'"),
    ([PROFILE, KIND, ("title", None, b"\xff"), FILE], 422, "no UTF-8"),
    ([PROFILE, KIND, ("title", None, b"x" * 2**21), FILE], 422, "too long"),
    ([PROFILE, KIND, ("update", None, b"perhaps"), FILE], 422, "update"),
    ([PROFILE, KIND, ("digest", None, b"sha256:" + b"0" * 64), FILE], 409, "not 0000"),
    ([PROFILE, KIND, ("file", "../map.tif", b"x")], 422, "has a '/'"),
    ([PROFILE, KIND, ("file", "", b"x")], 422, "no name of a file"),
    (
        [PROFILE, KIND, ("notification", None, b"ann@example.org\r\nBcc: eve@example.org"), FILE],
        422,
        "line break",
    ),
    ([PROFILE, KIND, ("notification", None, b"nobody"), FILE], 422, "no mail address"),
    ([PROFILE, KIND, *[("notification", None, b"a@example.org")] * 11, FILE], 422, "name fewer"),
    ([PROFILE, KIND, ("notification", None, b"ann@example.org"), FILE], 422, "sends no mail"),
]


def test_a_form_that_is_refused_leaves_nothing(served: Served) -> None:
    for parts, status, says in REFUSED:
        answer = served["ann"].post(SUBMIT, **form(*parts))

        assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json"), (
            says
        )
        assert says in answer.json()["detail"]
        assert nothing(served)


def test_a_form_that_breaks_off_leaves_nothing(served: Served) -> None:
    cut = form(PROFILE, KIND, FILE, ends=False)
    answers = [served["ann"].post(SUBMIT, **cut), served["ann"].post(SUBMIT, **form(PROFILE, ends=False))]
    unbounded = {"content": cut["content"], "headers": {"content-type": "multipart/form-data"}}

    assert [a.status_code for a in [*answers, served["ann"].post(SUBMIT, **unbounded)]] == [400] * 3
    assert "breaks off" in answers[0].json()["detail"]
    assert nothing(served)


def test_what_can_be_refused_is_refused_before_the_payload_is_read(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened(arrival: Arrival) -> None:
        raise AssertionError("the payload would be read")

    monkeypatch.setattr(Arrival, "receiving", opened)

    def statuses(name: str, **options: str) -> set[int]:
        raw = served[name].post(SUBMIT, params=QUERY | options, content=PAYLOAD)
        parts = [(field, None, value.encode()) for field, value in (QUERY | options).items()]
        return {raw.status_code, served[name].post(SUBMIT, **form(*parts, FILE)).status_code}

    assert statuses("vic") == {403}
    assert statuses("eve") == statuses("ann", profile="mapps") == statuses("ann", kind="nothing") == {422}
    assert statuses("ann", submitter="librarian") == {403}


# --- once more ------------------------------------------------------------------------------


def hand_in(served: Served, key: str, content: bytes = PAYLOAD, **options: str) -> Response:
    return served["ann"].post(
        SUBMIT, params=QUERY | options, content=content, headers={"idempotency-key": key}
    )


def test_the_same_under_one_key_is_one_batch(served: Served) -> None:
    first, again = hand_in(served, "k1"), hand_in(served, "k1")

    assert (first.status_code, again.status_code) == (202, 202)
    assert again.json() == first.json()
    assert [a.headers.get("idempotent-replay") for a in (first, again)] == [None, "true"]
    assert list(incoming(served)) == [f"{first.json()['bid']}/map.tif"]
    others = [hand_in(served, "k1", b"other bytes"), hand_in(served, "k1", title="Another")]
    assert [a.status_code for a in others] == [422, 422]
    assert "used for another request" in others[0].json()["detail"]
    parts = [(field, None, value.encode()) for field, value in QUERY.items()]
    as_form = form(*parts, FILE)
    as_form["headers"]["idempotency-key"] = "k1"
    assert served["ann"].post(SUBMIT, **as_form).json() == first.json()
    assert len(orders(served)) == len(incoming(served)) == 1
    assert hand_in(served, "k2").json()["bid"] != first.json()["bid"]


def test_an_answer_that_was_lost_is_given_again(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    (served.service.settings.profiles / "maps.toml").write_text(
        'collection = "maps"\nhold = "a look first"\n'
    )
    with served.service.store() as store:
        real = type(store).submit

    def losing(*words: Any, **more: Any) -> Any:
        real(*words, **more)
        raise CommitUncertain("the connection was lost;")

    with monkeypatch.context() as patch:
        patch.setattr(type(store), "submit", losing)
        lost = hand_in(served, "k1")
    again = hand_in(served, "k1")

    assert (lost.status_code, again.status_code) == (503, 202)
    assert again.headers["idempotent-replay"] == "true"
    assert (again.json()["state"], again.json()["held"]) == ("held", "a look first")
    assert list(incoming(served)) == [f"{again.json()['bid']}/map.tif"]
    assert [folder.name for folder in served.service.settings.held.iterdir()] == [again.json()["bid"]]
    with served.service.store() as store:
        job_verbs.cancel(store, again.json()["job"], tree=False, by="ann", reason=None, now_us=1)
        job_verbs.delete(store, again.json()["job"], by="ann", now_us=1)
    assert "deleted" in hand_in(served, "k1").json()["detail"]


# --- with curl ------------------------------------------------------------------------------


def documents(text: str) -> Iterator[dict[str, Any]]:
    """JSON, with nothing between one document and the next."""
    at = 0
    while at < len(text):
        document, at = json.JSONDecoder().raw_decode(text, at)
        yield document


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl here")
def test_the_guides_examples_do_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service, app = build(tmp_path, monkeypatch, MAIL)
    (block,) = (
        text
        for text in re.findall(r"(?:^    .*\n|^\n)+", GUIDE.read_text(), flags=re.M)
        if "export SERVER=" in text
    )
    script = re.sub(r"^export .*$", "", textwrap.dedent(block), flags=re.M)
    (tmp_path / "map.tif").write_bytes(PAYLOAD)
    (tmp_path / "atlas.checkm").write_text(
        json.dumps({"profile": "object-manifest", "files": [{"url": "file:///a"}]})
    )
    with zipfile.ZipFile(tmp_path / "atlas.zip", "w") as atlas:
        atlas.writestr("a", b"a")
    listening = Listening(app, ServerSettings())
    environment = {
        "SERVER": f"{listening.url}/api/v1/apps/ingest",
        "AUTH": "X-Asker: ann",
        "PATH": "/usr/bin:/bin",
    }
    try:
        ran = subprocess.run(
            ["/bin/bash", "-eu"],
            input=script,
            text=True,
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            timeout=60,
            check=False,
        )
    finally:
        listening.end()

    assert (ran.returncode, ran.stderr) == (0, "")
    documents_read = list(documents(ran.stdout))
    assert [answer.get("state") for answer in documents_read] == ["pending"] * 3 + [None], ran.stdout
    assert (documents_read[2]["kind"], documents_read[3]["status"]) == ("object-manifest", 409), (
        "no node has begun with it"
    )
    kinds = {order.name: (order.kind, order.about, order.notify) for order in orders(Served(service, {}))}
    assert kinds.keys() == {"map.tif", "atlas.zip", "atlas.checkm"}
    assert (kinds["map.tif"][0], kinds["map.tif"][1].title) == ("file", "A map")
    assert (kinds["atlas.zip"][1].local_ids, kinds["atlas.zip"][2]) == (("L-1",), ("ann@example.org",))
    with service.control() as control:
        shown = Status(batch=documents_read[1]["bid"]).run(Ingest(control=control, settings=service.settings))
    assert shown["notification"] == ["ann@example.org"]
