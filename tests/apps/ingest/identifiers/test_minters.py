"""The local minter gives the same key the same ARK, whatever happens."""

from collections.abc import Callable

import pytest

from spinney.apps.ingest.identifiers import LocalMinter, Minter, arks, noid
from spinney.files.paths import NotAdmitted


def table() -> Callable[[str, str], int]:
    """The numbers of keys, as a table would keep them."""
    numbers: dict[tuple[str, str], int] = {}

    def number(minter: str, key: str) -> int:
        return numbers.setdefault((minter, key), sum(1 for m, _ in numbers if m == minter))

    return number


def local(number: Callable[[str, str], int], **fields: str) -> LocalMinter:
    return LocalMinter(
        number=number, **{"naan": "99999", "shoulder": "fk4", "template": "reedeedk", **fields}
    )


def test_the_same_key_has_the_same_ark() -> None:
    numbers = table()
    minter: Minter = local(numbers)
    first = minter.mint("job-1", {})

    other = minter.mint("job-2", {})
    again = local(numbers).mint("job-1", {"who": "somebody else"})

    assert again == first != other


def test_an_ark_has_its_parts_and_its_check_character() -> None:
    ark = local(table()).mint("job-1", {})

    assert (arks.canonical(ark), ark[:14], len(ark)) == (ark, "ark:/99999/fk4", 21)
    assert noid.verify(ark.removeprefix("ark:/"))


def test_shoulders_have_numbers_of_their_own() -> None:
    numbers = table()
    minters = [local(numbers), local(numbers, shoulder="fk5"), local(numbers, naan="12345")]

    made = [m.mint(key, {}) for m in minters for key in ("a", "b")]

    assert len(set(made)) == 6
    assert [numbers(m.name, "b") for m in minters] == [1, 1, 1]


def test_a_shoulder_that_is_used_up_says_so() -> None:
    minter = local(lambda minter, key: 10, template="sd")

    with pytest.raises(NotAdmitted, match=r"'fk4\.sd' has 10 names"):
        minter.mint("job-1", {})


@pytest.mark.parametrize(
    "fields",
    [
        {"naan": "9999/9"},
        {"naan": ""},
        {"shoulder": ""},
        {"shoulder": "ark:/99999/fk4"},
        {"template": "a.zek"},
    ],
)
def test_what_makes_no_arks_is_refused_at_once(fields: dict[str, str]) -> None:
    with pytest.raises(NotAdmitted):
        local(table(), **fields)
