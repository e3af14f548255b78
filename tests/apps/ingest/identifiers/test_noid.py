"""Names are as NOID makes them, none comes twice, and a slip of the pen is found."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.apps.ingest.identifiers import noid
from spinney.apps.ingest.identifiers.noid import scattered
from spinney.files.paths import NotAdmitted

# The first is the example of NOID's manual; the others EZID minted and others published.
KNOWN = ["13030/xf93gt2q", "99999/fk4rx9d523", "99999/fk4tq65d6k", "99999/fk43f4wd4v"]
names = st.text(noid.ALPHABET, min_size=2, max_size=27)


@pytest.mark.parametrize("name", KNOWN)
def test_check_characters_of_others_hold(name: str) -> None:
    assert noid.verify(name)
    assert noid.check_character(name[:-1]) == name[-1]


@given(names, st.data())
def test_one_wrong_character_is_found(name: str, data: st.DataObject) -> None:
    whole = name + noid.check_character(name)
    at = data.draw(st.integers(0, len(whole) - 1))
    other = data.draw(st.sampled_from(noid.ALPHABET.replace(whole[at], "")))

    assert noid.verify(whole)
    assert not noid.verify(whole[:at] + other + whole[at + 1 :])


@given(names)
def test_two_swapped_neighbours_are_found(name: str) -> None:
    whole = name + noid.check_character(name)
    swapped = {whole[:i] + whole[i + 1] + whole[i] + whole[i + 2 :] for i in range(len(whole) - 1)} - {whole}

    assert not any(noid.verify(other) for other in swapped)


@pytest.mark.parametrize("text", ["", "0", "k"])
def test_nothing_checks_nothing(text: str) -> None:
    assert not noid.verify(text)


def test_names_in_order() -> None:
    pattern = noid.template("fk4.sde")

    assert [noid.nth(pattern, n) for n in (0, 1, 28, 29, 289)] == [
        "fk400",
        "fk401",
        "fk40z",
        "fk410",
        "fk49z",
    ]


def test_names_grow_when_there_are_no_more() -> None:
    pattern = noid.template("zde")

    assert [noid.nth(pattern, n) for n in (289, 290, 2899, 2900)] == ["9z", "100", "99z", "1000"]


@pytest.mark.parametrize("text", ["sdd", "rdd", "rde", "re", "zd", "zed", "zek", "x.reedk"])
def test_no_name_comes_twice(text: str) -> None:
    pattern = noid.template(text)
    made = [noid.nth(pattern, n, authority="99999") for n in range(pattern.size or 3000)]

    assert len(set(made)) == len(made)
    assert not pattern.checked or all(noid.verify(f"99999/{name}") for name in made)


def test_the_order_of_r_looks_like_none() -> None:
    pattern = noid.template("reedeed")
    made = [noid.nth(pattern, n) for n in range(200)]

    # Where they came in order, 200 names in a row would begin alike.
    assert len({name[0] for name in made}) > 20
    assert made != sorted(made)


def test_names_that_were_given_stay_as_they_are() -> None:
    """They were made when this was written; whoever changes them changes what archives hold."""
    pattern = noid.template("fk4.reedeedk")

    assert [noid.nth(pattern, n, authority="99999") for n in range(3)] == NAMES_OF_R
    assert noid.nth(noid.template("fk4.zeedeedk"), 10**12, authority="99999") == NAME_OF_Z


NAMES_OF_R = ["fk4j93cm0h", "fk4ms1mk1v", "fk43x7j29p"]
NAME_OF_Z = "fk4jshmw4620b"


@pytest.mark.parametrize("number", [-1, 100])
def test_a_template_that_is_used_up(number: int) -> None:
    with pytest.raises(NotAdmitted, match="has 100 names and none of number"):
        noid.nth(noid.template("rdd"), number)


NO_TEMPLATES = ["", "z", "eed", "zk", "zeak", "zekd", "fk4zed", "a/b.zed", "é.zed", "z" + "e" * 65, "zed\n"]


@pytest.mark.parametrize("text", NO_TEMPLATES)
def test_what_is_no_template_is_refused(text: str) -> None:
    with pytest.raises(NotAdmitted, match="is no NOID template"):
        noid.template(text)


def test_the_parts_of_a_template() -> None:
    pattern = noid.template("fk4.zeedk")

    assert (pattern.prefix, pattern.order, pattern.mask, pattern.checked) == ("fk4", "z", "eed", True)
    assert pattern.size is None
    assert noid.template("red").size == 290


@given(st.integers(1, 600))
def test_scattering_permutes(size: int) -> None:
    assert sorted(scattered(n, size) for n in range(size)) == list(range(size))


@given(st.integers(1, 1 << 2000), st.data())
def test_scattering_stays_within_any_size(size: int, data: st.DataObject) -> None:
    number = data.draw(st.integers(0, size - 1))

    assert 0 <= scattered(number, size) < size
    assert re.fullmatch("[0-9]+", str(scattered(number % 97, 97)))


@pytest.mark.parametrize("number", [-1, 5])
def test_scattering_refuses_what_is_outside(number: int) -> None:
    with pytest.raises(ValueError, match=r"not within 0\.\.4"):
        scattered(number, 5)
