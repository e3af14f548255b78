"""Webhooks as people handle them: operators only, within their limits, and nothing beyond them is there."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from contract.words import ONE, Clock, Site
from new_store import new_store
from spinney.commands import Command
from spinney.commands.control import Control
from spinney.features.webhooks.commands import (
    AddWebhook,
    ChangeWebhook,
    ListDeliveries,
    ListWebhooks,
    PingWebhook,
    RemoveWebhook,
    RetryDelivery,
    RotateWebhook,
    ShowDelivery,
    ShowWebhook,
)
from spinney.model.access import AccessScope, Rights, Role
from spinney.model.errors import BadName, Forbidden, NoSuch, SpinneyError, UnknownType, UsageError
from spinney.model.settings.queues import QueueSpec
from spinney.server.api import COMMANDS
from spinney.store.sql import open_store

URL = "https://example.org/hook"
ALPHA = AccessScope(collections=("alpha",))
BOTH = AccessScope(collections=("alpha", "beta"))
SLOW = AccessScope(queues=("slow",))


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with closing(open_store(new_store(tmp_path / "x.db"))) as store:
        store.register([ONE], [QueueSpec(name="slow"), QueueSpec(name="quick")])
        yield Site(store, Clock())


def ask(site: Site, role: Role = Role.OPERATOR, within: AccessScope = AccessScope()) -> Control:
    rights = Rights(role=role, within=within)
    return Control(
        store=site.store,
        clock=lambda: site.now,
        wake_nodes=lambda: None,
        by="ann",
        rights=rights,
        by_configuration=True,
    )


def delivered_jobs(site: Site, name: str = "w") -> list[int | None]:
    return [d.job_id for d in reversed(site.store.webhooks.deliveries(name))]


VERBS: Mapping[str, Callable[[str], Command]] = {
    "AddWebhook": lambda delivery: AddWebhook(name="another", url=URL),
    "ListWebhooks": lambda delivery: ListWebhooks(),
    "ShowWebhook": lambda delivery: ShowWebhook(name="w"),
    "ChangeWebhook": lambda delivery: ChangeWebhook(name="w", url="https://example.org/other"),
    "ChangeWebhook to pause it": lambda delivery: ChangeWebhook(name="w", paused=True),
    "ChangeWebhook to resume it": lambda delivery: ChangeWebhook(name="w", paused=False),
    "RotateWebhook": lambda delivery: RotateWebhook(name="w"),
    "PingWebhook": lambda delivery: PingWebhook(name="w"),
    "ListDeliveries": lambda delivery: ListDeliveries(name="w"),
    "ShowDelivery": lambda delivery: ShowDelivery(delivery=delivery),
    "RetryDelivery": lambda delivery: RetryDelivery(delivery=delivery),
    "RemoveWebhook": lambda delivery: RemoveWebhook(name="w"),
}
"""Every verb, on the webhook ``w`` and a delivery of it."""
UNNAMED = {"AddWebhook", "ListWebhooks"}
"""Those that name none."""


def test_every_verb_is_in_the_table() -> None:
    assert {name.split()[0] for name in VERBS} == {command.__name__ for command in COMMANDS["webhooks"]}


@pytest.mark.parametrize("verb", VERBS)
def test_what_a_role_may(site: Site, verb: str) -> None:
    ask(site).do(AddWebhook(name="w", url=URL))
    delivery = ask(site).do(PingWebhook(name="w")).delivery
    before = list(site.store.webhooks.all(now_us=site.now))
    for role in (Role.VIEWER, Role.SUBMITTER):
        with pytest.raises(Forbidden, match="may not work with webhooks"):
            ask(site, role).do(VERBS[verb](delivery))
    assert site.store.webhooks.all(now_us=site.now) == before
    ask(site, Role.OPERATOR).do(VERBS[verb](delivery))


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb not in UNNAMED])
@pytest.mark.parametrize(
    "within",
    [ALPHA, SLOW, AccessScope(collections=()), AccessScope(collections=("alpha",), queues=("slow",))],
)
def test_one_that_tells_of_more_is_not_there(site: Site, verb: str, within: AccessScope) -> None:
    ask(site, within=BOTH).do(AddWebhook(name="w", url=URL))
    delivery = ask(site).do(PingWebhook(name="w")).delivery
    before = list(site.store.webhooks.all(now_us=site.now)), list(site.store.webhooks.deliveries("w"))

    with pytest.raises(NoSuch) as hidden:
        ask(site, within=within).do(VERBS[verb](delivery))

    assert ask(site, within=within).do(ListWebhooks()).items == []
    assert (
        list(site.store.webhooks.all(now_us=site.now)),
        list(site.store.webhooks.deliveries("w")),
    ) == before
    site.store.webhooks.remove("w", ask(site).actor(), now_us=site.now)
    with pytest.raises(NoSuch) as gone:
        ask(site, within=within).do(VERBS[verb](delivery))
    assert str(hidden.value) == str(gone.value), "nobody learns that it is there"


@pytest.mark.parametrize("verb", VERBS)
def test_within_his_limits_an_operator_may_all(site: Site, verb: str) -> None:
    ask(site, within=ALPHA).do(AddWebhook(name="w", url=URL))
    delivery = ask(site).do(PingWebhook(name="w")).delivery
    ask(site, within=BOTH).do(VERBS[verb](delivery))


def test_a_name_that_nearly_fits_is_told_only_to_who_may_know_it(site: Site) -> None:
    ask(site).do(AddWebhook(name="archive", url=URL))
    with pytest.raises(NoSuch, match="did you mean 'archive'"):
        ask(site).do(ShowWebhook(name="archve"))
    with pytest.raises(NoSuch) as refused:
        ask(site, within=ALPHA).do(ShowWebhook(name="archve"))
    assert "archive" not in str(refused.value)


def test_what_somebody_limited_makes_is_limited_for_ever(site: Site) -> None:
    answer = ask(site, within=ALPHA).do(AddWebhook(name="w", url=URL)).webhook
    ask(site).do(ChangeWebhook(name="w", collection=None, roots_only=False))
    assert answer.within == ALPHA
    site.submit(collection="beta")
    (own,) = site.submit(collection="alpha")
    site.drain()
    assert delivered_jobs(site) == [own]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"collection": "beta"}, Forbidden),
        ({"type": "nosuch"}, UnknownType),
        ({"queue": "nosuch"}, UsageError),
        ({"events": ["held"]}, UsageError),
        ({"events": []}, UsageError),
        ({"type": "../x"}, SpinneyError),
    ],
)
def test_what_cannot_be_asked_is_refused(site: Site, options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        ask(site, within=ALPHA).do(AddWebhook(name="w", url=URL, **options))
    assert site.store.webhooks.all(now_us=site.now) == []


def test_a_queue_that_no_database_could_look_for_is_refused(site: Site) -> None:
    """PostgreSQL has no text with a NUL in it."""
    ask(site).do(AddWebhook(name="w", url=URL))

    with pytest.raises(BadName, match="cannot name a queue"):
        ask(site).do(ChangeWebhook(name="w", queue="a\0b"))


def test_queues_beyond_the_limits_are_refused(site: Site) -> None:
    ask(site, within=SLOW).do(AddWebhook(name="w", url=URL, queue="slow"))
    with pytest.raises(Forbidden, match="limited to queue slow"):
        ask(site, within=SLOW).do(ChangeWebhook(name="w", queue="quick"))


def test_each_secret_is_another_and_shown_nowhere(site: Site) -> None:
    part = ask(site)
    first, second = part.do(AddWebhook(name="w", url=URL)), part.do(RotateWebhook(name="w"))
    assert first.secret != second.secret
    assert len(first.secret) > 40
    for secret in (first.secret, second.secret):
        assert secret not in f"{first!r}{second!r}{part.do(ListWebhooks())}{part.do(ShowWebhook(name='w'))}"
    part.do(PingWebhook(name="w"))
    (due,) = site.store.webhooks.lease({"w": 1}, now_us=site.now, until_us=site.now + 1)
    assert second.secret not in repr(due)
    assert due.secret == second.secret
