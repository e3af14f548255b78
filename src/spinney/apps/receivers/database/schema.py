"""The tables of a receiver's database.

They are made when a database is opened for writing. A new column needs a migration of its own, of which there has been
none yet."""

SCHEMA = """
create table if not exists batches (
    id integer primary key,
    job integer not null,
    at real not null,
    session integer not null,
    files integer not null,
    pulses integer not null,
    hits integer not null,
    afresh integer not null
);
create table if not exists files (
    sha256 text primary key,
    name text not null,
    path text not null,
    session integer not null,
    begun real not null,
    batch integer not null references batches (id),
    lines integer not null,
    pulses integer not null,
    broken integer not null,
    damage text not null
);
create index if not exists files_by_session on files (session, begun, name);
create table if not exists sessions (
    session integer primary key,
    last_begun real not null,
    last_name text not null,
    tags text not null,
    state text not null
);
create table if not exists runs (
    session integer not null,
    run integer not null,
    tag text not null,
    port integer not null,
    primary key (session, run)
) without rowid;
create table if not exists hits (
    session integer not null,
    run integer not null,
    time real not null,
    offset real not null,
    signal real not null,
    noise real not null,
    slop real not null,
    primary key (session, run, time)
) without rowid;
create table if not exists gps (
    session integer not null,
    time real not null,
    latitude real not null,
    longitude real not null,
    altitude real not null,
    primary key (session, time)
) without rowid;
"""
"""The statements that make what is missing. Reruns and new files write all tables of a session in one transaction.

``batches``: one for each session of a call that found new files; ``job``: the job that made the call; ``afresh``: the
session was detected again from its first file. ``files``: the raw files, by their content; ``path``: from the folder
``data`` of the settings on, or absolute where the file lies elsewhere; if a file continues a shorter one of the same
name, the counts are those of what it has more. ``sessions``: how far each boot session is; ``tags`` is a digest of the
tags and the rules, ``state`` what the next file needs (JSON). ``runs`` and ``hits``: the detections. ``gps``: where the
receiver was. Times are seconds since 1970."""
