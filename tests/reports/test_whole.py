"""On a real node: a stage's mail outlives its batch, waits for the server, and survives a kill."""

from pathlib import Path

from node_fixtures import House, Node, house, until

from reports.mail_server import Behaviour, free_port, mail_server
from spinney.model.jobs import Filter, Job
from spinney.model.outcomes import Outcome
from spinney.model.states import State

__all__ = ["house"]


def start(house: House, port: int) -> Node:
    return house.node(
        app="outbox_app:app", env={"MAIL_PORT": str(port), "PYTHONPATH": str(Path(__file__).parent)}
    )


def mails(house: House) -> list[Job]:
    return list(house.store.jobs(Filter(type="reports.mail"), limit=100))


def test_while_the_server_is_away_one_mail_probes_and_then_all_arrive_once(house: House) -> None:
    # Given a batch that has ended, and no server for its mails
    port = free_port()
    start(house, port)
    (batch,) = house.run("batch", {"mails": 20})

    # When some probes were in vain, then most mails have not knocked, and those that have say what is wrong
    until(lambda: sum(len(house.attempts(mail.id)) for mail in mails(house)) >= 5, "the server was tried")
    tried = [ended for mail in mails(house) if (ended := [a for a in house.attempts(mail.id) if a.outcome])]
    assert batch.state is State.COMPLETED
    assert all("cannot be used now" in (ended[-1].message or "") for ended in tried)
    assert len(tried) <= 4

    # When it is back, then each arrives once
    behaviour = Behaviour()
    with mail_server(behaviour, port=port):
        ended = house.settled([mail.id for mail in mails(house)])
    assert {mail.state for mail in ended} == {State.COMPLETED}
    assert sorted(got.mail["Subject"] for got in behaviour.received) == sorted(
        f"Report {n}" for n in range(20)
    )


def test_killed_while_the_server_has_it_the_same_message_is_sent_again(house: House) -> None:
    # Given a server that has the message, and does not say so
    behaviour = Behaviour(stalls=True)
    with mail_server(behaviour) as port:
        node = start(house, port)
        house.run("batch", {"mails": 1})
        until(lambda: behaviour.received, "the server has it")

        # When the node is killed and another takes over
        behaviour.stalls = False
        node.kill()
        start(house, port)
        (mail,) = house.settled([mail.id for mail in mails(house)])

    # Then the server has got the same message twice, and the job is done
    assert mail.state is State.COMPLETED
    assert [a.outcome for a in house.attempts(mail.id)] == [Outcome.LOST, Outcome.OK]
    first, second = behaviour.received
    assert first.content == second.content
    assert first.mail["Message-ID"] == second.mail["Message-ID"]
