"""The rules about inboxes: what the node that looks into one has seen there, and uploads whose file does not come."""

from spinney.features.doctor.sql.rule import GRACE_US, Join, Paged, Rule, Walk
from spinney.model.settings.inboxes import UPLOAD_HELD_REASON

LATE_US = 10 * GRACE_US
"""Ten minutes, in microseconds. Nodes and servers finish uploads whose process has died within a minute, so
after this time nothing that could finish them is at work, or the file is lost."""

RULES: tuple[Rule, ...] = (
    Paged(
        name="inbox-stuck",
        about="The folder of each inbox that is not paused exists, and nodes can take what is dropped into it.",
        walk=Walk("inboxes", ("name",), subject="inbox {name}"),
        join=Join("left join nodes on nodes.id = page.node_id"),
        # What a dead node has seen may have changed since.
        where="page.paused = 0 and page.problem is not null and (page.node_id is null or nodes.state = 'active')",
        columns=("page.problem",),
        sentence="inbox {name} does not take what is dropped there: {problem}; what becomes of it: spinney inbox show "
        "{name}",
    ),
    Paged(
        name="upload-without-file",
        about="The job of an upload is held for some minutes at most, until its file is in its folder.",
        walk=Walk("holds", ("id",), subject="hold {id}"),
        where="page.scope = 'job' and page.reason = ? and page.since_us < ?",
        binds=lambda check: (UPLOAD_HELD_REASON, check.now_us - LATE_US),
        columns=("page.name",),
        sentence="job {name} is held for the file of an upload, which does not come: start a node or a server that "
        "sees the folder root; if they run, the file is lost: cancel the job, and upload the file again",
    ),
)
