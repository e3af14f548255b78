"""Errors of the store, as callers read them who have not signed in: the message of the error names files and hosts."""

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from contract.behind import sql_store
from server.identity.conftest import PASSWORD, House, csrf
from spinney.model.access import Role
from spinney.model.errors import StoreUnavailable
from spinney.store.parts import Store
from spinney.store.sql import open_store
from spinney.web.store_pool import StorePool

HTML = {"Accept": "text/html"}
TOKEN = {"Authorization": f"Bearer spn_{'1' * 12}_{'x' * 43}"}


def replace(house: House, file: Path) -> None:
    file.unlink()


def damage(house: House, file: Path) -> None:
    with sql_store(house.store).database.write() as tx:
        tx.run("alter table audit rename to elsewhere")


@pytest.mark.parametrize("spoil", [replace, damage])
@pytest.mark.parametrize("headers", [TOKEN, TOKEN | HTML], ids=["program", "browser"])
def test_given_a_caller_who_is_not_known_then_the_response_names_no_place_and_the_log_does(
    house: House,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    spoil: Callable[[House, Path], None],
    headers: dict[str, str],
) -> None:
    spoil(house, tmp_path / "spinney.db")

    answer = house.client().get("/probe", headers=headers)

    assert answer.status_code == 503
    assert "its log says why" in answer.text
    assert str(tmp_path) not in answer.text
    assert str(tmp_path) in caplog.text


def test_given_a_password_when_the_store_is_replaced_then_the_form_names_no_place(
    house: House, tmp_path: Path
) -> None:
    house.user()
    browser = house.client()
    proof = csrf(browser.get("/sign-in").text)
    replace(house, tmp_path / "spinney.db")

    answer = browser.post("/sign-in", data={"name": "ann", "password": PASSWORD, "csrf": proof})

    assert answer.status_code == 503
    assert "its log says why" in answer.text
    assert str(tmp_path) not in answer.text


@pytest.mark.parametrize("kept_s", [3600.0])
def test_given_a_session_that_is_known_then_its_page_has_the_whole_message(
    house: House, tmp_path: Path
) -> None:
    house.user("ann", Role.VIEWER)
    browser = house.signed_in()
    assert browser.get("/jobs", headers=HTML).status_code == 200
    replace(house, tmp_path / "spinney.db")

    answer = browser.get("/jobs", headers=HTML)

    assert answer.status_code == 503
    assert str(tmp_path) in answer.text


async def test_given_a_store_that_is_away_then_its_message_is_logged_once_for_many_calls(
    house: House, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def away(store: Store) -> None:
        raise StoreUnavailable("the host db.example.org does not answer")

    caplog.set_level(logging.ERROR)
    async with StorePool(lambda: open_store(f"sqlite:///{tmp_path}/spinney.db"), threads=1) as stores:
        for _ in range(3):
            with pytest.raises(StoreUnavailable):
                await stores.run(away)

    assert caplog.text.count("db.example.org") == 1
