"""From where somebody asks, as far as proxies are believed."""

import pytest
from starlette.requests import Request

from spinney.web.identity import proxies
from spinney.web.settings import ServerSettings

SETTINGS = ServerSettings(trusted_proxies=("10.9.0.0/16",))


def _request(client: str, *forwarded: str) -> Request:
    headers = [(b"x-forwarded-for", value.encode()) for value in forwarded]
    return Request({"type": "http", "client": (client, 1), "headers": headers})


@pytest.mark.parametrize(
    ("client", "forwarded", "expected"),
    [
        ("192.0.2.5", (), "192.0.2.5"),
        ("192.0.2.5", ("198.51.100.1",), "192.0.2.5"),  # nobody's word
        ("10.9.0.1", ("198.51.100.1",), "198.51.100.1"),
        (
            "10.9.0.1",
            ("203.0.113.9, 198.51.100.1",),
            "198.51.100.1",
        ),  # what stands before is the visitor's own
        ("10.9.0.1", ("198.51.100.1, 10.9.0.2",), "198.51.100.1"),
        ("10.9.0.1", ("203.0.113.9", "198.51.100.1"), "198.51.100.1"),
        ("10.9.0.1", ("<script>",), "10.9.0.1"),
        ("10.9.0.1", (), "10.9.0.1"),
        ("uid:1000", ("198.51.100.1",), None),
        # A server that listens on :: sees IPv4 addresses like these.
        ("::ffff:10.9.0.1", ("198.51.100.1",), "198.51.100.1"),
        ("::ffff:192.0.2.5", ("198.51.100.1",), "192.0.2.5"),
        ("10.9.0.1", ("::ffff:198.51.100.1, ::ffff:10.9.0.2",), "198.51.100.1"),
        ("2001:db8::1", ("198.51.100.1",), "2001:db8::1"),
    ],
)
def test_given_what_was_passed_on_then_the_address_is_the_last_that_is_no_proxy_of_ours(
    client: str, forwarded: tuple[str, ...], expected: str | None
) -> None:
    assert proxies.address(_request(client, *forwarded), SETTINGS) == expected


def test_given_nothing_set_then_not_even_this_host_is_believed() -> None:
    settings = ServerSettings()

    assert proxies.address(_request("127.0.0.1", "198.51.100.1"), settings) == "127.0.0.1"
    assert proxies.ignored(_request("127.0.0.1", "198.51.100.1"), settings)
    assert not proxies.ignored(_request("127.0.0.1"), settings)
    assert not proxies.ignored(_request("10.9.0.1", "198.51.100.1"), SETTINGS)
    assert not proxies.ignored(_request("uid:1000", "198.51.100.1"), settings)


@pytest.mark.parametrize("network", ["127.0.0.1/32", "::ffff:127.0.0.1/128"])
def test_given_a_server_for_both_families_then_a_proxy_of_ipv4_is_believed_as_it_is_named(
    network: str,
) -> None:
    settings = ServerSettings(trusted_header="x-user", trusted_proxies=(network,))
    headers = [(b"x-user", b"ann")]

    def user(client: str) -> str | None:
        return proxies.user(Request({"type": "http", "client": (client, 1), "headers": headers}), settings)

    assert user("::ffff:127.0.0.1") == "ann"
    assert user("::ffff:127.0.0.2") is None
    assert user("::1") is None
