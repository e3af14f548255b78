"""Jobs submitted over the API: one, with files, many; and asked for again after a crash."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from spinney.features.files import folder_writes
from spinney.features.files.uploads import REASON, Uploads
from spinney.features.submission import api as submission_api
from spinney.model.errors import StoreUnusable
from spinney.model.jobs import Filter
from spinney.web.api import json_routes
from spinney.web.files import spool

from ..conftest import World

BATCH = "/api/v1/jobs/batch"
LINES = {"Content-Type": "application/x-ndjson"}


def test_a_job_is_accepted_in_the_name_of_who_asks(world: World) -> None:
    answer = world.client("submitter").post(
        "/api/v1/jobs", json={"type": "double", "params": {"n": 1}, "priority": 7, "data": {"tries": 3}}
    )

    assert answer.status_code == 201
    job = world.store.job(answer.json()["id"])
    assert answer.headers["location"] == f"/api/v1/jobs/{job.id}"
    assert (job.submitter, job.priority, world.store.get_data(job.id)) == ("submitter", 7, {"tries": 3})


def test_without_a_type_the_queue_says_it(world: World) -> None:
    answer = world.client("submitter").post("/api/v1/jobs", json={"queue": "default", "params": {"n": 1}})

    assert world.store.job(answer.json()["id"]).type == "double"


def test_at_is_a_time_in_either_form(world: World) -> None:
    for at in ("2035-01-01T00:00:00Z", 2_051_222_400_000_000):
        answer = world.client("submitter").post("/api/v1/jobs", json={"type": "one", "at": at})

        assert world.store.job(answer.json()["id"]).wake_us == 2_051_222_400_000_000


@pytest.mark.parametrize(
    ("body", "status", "word"),
    [
        (b'{"type": "one"', 400, "JSON"),
        (b'{"type": "one", "params": ' + b"[" * 5_000 + b"]" * 5_000 + b"}", 400, "JSON"),
        (b'{"type": "one", "params": ' + b'{"a":' * 80 + b"1" + b"}" * 81, 400, "nested"),
        (b'{"type": "one", "data": {"a": "\\ud800"}}', 400, "JSON"),
        (b'{"type": "one", "data": {"a": NaN}}', 400, "JSON"),
        (b'{"type": "\xff"}', 400, "JSON"),
        (b'{"type": "one", "prio": 1}', 422, "prio"),
        (b'{"type": "one", "priority": "1"}', 422, "priority"),
        (b'{"type": "one", "priority": 100}', 422, "priority"),
        (b'{"type": "one", "needs": [0]}', 422, "needs"),
        (b'{"type": "one", "at": "2035-01-01T00:00:00"}', 422, "zone"),
        (b'{"type": "o\\u0000ne"}', 422, "type"),
        (b'{"type": "none"}', 422, "none"),
        (b'{"type": "double", "params": {"n": "x"}}', 422, "n"),
        (b'{"type": "double", "params": {"m": 1, "n": 1}}', 422, "m"),
        (b'{"params": {}}', 422, "n"),
        (b"[]", 422, "body"),
        (b"", 400, "JSON"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_a_sentence(
    world: World, body: bytes, status: int, word: str
) -> None:
    answer = world.client("submitter").post(
        "/api/v1/jobs", content=body, headers={"Content-Type": "application/json"}
    )

    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert word in answer.json()["detail"]
    assert "Traceback" not in answer.text


def test_another_content_type_is_not_understood(world: World) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        answer = world.client("submitter").post("/api/v1/jobs", content=b"{}", headers={"Content-Type": kind})
        assert answer.status_code == 415
        many = world.client("submitter").post(BATCH, content=b"{}", headers={"Content-Type": kind})
        assert many.status_code == 415


def test_many_jobs_are_all_accepted_or_none(world: World) -> None:
    lines = [json.dumps({"type": "double", "params": {"n": n}}) for n in range(5)]
    wrong = [*lines[:3], '{"type": "double", "params": {"n": "x"}}', *lines[3:]]

    refused = world.client("submitter").post(BATCH, content="\n".join(wrong), headers=LINES)
    accepted = world.client("submitter").post(BATCH, content="\n".join(lines) + "\n", headers=LINES)

    assert refused.status_code == 422
    assert "line 4" in refused.json()["detail"]
    assert accepted.status_code == 201
    ids = accepted.json()["ids"]
    assert [world.store.job(n).params["n"] for n in ids] == [0, 1, 2, 3, 4]
    assert sum(world.store.counts(Filter()).values()) == 5


def test_lines_may_be_parameters_of_one_type_and_need_each_other(world: World) -> None:
    plain = world.client("submitter").post(
        BATCH, params={"type": "double"}, content='{"n": 1}\n\n{"n": 2}', headers=LINES
    )
    chain = world.client("submitter").post(
        BATCH, content='{"type": "one"}\n{"type": "one", "needs": [-1]}', headers=LINES
    )

    assert len(plain.json()["ids"]) == 2
    assert world.store.job(chain.json()["ids"][1]).waits_for == "needs"


@pytest.mark.parametrize("asker", ["operator", "limited"])
def test_given_many_lines_when_one_needs_what_is_not_there_then_its_number_is_named(
    world: World, asker: str
) -> None:
    # Of what a caller may not see, nobody tells whether it exists.
    need = 4711 if asker == "operator" else world.submit("one", collection="other")

    answer = world.client(asker).post(
        BATCH + "?collection=lab",
        content=f'{{"type": "one"}}\n{{"type": "one", "needs": [-1, {need}]}}',
        headers=LINES,
    )

    detail = f"there is no job {need}, which job 2 of this call needs; check its number in the list of jobs"
    assert (answer.status_code, answer.json()["detail"]) == (404, detail)


def test_deep_json_in_a_line_is_refused(world: World) -> None:
    line = '{"type": "one", "params": {"a": ' + "[" * 300 + "]" * 300 + "}}"

    answer = world.client("submitter").post(BATCH, content=line, headers=LINES)

    assert answer.status_code == 400


@pytest.mark.parametrize(
    ("address", "kind"), [("/api/v1/jobs", "application/json"), (BATCH, LINES["Content-Type"])]
)
def test_who_may_not_submit_is_refused_before_the_body_is_looked_at(
    world: World, address: str, kind: str
) -> None:
    nested = b'{"type": "one", "params": {"a": ' + b"[" * 300 + b"]" * 300 + b"}}"

    answer = world.client("viewer").post(address, content=nested, headers={"Content-Type": kind})

    assert answer.status_code == 403
    assert "submit jobs" in answer.json()["detail"]
    assert "may not submit jobs" in world.client("admin").get("/api/v1/audit/entries").text


@pytest.mark.parametrize(
    ("address", "kind", "body"),
    [
        ("/api/v1/jobs", "application/json", b'{"type": "one"}'),
        (BATCH, LINES["Content-Type"], b'{"type": "one"}'),
        ("/api/v1/jobs/1/cancel", "application/json", b'{"reason": "wrong"}'),
    ],
)
def test_others_are_served_while_a_long_body_is_parsed(
    world: World, monkeypatch: pytest.MonkeyPatch, address: str, kind: str, body: bytes
) -> None:
    # given: a body that is parsed until somebody else has been served
    world.submit("one")
    parsing, served = threading.Event(), threading.Event()
    in_time: list[bool] = []

    def parse(*_: object) -> None:
        parsing.set()
        in_time.append(served.wait(60))

    monkeypatch.setattr(json_routes, "require_flat", parse)
    monkeypatch.setattr(submission_api, "require_flat", parse)
    client, other = world.client("operator"), world.client("viewer")

    # when
    with ThreadPoolExecutor(1) as pool:
        posted = pool.submit(
            client.post, address, content=body + b" " * 100_000, headers={"Content-Type": kind}
        )
        assert parsing.wait(20)
        other.get("/health")
        served.set()

    # then
    assert posted.result().is_success, posted.result().text
    assert in_time == [True]


def test_the_same_key_answers_with_the_same_jobs(world: World) -> None:
    key = {"Idempotency-Key": "order-17"}
    body = {"type": "double", "params": {"n": 1}}

    first = world.client("submitter").post("/api/v1/jobs", json=body, headers=key)
    again = world.client("submitter").post("/api/v1/jobs", json=body, headers=key)
    other = world.client("submitter").post("/api/v1/jobs", json={**body, "priority": 3}, headers=key)
    another = world.client("operator").post("/api/v1/jobs", json=body, headers=key)

    assert again.json() == first.json()
    assert (first.headers.get("idempotent-replay"), again.headers["idempotent-replay"]) == (None, "true")
    assert other.status_code == 422
    assert another.json()["id"] != first.json()["id"]


def test_many_jobs_of_one_key_are_made_once(world: World) -> None:
    headers = {**LINES, "Idempotency-Key": "night"}
    lines = "\n".join('{"type": "one"}' for _ in range(10))

    ids = [
        world.client("submitter").post(BATCH, content=lines, headers=headers).json()["ids"] for _ in range(2)
    ]

    assert ids[0] == ids[1]


def form(**job: Any) -> dict[str, Any]:
    files = [("file", ("scans/page-1.tif", b"one")), ("file", ("notes.txt", b"two"))]
    return {"data": {"job": json.dumps({"type": "one", **job})}, "files": files}


def test_files_are_in_the_folder_before_the_job_may_start(world: World) -> None:
    answer = world.client("submitter").post("/api/v1/jobs", **form())

    job = answer.json()["id"]
    assert world.store.job(job).state == "pending"
    assert (world.folder(job) / "scans" / "page-1.tif").read_bytes() == b"one"
    assert (world.folder(job) / "notes.txt").read_bytes() == b"two"
    assert list((world.folders / spool.SPOOL).iterdir()) == []


@pytest.mark.parametrize("died", ["before the files", "between the files and the release"])
def test_a_crash_between_leaves_a_held_job_that_the_same_request_goes_on_with(
    world: World, monkeypatch: pytest.MonkeyPatch, died: str
) -> None:
    key = {"Idempotency-Key": "scan-1"}

    def dies(*_: Any) -> None:
        raise StoreUnusable("the disk is away; mount it")

    with monkeypatch.context() as patched:
        if died == "before the files":
            patched.setattr(folder_writes, "put", dies)
        else:
            patched.setattr(Uploads, "finish", dies)
        broken = world.client("submitter").post("/api/v1/jobs", **form(), headers=key)
    (left,) = world.store.jobs(Filter())
    assert broken.status_code >= 500
    assert (left.state, left.waits_for) == ("held", "hold")
    assert REASON in str(world.store.holds.covering(left.id)[0])
    assert world.site.claim() == []

    answer = world.client("submitter").post("/api/v1/jobs", **form(), headers=key)

    assert answer.json()["id"] == left.id
    assert world.store.job(left.id).state == "pending"
    assert (world.folder(left.id) / "notes.txt").read_bytes() == b"two"


@pytest.mark.parametrize(
    "name", ["../up", "/etc/passwd", "a/../b", "a//b", ".spinney/x", "a/./b", "x" * 300, ""]
)
def test_paths_that_lead_elsewhere_are_refused_and_nothing_is_made(world: World, name: str) -> None:
    answer = world.client("submitter").post(
        "/api/v1/jobs", data={"job": '{"type": "one"}'}, files=[("file", (name, b"x"))]
    )

    assert answer.status_code in (400, 422)
    assert world.store.jobs(Filter()) == []
    assert list((world.folders / spool.SPOOL).iterdir()) == []


def test_a_path_that_is_too_long_is_refused_with_the_limits(world: World) -> None:
    answer = world.client("submitter").post(
        "/api/v1/jobs", data={"job": '{"type": "one"}'}, files=[("file", ("x" * 256, b"x"))]
    )

    assert "at most 1,000 characters and 20 names of at most 255 bytes" in answer.json()["detail"]


def test_a_form_that_breaks_off_is_refused(world: World) -> None:
    kind = {"Content-Type": "multipart/form-data; boundary=b"}
    whole = (
        b'--b\r\nContent-Disposition: form-data; name="job"\r\n\r\n{"type": "one"}\r\n'
        b'--b\r\nContent-Disposition: form-data; name="f"; filename="a"\r\n\r\n0123456789\r\n--b--\r\n'
    )

    for body in (whole[:-20], b"nonsense", whole.replace(b'name="job"', b'name="jab"'), b"--b--\r\n"):
        answer = world.client("submitter").post("/api/v1/jobs", content=body, headers=kind)
        assert answer.status_code in (400, 422), body
    assert world.client("submitter").post("/api/v1/jobs", content=whole, headers=kind).status_code == 201


@pytest.mark.parametrize("boundary", ["", "b" * 500])
def test_a_form_whose_boundary_cannot_be_is_refused(world: World, boundary: str) -> None:
    kind = {"Content-Type": f"multipart/form-data; boundary={boundary}"}

    answer = world.client("submitter").post("/api/v1/jobs", content=b"--b--", headers=kind)

    assert answer.status_code == 400
    assert list((world.folders / spool.SPOOL).iterdir()) == []


def test_viewers_submit_nothing_and_send_no_files_in_vain(world: World) -> None:
    assert world.client("viewer").post("/api/v1/jobs", json={"type": "one"}).status_code == 403
    assert world.client("viewer").post("/api/v1/jobs", **form()).status_code == 403
    assert world.client("viewer").post(BATCH, content='{"type": "one"}', headers=LINES).status_code == 403


def test_what_died_in_the_spool_is_cleared_when_it_is_old(world: World) -> None:
    left = world.folders / spool.SPOOL / "left"
    left.mkdir(parents=True)

    assert spool.clear(world.folders) == 0
    assert spool.clear(world.folders, now_s=left.stat().st_mtime + spool.OLD_S + 1) == 1
    assert not left.exists()
