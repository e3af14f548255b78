"""Mails and public pages in the language of the entity."""

import time
from collections.abc import Mapping
from pathlib import Path
from string import Formatter

import pytest

from reports.mail_server import Behaviour, mail_server
from server.conftest import world_at
from spinney.apps.monitor import upkeep
from spinney.apps.monitor.application import outbox
from spinney.apps.monitor.database import database
from spinney.apps.monitor.inventory import entities, results
from spinney.apps.monitor.inventory.model import Result
from spinney.apps.monitor.languages import Language, language, languages
from spinney.jobs import Outcome
from spinney.testing import StageHarness

from .monitor import Monitor, service

TAGS = {1: "", 2: "pt-PT", 3: "es", 4: "fra", 5: "de-AT", 6: "xx"}
"""The languages of entities, by their numbers."""
SUBJECTS = {
    1: "Services of Entity 1: 1 error, 1 ok",
    2: "Serviços de Entity 2: 1 com erro, 1 em ordem",
    3: "Servicios de Entity 3: 1 con error, 1 en orden",
    4: "Services de Entity 4 : 1 en erreur, 1 en ordre",
    5: "Dienste von Entity 5: 1 mit Fehler, 1 in Ordnung",
    6: "Services of Entity 6: 1 error, 1 ok",
}


def placeholders(sentences: Mapping[str, str]) -> dict[str, set[str | None]]:
    return {name: {part[1] for part in Formatter().parse(text)} - {None} for name, text in sentences.items()}


@pytest.mark.parametrize("spoken", languages()[1:], ids=lambda spoken: spoken.tag)
def test_each_language_has_every_sentence_with_the_same_placeholders(spoken: Language) -> None:
    english = language("en")

    assert placeholders(spoken.sentences) == placeholders(english.sentences)
    assert spoken.states.keys() == english.states.keys()
    assert all((*spoken.sentences.values(), *spoken.states.values()))


def test_a_language_is_found_by_its_tag_or_the_code_of_a_catalogue_else_it_is_english() -> None:
    tags = ("pt", "pt-BR", "POR", "ger", "de-CH-1996", "en-GB", "", "xx", "e")
    assert [language(tag).tag for tag in tags] == ["pt", "pt", "pt", "de", "de", "en", "en", "en", "en"]


@pytest.fixture
def broken(monitor: Monitor) -> Monitor:
    """A monitor with an entity for each tag, one of whose two services has broken."""
    rows = [
        service(10 * eid + n, entity=f"Entity {eid}", language=tag, contact="Ann", email=f"{eid}@example.org")
        for eid, tag in TAGS.items()
        for n in (1, 2)
    ]
    monitor.import_(rows)
    now_us = time.time_ns() // 1000
    statuses = [(10 * eid + n, status) for eid in TAGS for n, status in ((1, "error"), (2, "ok"))]
    results.write(
        database(),
        [
            Result(gid=gid, task="http", status=status, info="503", at_us=now_us, duration_s=1, job_id=gid)
            for gid, status in statuses
        ],
    )
    return monitor


@pytest.mark.parametrize("monitor", ["sqlite"], indirect=True)
def test_a_real_mail_server_gets_each_mail_in_the_language_of_its_entity(broken: Monitor) -> None:
    behaviour = Behaviour()
    with mail_server(behaviour) as port:
        with (broken.place / "monitor.toml").open("a") as file:
            file.write(
                f'[mail]\nhost = "127.0.0.1"\nport = {port}\nsecurity = "none"\nsender = "monitor@example.org"\n'
            )
        harness = StageHarness()
        for submitted in harness.run(upkeep.mails, "send").submitted:
            assert harness.run(outbox.mail, "sending", **submitted.params).outcome is Outcome.OK
    assert len(behaviour.received) == len(TAGS)
    mails = {int(received.recipients[0][0]): received.mail for received in behaviour.received}

    assert {eid: mail["Subject"] for eid, mail in mails.items()} == SUBJECTS
    for eid, mail in mails.items():
        plain, html = mail.get_body(("plain",)), mail.get_body(("html",))
        assert plain is not None
        assert html is not None
        spoken = language(TAGS[eid])
        opening = spoken.sentences["opening"].format(
            entity=f"Entity {eid}", states=SUBJECTS[eid].partition(":")[2].strip()
        )
        assert opening in plain.get_content()
        assert f"http, {spoken.states['new']} -> {spoken.states['error']}. 503" in plain.get_content()
        assert f'<div lang="{spoken.tag}">' in html.get_content()
        assert f"<th>{spoken.sentences['task']}</th>" in html.get_content()


@pytest.mark.parametrize("monitor", ["sqlite"], indirect=True)
def test_a_public_page_is_in_the_language_of_its_entity(broken: Monitor, tmp_path: Path) -> None:
    (tmp_path / "server").mkdir()
    with world_at(tmp_path / "server") as world:
        for eid, tag in TAGS.items():
            entity, spoken = entities.get(database(), eid), language(tag)
            assert entity is not None
            page = world.client(None).get(f"/apps/monitor/of/{entity.page_key}").text
            assert f'<div class="sheet" lang="{spoken.tag}">' in page
            assert f"<th>{spoken.sentences['service']}</th>" in page
            assert page.count(f"<span>{spoken.states['error']}</span>") == 2  # the count and the service
            assert " UTC</time>" in page
        signed_in = world.client("viewer").get("/apps/monitor/entities/2").text
    assert "<th>Service</th>" in signed_in
    assert "Serviço" not in signed_in
