"""What a node is told that does not know whether its last exchange was committed."""

from spinney.model.outcomes import Outcome

from .words import Site


def test_the_account_names_what_is_recorded_and_every_lease_of_the_node(site: Site) -> None:
    # Given a job that completed, one whose stage passed and whose next is leased, one that failed, one handed back
    plain, kept, failed, returned, runs = (
        site.run(site.submit_one(of)) for of in ("one", "three", "one", "one", "one")
    )
    records = [
        site.entry(plain, Outcome.OK),
        site.entry(kept, Outcome.OK, keep=True),
        site.entry(failed, Outcome.ERROR),
        site.entry(returned, Outcome.RETURNED)._replace(started_us=0),
        site.entry(runs, Outcome.OK),
    ]
    answer = site.flush_and_claim(records[:-1], site.want(site.here, slots=0))
    (next_stage,) = answer.leases
    # When the node asks, then only the last record has still to be sent, and of the one handed back nothing is left
    account = site.store.reconcile(site.here.id, records)
    assert account.recorded == {plain.fence, kept.fence, failed.fence}
    assert sorted(account.leased) == sorted([(kept.job_id, next_stage.fence), (runs.job_id, runs.fence)])


def test_leases_of_others_are_none_of_its_business(site: Site) -> None:
    other = site.node("other")
    lease = site.run(site.submit_one(), other)
    assert site.store.reconcile(site.here.id, []).leased == []
    assert site.store.reconcile(other.id, []).leased == [(lease.job_id, lease.fence)]


def test_an_account_changes_nothing(site: Site) -> None:
    lease = site.run(site.submit_one())
    record = site.entry(lease, Outcome.OK)
    site.store.reconcile(site.here.id, [record])
    assert site.flush_and_claim([record]).refused == []
