"""The rule about inboxes: what the node that looks into one has seen there."""

from spinney.features.doctor.sql.rule import Join, Paged, Rule, Walk

RULES: tuple[Rule, ...] = (
    Paged(
        name="inbox-stuck",
        about="The folder of each inbox that is not paused is there, and nodes can take what is dropped into it.",
        walk=Walk("inboxes", ("name",), subject="inbox {name}"),
        join=Join("left join nodes on nodes.id = page.node_id"),
        # What a dead node has seen may have changed since.
        where="page.paused = 0 and page.problem is not null and (page.node_id is null or nodes.state = 'active')",
        columns=("page.problem",),
        sentence="inbox {name} does not take what is dropped there: {problem}; what becomes of it: spinney inbox show "
        "{name}",
    ),
)
