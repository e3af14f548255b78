"""Names and secrets of who may ask, and rights as text."""

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from spinney.model.access import ALL_RIGHTS, AccessScope, Rights, Role
from spinney.model.errors import BadName, SpinneyError
from spinney.model.rights.accounts import (
    Token,
    digest,
    new_secret,
    new_token,
    rights_of,
    rights_text,
    token_id,
    user_name,
)

NAMES = st.lists(st.sampled_from(["a", "b", "ab", "c"]), unique=True).map(tuple)
PATTERNS = st.lists(st.sampled_from(["a", "a*", "ab*", "b", "abc"]), unique=True).map(tuple)
PRIORITIES = st.tuples(st.integers(0, 99), st.integers(0, 99)).map(lambda pair: (min(pair), max(pair)))
RIGHTS = st.builds(
    Rights,
    role=st.sampled_from(Role),
    within=st.builds(AccessScope, collections=st.none() | NAMES, queues=st.none() | NAMES),
    shares=st.none() | PATTERNS,
    priorities=st.none() | PRIORITIES,
    locks=st.none() | PATTERNS,
    external=NAMES | st.just(("*",)),
)


@given(RIGHTS)
def test_rights_are_read_as_they_were_written(rights: Rights) -> None:
    assert rights_of(rights_text(rights)) == rights


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "null",
        "[]",
        '{"role":"king"}',
        rights_text(ALL_RIGHTS).replace("admin", "root"),
        rights_text(ALL_RIGHTS).replace('"*"', '"a b"'),
    ],
)
def test_what_cannot_be_read_opens_nothing(text: str) -> None:
    with pytest.raises((ValueError, KeyError, TypeError, SpinneyError)):
        rights_of(text)


@given(RIGHTS, RIGHTS)
def test_what_both_allow_is_covered_by_both(one: Rights, other: Rights) -> None:
    if one.priorities and other.priorities:  # where nothing is common the last priority of all is left
        assume(max(one.priorities[0], other.priorities[0]) <= min(one.priorities[1], other.priorities[1]))
    both = one.narrowed(other)

    assert one.covers(both)
    assert other.covers(both)


@given(RIGHTS, RIGHTS, st.sampled_from(["role", "within", "shares", "priorities", "locks", "external"]))
def test_what_is_covered_is_allowed(one: Rights, another: Rights, field: str) -> None:
    other = replace(one, **{field: getattr(another, field)})
    assume(one.covers(other))

    assert one.permits(other.role)
    for name in ("a", "ab", "abc", "abx", "b", "c"):
        assert one.names_share(name) or not other.names_share(name)
        assert one.names_lock(name) or not other.names_lock(name)
        assert one.claims(name) or not other.claims(name)
        for queue in ("a", "b", "ab", "c", "other"):
            assert one.within.holds(name, queue) or not other.within.holds(name, queue)
    for priority in range(100):
        assert one.gives_priority(priority) or not other.gives_priority(priority)


@given(RIGHTS)
def test_all_rights_cover_everything_and_nothing_less_covers_them(rights: Rights) -> None:
    assert ALL_RIGHTS.covers(rights)
    assert rights.covers(rights)
    assert rights.covers(ALL_RIGHTS) == (rights == ALL_RIGHTS)


def test_a_tokens_secret_tells_its_id_and_no_two_are_the_same() -> None:
    made = [new_token() for _ in range(100)]

    assert all(token_id(secret) == id_ for id_, secret in made)
    assert len({secret for _, secret in made}) == len({id_ for id_, _ in made}) == 100
    assert len(new_secret()) == 43
    assert len(digest("\ud800")) == 64


@pytest.mark.parametrize(
    "text", ["", "spn_", "spn_0123456789abcdef_", "spn_0123456789ABCDEF_" + "x" * 43, "x" * 65]
)
def test_what_is_no_tokens_secret_has_no_id(text: str) -> None:
    assert token_id(text) is None


def test_no_user_is_taken_for_a_token() -> None:
    machine = Token(id="i", name="ci", owner=None, rights=ALL_RIGHTS, created_us=0, by="")

    with pytest.raises(BadName, match="leave out the ':'"):
        user_name(machine.acts_as)
    assert user_name("ann@example.org") == "ann@example.org"
