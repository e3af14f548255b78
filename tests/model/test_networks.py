"""Which addresses are of the public Internet."""

import pytest

from spinney.model.values.networks import is_exempt, is_loopback, is_public


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111", "64:ff9b::808:808", "::ffff:8.8.8.8"])
def test_public_addresses(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.9.9.9",
        "0.0.0.0",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "192.0.0.192",
        "168.63.129.16",
        "::ffff:168.63.129.16",
        "192.0.2.1",
        "198.18.0.1",
        "224.0.0.1",
        "239.1.1.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::127.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "64:ff9b::7f00:1",
        "64:ff9b:1::1",
        "2002:7f00:1::",
        "2001:0:1::1",
        "2001:db8::1",
        "3fff::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fe80::1%lo",
        "fec0::1",
        "ff0e::1",
        "localhost",
        "",
    ],
)
def test_addresses_that_are_not(address: str) -> None:
    assert not is_public(address)


def test_a_host_is_exempt_at_all_ports_or_at_the_one_named() -> None:
    hosts = frozenset({"files.local", "127.0.0.1:8080", "[::1]:8080"})

    assert is_exempt("Files.Local", 80, hosts)
    assert is_exempt("files.local", 8443, hosts)
    assert is_exempt("127.0.0.1", 8080, hosts)
    assert is_exempt("::1", 8080, hosts)
    assert not is_exempt("127.0.0.1", 8081, hosts)
    assert not is_exempt("::1", 22, hosts)
    assert not is_exempt("more.files.local", 80, hosts)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.9.9.9", "::1", "[::1]"])
def test_names_and_addresses_of_this_machine(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["", "0.0.0.0", "::", "10.0.0.1", "localhost.example.org", "host"])
def test_names_and_addresses_that_others_may_reach(host: str) -> None:
    assert not is_loopback(host)
