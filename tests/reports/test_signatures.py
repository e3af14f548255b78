"""Who signed what, and when."""

import hashlib
import hmac

import pytest

from spinney.reports import BadSignature, signatures, verify

SECRET, BODY, AT = "a secret of both", b'{"a":1}', 1_800_000_000


def headers(value: str) -> dict[str, str]:
    return {"spinney-signature": value}


def test_the_signature_is_what_the_scheme_says() -> None:
    expected = hmac.new(SECRET.encode(), b'1800000000.{"a":1}', hashlib.sha256).hexdigest()

    assert signatures.sign(SECRET, BODY, AT) == f"t=1800000000,v1={expected}"


@pytest.mark.parametrize("off_s", [-300, 0, 300])
def test_what_was_signed_lately_passes(off_s: int) -> None:
    verify(SECRET, headers(signatures.sign(SECRET, BODY, AT)), BODY, AT + off_s)


def test_while_a_secret_is_changed_one_of_two_suffices() -> None:
    old, new = (signatures.sign(s, BODY, AT).partition(",")[2] for s in ("old", SECRET))

    verify(SECRET, headers(f"t={AT}, {old}, v2=ff, {new}"), BODY, AT)


GOOD = signatures.sign(SECRET, BODY, AT).partition(",")[2]


@pytest.mark.parametrize(
    ("value", "body", "now"),
    [
        (f"t={AT},{GOOD}", b'{"a":2}', AT),
        (f"t={AT + 1},{GOOD}", BODY, AT),
        (f"t={AT},{GOOD}", BODY, AT + 301),
        (f"t={AT},{GOOD}", BODY, AT - 301),
        (f"t={AT},v0={GOOD[3:]}", BODY, AT),
        (f"t={AT},{GOOD[:-1]}", BODY, AT),
        (f"t={AT},v1=", BODY, AT),
        (f"t={AT},v1=é", BODY, AT),
        (f"t=²,{GOOD}", BODY, AT),
        (f"t=-{AT},{GOOD}", BODY, AT),
        (f"t={'9' * 5000},{GOOD}", BODY, AT),
        (f"{GOOD}", BODY, AT),
        ("", BODY, AT),
        (",=,", BODY, AT),
    ],
)
def test_all_else_is_refused(value: str, body: bytes, now: float) -> None:
    with pytest.raises(BadSignature):
        verify(SECRET, headers(value), body, now)


def test_no_secret_is_none_even_when_both_have_none() -> None:
    with pytest.raises(BadSignature):
        verify("", headers(signatures.sign("", BODY, AT)), BODY, AT)


def test_another_secret_is_refused() -> None:
    with pytest.raises(BadSignature):
        verify("another", headers(f"t={AT},{GOOD}"), BODY, AT)
