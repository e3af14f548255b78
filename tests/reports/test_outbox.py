"""On a real node: a stage's mail outlives its batch, waits for the server, and survives a kill."""

from pathlib import Path

from node_fixtures import Cluster, Node, cluster

from reports.mail_server import Behaviour, free_port, mail_server
from spinney.model.jobs import Filter, Job
from spinney.model.outcomes import Outcome
from spinney.model.states import State
from waiting import until

__all__ = ["cluster"]


def start(cluster: Cluster, port: int) -> Node:
    return cluster.node(
        app="outbox_app:app", env={"MAIL_PORT": str(port), "PYTHONPATH": str(Path(__file__).parent)}
    )


def mails(cluster: Cluster) -> list[Job]:
    return list(cluster.store.jobs(Filter(type="reports.mail"), limit=100))


def test_while_the_server_is_away_one_mail_probes_and_then_all_arrive_once(cluster: Cluster) -> None:
    # Given a batch that has ended, and no server for its mails
    port = free_port()
    start(cluster, port)
    (batch,) = cluster.run("batch", {"mails": 20})

    # When some probes were in vain, then most mails have not knocked, and those that have say what is wrong
    until(lambda: sum(len(cluster.attempts(mail.id)) for mail in mails(cluster)) >= 5, "the server was tried")
    tried = [
        ended for mail in mails(cluster) if (ended := [a for a in cluster.attempts(mail.id) if a.outcome])
    ]
    assert batch.state is State.COMPLETED
    assert all("cannot be used now" in (ended[-1].message or "") for ended in tried)
    assert len(tried) <= 4

    # When it is back, then each arrives once
    behaviour = Behaviour()
    with mail_server(behaviour, port=port):
        ended = cluster.settled([mail.id for mail in mails(cluster)])
    assert {mail.state for mail in ended} == {State.COMPLETED}
    assert sorted(arrived.mail["Subject"] for arrived in behaviour.received) == sorted(
        f"Report {n}" for n in range(20)
    )


def test_killed_while_the_server_has_it_the_same_message_is_sent_again(cluster: Cluster) -> None:
    # Given a server that has the message, and does not say so
    behaviour = Behaviour(stalls=True)
    with mail_server(behaviour) as port:
        node = start(cluster, port)
        cluster.run("batch", {"mails": 1})
        until(lambda: behaviour.received, "the server has it")

        # When the node is killed and another takes over
        behaviour.stalls = False
        node.kill()
        start(cluster, port)
        (mail,) = cluster.settled([mail.id for mail in mails(cluster)])

    # Then the server has got the same message twice, and the job is done
    assert mail.state is State.COMPLETED
    assert [a.outcome for a in cluster.attempts(mail.id)] == [Outcome.LOST, Outcome.OK]
    first, second = behaviour.received
    assert first.content == second.content
    assert first.mail["Message-ID"] == second.mail["Message-ID"]
