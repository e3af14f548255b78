"""The frames of a failure on the page of its job."""

import orjson
import pytest

import job_verbs
from contract.words import kind, stage
from server.conftest import World
from spinney.features.postmortem import kept_frames
from spinney.model.types import Isolation


def failing(world: World, document: bytes, type_: str = "one") -> tuple[int, int]:
    """A job that failed, and the attempt whose frames are this document."""
    job = world.submit(type_)
    world.site.fail(world.site.run(job), error={"type": "ValueError", "message": "bold", "traceback": ""})
    attempt = world.control().queries.attempts(job)[-1]
    path = world.folder(job) / kept_frames.path_of(attempt)
    path.parent.mkdir()
    path.write_bytes(document)
    return job, attempt.fence


def get(world: World, path: str) -> str:
    answer = world.client("viewer").get(path, headers=HTML)
    assert answer.status_code == 200, answer.text
    return answer.text


HTML = {"Accept": "text/html"}
DOCUMENT = {
    "exceptions": [
        {
            "type": "builtins.ValueError",
            "message": "<b>bold</b>",
            "frames": [
                {
                    "file": "/srv/jobs.py",
                    "line": 7,
                    "function": "work",
                    "source": [[7, "raise <ValueError>"]],
                    "arguments": ["rows"],
                    "locals": {
                        "rows": {
                            "type": "list",
                            "len": 3,
                            "cut": 2,
                            "parts": [["[0]", {"type": "str", "text": "'<script>'"}]],
                        }
                    },
                }
            ],
        }
    ]
}


def test_frames_are_shown_with_their_variables_and_escaped(world: World) -> None:
    job, fence = failing(world, orjson.dumps(DOCUMENT))

    page = get(world, f"/jobs/{job}/postmortem?fence={fence}")

    assert "&lt;b&gt;bold" in page
    assert "&lt;script&gt;" in page
    assert "<script>'" not in page
    assert "2 more were not kept" in page
    assert f"/jobs/{job}/postmortem?fence={fence}" in get(world, f"/jobs/{job}")


def test_a_document_that_cannot_be_read_is_said_to_be_so(world: World) -> None:
    job, _ = failing(world, b"{")

    assert "cannot be read" in get(world, f"/jobs/{job}/postmortem")


def test_who_may_not_see_the_job_does_not_see_its_frames(world: World) -> None:
    job, _ = failing(world, orjson.dumps(DOCUMENT))

    assert world.client("limited").get(f"/jobs/{job}/postmortem", headers=HTML).status_code == 404


def test_the_card_of_frames_is_left_out_for_a_program_unless_it_has_kept_some(world: World) -> None:
    convert = stage("convert", program=("convert.sh",), isolation=Isolation.PROGRAM)
    world.site.knows(kind("convert", convert))
    job, fence = failing(world, orjson.dumps(DOCUMENT), "convert")
    part = f"/jobs/{job}/postmortem?fence={fence}&if_kept=1"

    page = get(world, f"/jobs/{job}")
    assert part.replace("&", "&amp;") in page
    assert "Frames with their variables" not in page
    assert "/srv/jobs.py" in get(world, part)
    (world.folder(job) / kept_frames.path_of(world.control().queries.attempts(job)[-1])).unlink()
    assert "no frames are kept" not in get(world, part).lower()
    assert "no frames are kept" in get(world, part.removesuffix("&if_kept=1")).lower()


def test_frames_that_are_too_long_to_be_read_count_as_none(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given two failed attempts, when the frames of the later one are too long, then those of the earlier are shown."""
    job, _ = failing(world, orjson.dumps(DOCUMENT))
    job_verbs.retry(world.control().store, job, stage=None, by="ann", now_us=world.site.now)
    world.site.fail(world.site.run(job), error={"type": "ValueError", "message": "again", "traceback": ""})
    later = world.control().queries.attempts(job)[-1]
    whole = orjson.dumps(DOCUMENT)
    (world.folder(job) / kept_frames.path_of(later)).write_bytes(whole + b" ")
    monkeypatch.setattr(kept_frames, "MOST_BYTES", len(whole))

    assert "raise &lt;ValueError&gt;" in get(world, f"/jobs/{job}/postmortem")
