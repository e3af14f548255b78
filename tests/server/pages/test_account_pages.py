"""Users, tokens and webhooks over HTTP: secrets once, rights never beyond one's own."""

import re
from html import unescape
from typing import Any

import pytest
from starlette.testclient import TestClient

from contract.behind import sql_store
from server.conftest import World
from spinney.features.accounts.commands import AddUser, MakeToken
from spinney.features.accounts.rights_form import fields_of, limits_in_words, rights_of
from spinney.features.stats.page import read
from spinney.features.webhooks.commands import AddWebhook
from spinney.model.access import AccessScope, Rights, Role
from spinney.model.errors import NoSuch
from spinney.model.rights.accounts import token_id
from spinney.model.rights.actor import Actor
from spinney.model.settings.webhooks import Webhook
from spinney.model.values.times import now_us
from spinney.service.sign_in import SignIn
from spinney.web.pages.forms import FormFields
from spinney.web.stats_cache import StatsCache

HTML = {"Accept": "text/html"}
DELIVERED, REFUSED = ("delivered", 204, ""), ("failed", 500, "no disk")
"""Outcome, status and answer of a delivery."""


def get(client: TestClient, path: str, status: int = 200) -> str:
    answer = client.get(path, headers=HTML)
    assert answer.status_code == status, (path, answer.status_code, answer.text[:500])
    return answer.text


def post(client: TestClient, path: str, status: int = 303, **form: Any) -> str:
    """The page that it leads to, or is."""
    answer = client.post(path, data=form, headers=HTML)
    assert answer.status_code == status, (path, answer.status_code, answer.text[:500])
    if status != 303:
        return answer.text
    return client.get(answer.headers["location"], headers=HTML).text


def secret(text: str) -> str:
    match = re.search(r'id="secret"[^>]*>([^<]*)<', text)
    assert match is not None
    return unescape(match[1])


@pytest.fixture
def admin(world: World) -> TestClient:
    """An admin who is a user of the store, too."""
    world.control("root").do(AddUser(name="admin", rights=Rights(role=Role.ADMIN)))
    return world.client("admin")


# --- how users sign in ------------------------------------------------------------------------


def test_given_a_user_without_a_password_then_the_pages_say_whether_there_is_another_way_to_sign_in(
    world: World, admin: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.control("root").do(AddUser(name="ann", rights=Rights(role=Role.VIEWER)))

    for path in ("/users", "/users/ann"):
        assert "no password yet" in get(admin, path)
    proxied = world.app.state.settings.model_copy(update={"trusted_header": "X-User"})
    monkeypatch.setattr(world.app.state, "settings", proxied)
    assert "proxy or identity provider" in get(admin, "/users")
    assert "signs in through a proxy or an identity provider" in get(admin, "/users/ann")


# --- who --------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/users", "/users/admin", "/tokens"])
def test_given_no_admin_when_he_asks_for_people_then_he_is_refused(
    world: World, admin: TestClient, path: str
) -> None:
    get(admin, path)
    for who in ("viewer", "submitter", "operator", "limited"):
        get(world.client(who), path, 403)


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("/users", {"name": "eve", "role": "admin"}),
        ("/users/admin/rights", {"role": "viewer"}),
        ("/users/admin/disable", {}),
        ("/users/admin/enable", {}),
        ("/users/admin/delete", {}),
        ("/users/admin/link", {}),
        ("/users/admin/sessions", {}),
        ("/tokens", {"name": "mine", "role": "admin"}),
    ],
)
def test_given_no_admin_when_he_tries_then_he_is_refused(
    world: World, admin: TestClient, path: str, form: dict[str, str]
) -> None:
    before = world.store.accounts.users()

    for who in ("viewer", "submitter", "operator"):
        post(world.client(who), path, 403, **form)

    assert world.store.accounts.users() == before
    assert not world.store.accounts.tokens(None)


@pytest.mark.parametrize("who", ["viewer", "submitter"])
def test_given_less_than_an_operator_when_he_asks_for_webhooks_then_he_is_refused(
    world: World, who: str
) -> None:
    get(world.client(who), "/webhooks", 403)
    post(world.client(who), "/webhooks", 403, name="mine", url="https://example.org", event="*")


# --- users ------------------------------------------------------------------------------------


def test_given_an_admin_when_he_makes_a_user_then_the_link_is_shown_once(
    world: World, admin: TestClient
) -> None:
    text = post(admin, "/users", 200, name="grace", role="operator", collections="maps\nphotos", link="1")

    link = secret(text)
    assert link.startswith("http://localhost/welcome?link=")
    assert world.control("root").part(SignIn).link(link.partition("=")[2]).user == "grace"
    assert world.store.accounts.user("grace").rights.within == AccessScope(collections=("maps", "photos"))
    assert link not in get(admin, "/users/grace")
    assert "only collections maps, photos" in get(admin, "/users")


def test_given_a_page_with_a_secret_when_sent_then_nothing_keeps_it(admin: TestClient) -> None:
    answer = admin.post("/users/admin/link", headers=HTML)

    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"


def test_given_a_user_when_his_rights_are_set_then_a_limit_to_nothing_stays_one(
    world: World, admin: TestClient
) -> None:
    nothing = Rights(role=Role.VIEWER, within=AccessScope(collections=()))
    world.control("root").do(AddUser(name="guest", rights=nothing))
    assert 'name="collections_limited" value="1" checked' in get(admin, "/users/guest")

    form = dict(fields_of(nothing)) | {"role": "submitter"}
    post(admin, "/users/guest/rights", **form)

    assert world.store.accounts.user("guest").rights == Rights(
        role=Role.SUBMITTER, within=AccessScope(collections=())
    )


def test_given_the_only_admin_when_he_is_disabled_then_the_page_says_why_not(
    world: World, admin: TestClient
) -> None:
    text = post(admin, "/users/admin/disable", reason="holiday")

    assert 'class="refused"' in text
    assert not world.store.accounts.user("admin").disabled


def test_given_a_user_when_disabled_enabled_and_deleted_then_each_is_so(
    world: World, admin: TestClient
) -> None:
    world.control("root").do(AddUser(name="grace", rights=Rights(role=Role.VIEWER)))

    assert "this user cannot sign in" in post(admin, "/users/grace/disable", reason="left")
    post(admin, "/users/grace/enable")
    assert not world.store.accounts.user("grace").disabled
    post(admin, "/users/grace/delete")
    with pytest.raises(NoSuch):
        world.store.accounts.user("grace")
    get(admin, "/users/grace", 404)


@pytest.mark.parametrize(
    "form", [{"name": "a b"}, {"name": "x", "role": "king"}, {"name": "x", "first": "7", "last": "3"}]
)
def test_given_what_cannot_be_meant_when_a_user_is_to_be_made_then_the_form_says_so(
    admin: TestClient, form: dict[str, str]
) -> None:
    text = post(admin, "/users", 422, **{"role": "viewer", "reason": "for the trial", **form})

    assert 'role="alert"' in text
    assert 'value="for the trial"' in text


def test_given_an_admin_of_one_collection_when_he_gives_more_then_he_is_refused(world: World) -> None:
    world.rights["dean"] = Rights(role=Role.ADMIN, within=AccessScope(collections=("lab",)))

    post(world.client("dean"), "/users", 403, name="eve", role="viewer")

    with pytest.raises(NoSuch):
        world.store.accounts.user("eve")


def test_given_rights_when_put_into_a_form_and_back_then_they_are_the_same() -> None:
    rights = Rights(
        role=Role.OPERATOR,
        within=AccessScope(collections=("a b", "c"), queues=()),
        shares=("lab:*",),
        priorities=(40, 60),
        locks=("receiver:a, b",),
        external=("ingest",),
    )

    assert rights_of(FormFields(pairs=list(fields_of(rights).items()))) == rights
    assert limits_in_words(Rights(role=Role.VIEWER)) == ""


# --- tokens -----------------------------------------------------------------------------------


def test_given_a_user_when_he_makes_a_token_then_it_is_shown_once_and_works_until_revoked(
    world: World, admin: TestClient
) -> None:
    text = post(admin, "/account/tokens", 200, name="nightly", role="viewer", expires="90d")
    made = secret(text)

    token = world.store.accounts.tokens("admin")[0]
    assert token_id(made) == token.id
    assert (token.owner, token.rights.role) == ("admin", Role.VIEWER)
    assert made not in get(admin, "/account/tokens")
    assert "is revoked" in post(admin, f"/account/tokens/{token.id}/revoke", reason="done")
    assert world.store.accounts.token(token.id).revoked_us is not None


def test_given_a_viewer_when_he_makes_a_token_that_may_more_then_he_is_told(world: World) -> None:
    world.control("root").do(AddUser(name="viewer", rights=Rights(role=Role.VIEWER)))

    text = post(world.client("viewer"), "/account/tokens", 422, name="more", role="admin")

    assert 'role="alert"' in text
    assert not world.store.accounts.tokens("viewer")


def test_given_limits_without_a_role_when_a_token_is_to_be_made_then_they_are_not_passed_over(
    world: World, admin: TestClient
) -> None:
    for limit in ({"collections": "maps"}, {"queues_limited": "1"}, {"last": "60"}):
        assert "limits need a role" in post(admin, "/account/tokens", 422, name="some", **limit).lower()

    assert not world.store.accounts.tokens("admin")


def test_given_another_s_token_when_a_viewer_revokes_it_then_it_is_not_there_for_him(
    world: World, admin: TestClient
) -> None:
    answer = world.control("root").do(MakeToken(name="theirs", owner="admin")).token

    text = post(world.client("viewer"), f"/account/tokens/{answer.id}/revoke")

    assert "you have no token" in text.lower()
    assert world.store.accounts.token(answer.id).revoked_us is None


def test_given_an_admin_when_he_makes_a_machine_s_token_then_it_needs_a_role(
    world: World, admin: TestClient
) -> None:
    assert "name a role" in post(admin, "/tokens", 422, name="robot")

    post(admin, "/tokens", 200, name="robot", role="submitter")

    assert "token:robot" in get(admin, "/tokens")


def test_given_who_is_no_user_when_he_looks_for_his_tokens_then_he_is_told_why_there_are_none(
    world: World,
) -> None:
    assert "no user account here" in get(world.client("submitter"), "/account/tokens")


# --- webhooks ---------------------------------------------------------------------------------


def test_given_an_operator_when_he_makes_a_webhook_then_its_secret_is_shown_once(world: World) -> None:
    client = world.client("operator")

    form = {
        "name": "archive",
        "url": "https://example.org/hook",
        "event": ["failed", "batch"],
        "queue": "slow",
    }
    text = post(client, "/webhooks", 200, **form)
    first = secret(text)

    response = world.store.webhooks.get("archive")
    assert (response.events, response.queue, response.roots_only) == (("failed", "batch"), "slow", True)
    assert first.startswith("whs_")
    assert first not in get(client, "/webhooks/archive")
    second = secret(post(client, "/webhooks/archive/rotate", 200))
    assert second != first


def test_given_a_webhook_whose_deliveries_are_not_accepted_then_the_list_and_the_overview_say_so(
    world: World,
) -> None:
    client = world.client("operator")
    ann = Actor(by="ann", call="c", reason=None)
    world.store.webhooks.add(Webhook(name="archive", url="https://example.org"), "secret", ann, now_us=1)
    assert "none yet" in get(client, "/webhooks")
    # Written as their sender leaves them, since that of the server would send what is due, and remove what is old.
    at_us = now_us()
    with sql_store(world.store).database.write() as tx:
        for seq, (outcome, status, answer) in enumerate((DELIVERED, REFUSED, REFUSED, REFUSED), start=1):
            tx.run(
                "insert into webhook_events (seq, webhook_id, event, batch, at_us, outcome, tries, tried_us, status, "
                "answer) values (?, 1, 'failed', ?, ?, ?, 1, ?, ?, ?)",
                (seq, False, at_us, outcome, at_us, status, answer),
            )

    assert "3 deliveries failing" in get(client, "/webhooks")
    assert "The deliveries of webhook archive fail" in get(client, "/")
    assert "The last 3 deliveries were not accepted: 500 no disk" in get(client, "/")
    assert "archive fail" not in get(world.client("viewer"), "/")
    post(client, "/webhooks/archive/pause", reason="known")
    assert not read(world.control(), StatsCache()).webhooks


def test_given_an_address_to_which_this_server_sends_nothing_then_the_form_refuses_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = world.client("operator")
    form = {"name": "archive", "event": "*"}

    for url in ("http://127.0.0.1:9/hook", "http://localhost/hook", "http://[::1]/", "http://10.1.2.3/"):
        text = post(client, "/webhooks", 422, **form, url=url)
        assert "this server sends nothing there" in text
    post(client, "/webhooks", 422, **form, url="http://[")
    assert not world.store.webhooks.all(now_us=0)
    private = world.app.state.settings.model_copy(update={"webhook_private": True})
    monkeypatch.setattr(world.app.state, "settings", private)
    post(client, "/webhooks", 200, **form, url="http://127.0.0.1:9/hook")


def test_given_a_webhook_when_changed_paused_tested_and_removed_then_each_is_so(world: World) -> None:
    client = world.client("operator")
    world.control().do(AddWebhook(name="archive", url="https://example.org/hook"))

    post(client, "/webhooks/archive/pause", reason="they <move>")
    assert "they &lt;move&gt;" in get(client, "/webhooks/archive")
    assert "A ping is being sent" in post(client, "/webhooks/archive/test")
    listed = get(client, "/webhooks/archive?outcome=due")
    delivery = world.store.webhooks.deliveries("archive", limit=1)[0]
    assert f'id="delivery-{delivery.delivery}"' in listed
    assert "No delivery matches" in get(client, "/webhooks/archive?outcome=failed")
    assert "is sent again" in post(client, f"/webhooks/archive/deliveries/{delivery.delivery}/retry")
    post(client, "/webhooks/archive/resume")
    post(client, "/webhooks/archive/change", url="https://example.org/other", event="completed", below="1")
    response = world.store.webhooks.get("archive")
    assert (response.url, response.events, response.roots_only, response.paused) == (
        "https://example.org/other",
        ("completed",),
        False,
        None,
    )
    refused = client.post("/webhooks/archive/remove", data={"reason": "x" * 3000}, headers=HTML)
    assert refused.headers["location"] == "/webhooks/archive"
    assert "is deleted" in post(client, "/webhooks/archive/remove")
    get(client, "/webhooks/archive", 404)
    again = client.post("/webhooks/archive/remove", headers=HTML)
    assert again.headers["location"] == "/webhooks", "it has no page any more"
    assert "There is no webhook" in get(client, "/webhooks")


def test_given_a_webhook_whose_maker_was_deleted_then_the_list_and_its_page_say_why_it_is_paused(
    world: World,
) -> None:
    ann = Actor(by="ann", call="c", account="ann")
    world.store.accounts.add("ann", Rights(role=Role.OPERATOR), None, ann, now_us=1)
    world.store.webhooks.add(Webhook(name="archive", url="https://example.org"), "secret", ann, now_us=1)
    client = world.client("operator")
    assert "may not keep webhooks" not in get(client, "/webhooks")

    world.store.accounts.delete("ann", ann, now_us=2)

    for page in ("/webhooks", "/webhooks/archive"):
        assert "its maker ann was deleted and may not keep webhooks" in get(client, page)


@pytest.mark.parametrize(
    "form",
    [{"url": "ftp://example.org"}, {"url": "https://u:p@example.org"}, {"event": ()}, {"type": "nope"}],
)
def test_given_what_cannot_be_meant_when_a_webhook_is_to_be_made_then_the_form_says_so(
    world: World, form: dict[str, Any]
) -> None:
    fields = {"name": "bad", "url": "https://example.org", "event": "*", **form}

    assert 'role="alert"' in post(world.client("operator"), "/webhooks", 422, **fields)
    assert not world.store.webhooks.all(now_us=0)
