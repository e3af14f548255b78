"""What a user makes through a server that has not heard yet that the user was deleted."""

from collections.abc import Sequence

from contract.words import kind
from spinney.features.accounts.commands import DeleteUser, MakeToken
from spinney.features.webhooks.commands import ShowWebhook
from spinney.model.access import Rights, Role
from spinney.model.settings.schedules import ScheduleRun
from spinney.web.identity import forms
from spinney.web.request_context import now_us
from spinney.web.settings import ServerSettings

from .conftest import House


def test_what_a_deleted_user_still_makes_is_made_with_no_rights(house: House) -> None:
    house.store.register([kind("one", "work")], [])
    house.user("ann")
    made = house.control.do(MakeToken(name="t", owner="ann", rights=Rights(role=Role.OPERATOR)))
    ann = house.client(authorization=f"Bearer {made.secret}")
    assert ann.get("/api/v1/schedules").status_code == 200

    # when: within the second for which the server keeps what it knows of her
    house.control.do(DeleteUser(name="ann"))
    daily = {"type": "one", "params": {}, "every_s": 3600}
    answers = [
        ann.put("/api/v1/schedules/mine", json=daily),
        ann.post("/api/v1/webhooks", json={"name": "mine", "url": "https://example.org/"}),
    ]

    # then
    assert {answer.status_code for answer in answers} <= {200, 201}, [answer.text for answer in answers]
    assert "its maker ann was deleted" in str(house.control.do(ShowWebhook(name="mine")).paused)
    runs = [run for run in runs_after_two_hours(house) if run.outcome != "missed"]
    assert {(run.outcome, run.job_id) for run in runs} == {("refused", None)}
    assert "its maker ann was deleted" in str(runs[0].message)


def test_who_is_let_in_by_the_configuration_makes_schedules_that_go_by_no_user(
    house: House, settings: ServerSettings
) -> None:
    house.store.register([kind("one", "work")], [])
    identity = house.app.state.identity
    identity._settings = settings.model_copy(
        update={"trusted_header": "x-user", "trusted_proxies": ("10.9.9.9",), "trusted_role": Role.OPERATOR}
    )
    deb = house.client("10.9.9.9", **{"x-user": "deb"})
    assert deb.get("/api/v1/schedules").status_code == 200
    deb.headers[forms.HEADER] = identity._cookies.proof("proxy", "deb")

    answer = deb.put("/api/v1/schedules/mine", json={"type": "one", "params": {}, "every_s": 3600})

    assert answer.status_code == 200, answer.text
    assert "submitted" in {run.outcome for run in runs_after_two_hours(house)}


def runs_after_two_hours(house: House) -> Sequence[ScheduleRun]:
    while house.store.schedules.tick(now_us=now_us() + 7_200_000_000):
        pass
    return house.store.schedules.runs("mine")
