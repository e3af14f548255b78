"""Create the tables of the inventory: numbers, local ids, objects, versions, files, audits. ``schema``
describes them."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")

ALGORITHMS = ("adler32", "crc32", "md5", "sha1", "sha256", "sha384", "sha512")


def upgrade() -> None:
    op.create_table(
        "inv_minters",
        sa.Column("minter", Text, primary_key=True),
        sa.Column("last", Id, nullable=False),
    )
    op.create_table(
        "inv_numbers",
        sa.Column("minter", Text, nullable=False),
        sa.Column("key", Text, nullable=False),
        sa.Column("number", Id, nullable=False),
        sa.PrimaryKeyConstraint("minter", "key"),
    )
    op.create_index("inv_numbers_once", "inv_numbers", ["minter", "number"], unique=True)
    op.create_table(
        "inv_local_ids",
        sa.Column("local_id", Text, nullable=False),
        sa.Column("collection", Text, nullable=False),
        sa.Column("ark", Text, nullable=False),
        sa.PrimaryKeyConstraint("local_id", "collection"),
    )
    op.create_index("inv_local_ids_by_ark", "inv_local_ids", ["ark"])
    objects()
    files()


def objects() -> None:
    op.create_table(
        "inv_objects",
        sa.Column("id", Id, primary_key=True, autoincrement=True),
        sa.Column("ark", Text, nullable=False),
        sa.Column("collection", Text, nullable=False),
        sa.Column("owner", Text, nullable=False),
        sa.Column("head_version", sa.Integer, nullable=False),
        sa.Column("audited_us", Id, nullable=False, server_default=sa.text("0")),
        sa.Column("damaged_since_us", Id),
    )
    op.create_index("inv_objects_by_ark", "inv_objects", ["ark"], unique=True)
    op.create_index("inv_objects_by_collection", "inv_objects", ["collection", "id"])
    op.create_index("inv_objects_by_audit", "inv_objects", ["audited_us", "id"])
    partial("inv_objects_damaged", "inv_objects", ["id"], "damaged_since_us is not null")
    op.create_table(
        "inv_versions",
        sa.Column("object_id", Id, sa.ForeignKey("inv_objects.id"), nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("batch_id", Text, nullable=False),
        sa.Column("job_id", Text, nullable=False),
        sa.Column("submitter", Text, nullable=False),
        sa.Column("who", Text),
        sa.Column("what", Text),
        sa.Column("when_said", Text),
        sa.Column("storage", Text, nullable=False),
        sa.Column("created_us", Id, nullable=False),
        sa.Column("files", sa.Integer, nullable=False),
        sa.Column("size_bytes", Id, nullable=False),
        sa.Column("verified", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("object_id", "version"),
    )
    op.create_index("inv_versions_by_batch", "inv_versions", ["batch_id", "object_id", "version"])
    op.create_table(
        "inv_audits",
        sa.Column("object_id", Id, sa.ForeignKey("inv_objects.id"), nullable=False),
        sa.Column("at_us", Id, nullable=False),
        sa.Column("files", sa.Integer, nullable=False),
        sa.Column("size_bytes", Id, nullable=False),
        sa.Column("faults", Text, nullable=False),
        sa.PrimaryKeyConstraint("object_id", "at_us"),
    )


def files() -> None:
    op.create_table(
        "inv_files",
        sa.Column("id", Id, primary_key=True, autoincrement=True),
        sa.Column("object_id", Id, sa.ForeignKey("inv_objects.id"), nullable=False),
        sa.Column("first_version", sa.Integer, nullable=False),
        sa.Column("last_version", sa.Integer, nullable=False),
        sa.Column("name", Text, nullable=False),
        sa.Column("path", Text, nullable=False),
        sa.Column("size_bytes", Id, nullable=False),
        sa.Column("mime_type", Text),
        *(sa.Column(algorithm, sa.LargeBinary) for algorithm in ALGORITHMS),
    )
    op.create_index("inv_files_by_object", "inv_files", ["object_id", "last_version"])
    op.create_index("inv_files_by_name", "inv_files", ["name", "object_id"])
    for algorithm in ALGORITHMS:
        partial(
            f"inv_files_by_{algorithm}", "inv_files", [algorithm, "object_id"], f"{algorithm} is not null"
        )


def partial(name: str, table: str, columns: list[str], condition: str) -> None:
    where = sa.text(condition)
    op.create_index(name, table, columns, sqlite_where=where, postgresql_where=where)
