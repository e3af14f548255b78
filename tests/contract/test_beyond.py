"""What lies outside of somebody's limits is found: with it a verb on a tree asks whether it may reach all below."""

import pytest

from spinney.model.access import AccessScope
from spinney.model.jobs import Filter

from .words import Site


@pytest.mark.parametrize(
    ("within", "beyond"),
    [
        (AccessScope(), set()),
        (AccessScope(collections=("a",)), {"b", "none", "b slow"}),
        (AccessScope(collections=("a", "b")), {"none"}),
        (AccessScope(collections=()), {"a", "b", "none", "a slow", "b slow"}),
        (AccessScope(queues=("slow",)), {"a", "b", "none"}),
        (AccessScope(collections=("a",), queues=("default",)), {"b", "none", "a slow", "b slow"}),
    ],
)
def test_what_lies_outside_is_all_that_does_not_lie_within(
    site: Site, within: AccessScope, beyond: set[str]
) -> None:
    top = site.submit_one("parent", collection="a")
    lease = site.run(top)
    jobs = {
        name: site.spawn(lease, collection=collection, queue=queue)[0]
        for name, collection, queue in (
            ("a", "a", None),
            ("b", "b", None),
            ("a slow", "a", "slow"),
            ("b slow", "b", "slow"),
        )
    }
    site.pass_(lease)
    jobs["none"] = site.submit_one()
    everything = set(site.ids())

    outside = set(site.ids(beyond=within))

    assert {name for name, job in jobs.items() if job in outside} == beyond
    assert outside == everything - set(site.ids(within=within))
    below = Filter(below=site.job(top).lineage, beyond=within)
    assert site.store.job_lists.count(below, most=100) == len(beyond - {"none"})
