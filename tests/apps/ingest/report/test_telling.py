"""The report as text, page and mail: bounded, printable, and nobody's script."""

from html.parser import HTMLParser
from pathlib import Path

import pytest

from spinney import Spinney
from spinney.apps.ingest.report import Kind, PreviousReport, Report, build, html, key, mail, text, write
from spinney.reports import Outbox

from .samples import end, facts, failed

WHO = {"sender": "archive@example.org", "domain": "archive.example.org"}
HOSTILE = "<script>alert(1)</script>\x1b[31m\u202egnp.exe\r\nBcc: eve@example.org\"'&"


class Page(HTMLParser):
    """The elements, links and text of a page, by a real parser."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [value or "" for name, value in attrs if name in ("href", "src", "action")]
        assert not any(name.startswith("on") for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture
def mixed() -> Report:
    return build(facts(link="https://archive.example.org/bid-1"), [end(1), failed(2), end(3)])


def test_the_text_names_every_failure_with_its_stage_and_message(mixed: Report) -> None:
    mail_text = text(mixed)

    assert mail_text.startswith("bid-1: 1 failed (3 objects)\n")
    assert "map 2 (jid-2, job 102)" in mail_text
    assert "failed at downloading, last successful stage provisioning" in mail_text
    assert "file 2 has the wrong sha256" in mail_text
    assert "https://archive.example.org/bid-1" in mail_text
    assert "map 1" not in mail_text


def test_the_page_says_the_same(mixed: Report) -> None:
    page = Page(html(mixed, completed=10))

    phrases = [
        "bid-1: 1 failed (3 objects)",
        "failed at downloading",
        "has the wrong sha256",
        "map 3",
        "maps, atlas",
    ]
    assert [words for words in phrases if words not in page.text] == []
    assert page.links == ["https://archive.example.org/bid-1"]


def test_an_update_says_what_was_mended_and_one_without_changes_says_so() -> None:
    before = PreviousReport(number=1, completed={"jid-1": "map 1"}, failed={"jid-2": "map 2"})

    update = build(facts(2), [end(1), end(2)], before)
    same = build(facts(2), [end(1), failed(2)], before)

    assert text(update).startswith("bid-1, update 1: completed (2 objects)")
    assert "Since the last report:\n  mended: map 2\n" in text(update)
    assert "Since the last report:\n  nothing\n" in text(same)
    assert "mended" in Page(html(update)).text
    assert "nothing" in Page(html(same)).text


def test_a_batch_that_failed_as_a_whole_says_why() -> None:
    report = build(facts(fault="line 3: 'nfo:fileUrk' is no field"), [])

    assert text(report).startswith("bid-1: failed (0 objects)")
    assert "The batch failed: line 3" in text(report)
    assert "line 3" in Page(html(report)).text


def test_foreign_text_stays_text_on_one_line() -> None:
    link = "javascript:alert(1)"
    hostile = failed(1, local_ids=(HOSTILE,), message=HOSTILE, stage=HOSTILE, passed=HOSTILE, link=link)
    report = build(
        facts(
            submitter=HOSTILE,
            payload=HOSTILE,
            profile=HOSTILE,
            collections=(HOSTILE,),
            fault=HOSTILE,
            link="data:text/html,<script>alert(1)</script>",
        ),
        [hostile, end(2, local_ids=(HOSTILE,), title=HOSTILE)],
    )
    page = Page(html(report, completed=5))

    for form in (text(report, all_objects=True), page.text):
        assert "\x1b" not in form
        assert "\u202e" not in form
        assert "\nBcc" not in form
    assert "<script>alert(1)</script>" in page.text
    assert "script" not in page.tags
    assert page.links == []


def test_a_mail_is_bounded_whatever_the_number_of_objects() -> None:
    ends = [failed(n, message="x" * 5_000) for n in range(3_000)] + [end(n) for n in range(3_000, 6_000)]
    report = build(facts(), ends)

    brief = mail(report, Kind.BRIEF, to=["ada@example.org"], **WHO)
    verbose = mail(report, Kind.VERBOSE, to=["ada@example.org"], **WHO)

    assert brief is not None
    assert verbose is not None
    assert "… and 2,980 more" in brief["text"]
    assert "… and 2,980 more" in brief["html"]
    assert len(brief["text"]) < 20_000
    assert 100_000 < len(verbose["text"]) < 160_000


@pytest.mark.parametrize("kind", [Kind.BRIEF, Kind.VERBOSE, Kind.ATTACHED])
def test_a_mail_is_what_the_outbox_takes(mixed: Report, kind: Kind, tmp_path: Path) -> None:
    made = mail(
        mixed, kind, to=["Ada <ada@example.org>"], cc=["bob@example.org"], files=write(mixed, tmp_path), **WHO
    )

    assert made is not None
    (stored,) = Outbox(Spinney()).mail.texts([made])
    assert len(stored) < 2**20
    assert made["message_id"] == "<bid-1.report-1@archive.example.org>"
    assert made["in_reply_to"] is None
    assert ("map 1" in made["text"]) == (kind is Kind.VERBOSE)
    names = [a["name"] for a in made["attachments"]]
    assert names == (["completed.json", "failed.json"] if kind is Kind.ATTACHED else [])


def test_the_subject_counts_cancelled_objects() -> None:
    made = mail(build(facts(), [end(1), end(2, "cancelled")]), Kind.BRIEF, to=["ada@example.org"], **WHO)

    assert made is not None
    assert made["subject"] == "bid-1: completed (2 objects, 1 cancelled)"


def test_an_update_answers_the_first_report() -> None:
    update = build(facts(3), [end(1)], PreviousReport(number=2))

    made = mail(update, Kind.BRIEF, to=["ada@example.org"], **WHO)

    assert made is not None
    assert key(update) == "bid-1.report-3"
    assert made["message_id"] == "<bid-1.report-3@archive.example.org>"
    assert made["in_reply_to"] == "<bid-1.report-1@archive.example.org>"


@pytest.mark.parametrize(("kind", "to"), [(Kind.SUPPRESSED, ["ada@example.org"]), (Kind.BRIEF, [])])
def test_who_wants_no_mail_gets_none(mixed: Report, kind: Kind, to: list[str]) -> None:
    assert mail(mixed, kind, to=to, **WHO) is None


def test_a_list_too_long_for_a_mail_is_named_instead(tmp_path: Path) -> None:
    report = build(facts(), [failed(n, message="x" * 80_000) for n in range(100)] + [end(200)])

    made = mail(report, Kind.ATTACHED, to=["ada@example.org"], files=write(report, tmp_path), **WHO)

    assert made is not None
    assert [a["name"] for a in made["attachments"]] == ["completed.json"]
    assert "failed.json is too long for a mail" in made["text"]
