"""Depositors' URLs do not reach into the network of those who run this."""

import datetime
import ipaddress
import socket
from collections.abc import Sequence
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from apps.ingest.web import Web, redirect
from spinney.apps.ingest.fetch import FetchFailed, RemoteFile, Rules, estimate, fetch_all


def refusal(url: str, folder: Path, rules: Rules) -> FetchFailed:
    with pytest.raises(FetchFailed) as failure:
        fetch_all([RemoteFile(url=url, name="a")], folder, rules, tries=1)
    return failure.value


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "0.0.0.0",
        "0",
        "[::]",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "127.0.0.1.",
        "①27.0.0.1",
    ],
)
def test_no_way_of_writing_it_leads_to_this_machine(web: Web, folder: Path, host: str) -> None:
    web.put("/secret", b"secret")

    failure = refusal(f"http://{host}:{web.port}/secret", folder, Rules())

    assert not failure.retryable
    assert web.log == []


@pytest.mark.parametrize(
    "host", ["10.0.0.1", "192.168.0.1", "169.254.169.254", "100.64.0.1", "224.0.0.1", "[fd00:ec2::254]"]
)
def test_nor_to_neighbours(folder: Path, host: str) -> None:
    assert "not on the public Internet" in refusal(f"http://{host}/latest/meta-data/", folder, Rules()).reason


def test_a_host_is_allowed_at_its_port_only(web: Web, folder: Path) -> None:
    web.put("/a", b"x")
    with Web() as other:
        other.put("/a", b"x")
        rules = Rules(hosts=frozenset({web.host}))

        fetch_all([RemoteFile(url=web.url("/a"), name="a")], folder, rules)
        failure = refusal(other.url("/a"), folder, rules)

        assert f"'127.0.0.1:{other.port}' added" in failure.reason
        assert other.log == []


@pytest.mark.parametrize(
    ("to", "says"),
    [
        ("file:///etc/passwd", "only http and https"),
        ("ftp://example.org/", "only http, https and file"),
        ("data:,x", "only http, https and file"),
        ("http://169.254.169.254/", "public Internet"),
        ("//127.0.0.1:1/", "public Internet"),
        ("http://me:secret@example.org/", "password"),
        ("http://[::1", "not a URL"),
        ("http://127.0.0.1:99999/", "port"),
    ],
)
def test_a_redirect_is_checked_like_any_url(
    web: Web, folder: Path, rules: Rules, tmp_path: Path, to: str, says: str
) -> None:
    web.put("/a", always=redirect(to))

    # A root is there, so that it is the redirect which is refused.
    failure = refusal(web.url("/a"), folder, Rules(hosts=rules.hosts, file_roots=(Path("/etc"), tmp_path)))

    assert not failure.retryable
    assert says in failure.reason
    assert "secret" not in str(failure)


def test_an_ipv6_address_is_named_as_a_profile_would_have_it(folder: Path) -> None:
    assert "'[::1]:81' added to the hosts" in refusal("http://[::1]:81/", folder, Rules()).reason


def test_an_estimate_is_guarded_too(web: Web) -> None:
    [size] = estimate([web.put("/a", b"x")], Rules())

    assert "public Internet" in (size.problem or "")
    assert web.log == []


@pytest.mark.parametrize("addresses", [("8.8.8.8", "127.0.0.1"), ("::ffff:127.0.0.1",), ("fe80::1%lo",)])
def test_a_name_is_refused_when_one_of_its_addresses_is(
    web: Web, folder: Path, addresses: tuple[str, ...]
) -> None:
    url = f"http://files.example:{web.port}/"

    failure = refusal(url, folder, Rules(resolve=lambda host, port: addresses))

    assert "public Internet" in failure.reason
    assert web.log == []


def test_a_name_server_that_changes_its_answer_gains_nothing(web: Web, folder: Path) -> None:
    # Each connection is judged by the answer it is made with (DNS rebinding).
    hosts: list[str] = []

    def resolve(host: str, port: int) -> Sequence[str]:
        hosts.append(host)
        if len(hosts) == 1:
            raise socket.gaierror(socket.EAI_AGAIN, "told")
        return ["127.0.0.1"]

    files = [RemoteFile(url=f"http://rebind.example:{web.port}/", name="a")]
    rules = Rules(resolve=resolve)
    with pytest.raises(FetchFailed, match="not resolved"):
        fetch_all(files, folder, rules)
    with pytest.raises(FetchFailed, match="public Internet"):
        fetch_all(files, folder, rules)

    assert hosts == ["rebind.example"] * 2
    assert web.log == []


def test_the_address_judged_is_the_address_reached(web: Web, folder: Path) -> None:
    # Resolved once a connection: nobody asks the name server again between judging and connecting.
    hosts: list[str] = []

    def resolve(host: str, port: int) -> Sequence[str]:
        hosts.append(host)
        return ["127.0.0.1"]

    web.put("/a", b"x")
    rules = Rules(hosts=frozenset({f"files.example:{web.port}"}), resolve=resolve)
    files = [RemoteFile(url=f"http://files.example:{web.port}/a", name="a")]

    fetch_all(files, folder, rules)

    assert hosts == ["files.example"]
    assert web.log[0].headers["host"] == f"files.example:{web.port}"


def test_a_name_that_is_not_known(folder: Path) -> None:
    def resolve(errno: int) -> Rules:
        def fail(host: str, port: int) -> Sequence[str]:
            raise socket.gaierror(errno, "told")

        return Rules(resolve=fail)

    url = "http://nowhere.example/"
    assert not refusal(url, folder, resolve(socket.EAI_NONAME)).retryable
    silent = refusal(url, folder, resolve(socket.EAI_AGAIN))
    assert (silent.retryable, silent.host) == (True, "nowhere.example")


def test_a_proxy_of_the_environment_is_not_used(
    web: Web, folder: Path, rules: Rules, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    url = web.put("/a", b"x")

    [fetched] = fetch_all([RemoteFile(url=url, name="a")], folder, rules)

    assert fetched.size_bytes == 1


def test_https_is_spoken_with_servers_whose_certificate_is_trusted(
    folder: Path, certificate: tuple[str, str]
) -> None:
    with Web(tls=certificate) as web:
        url = web.put("/a", b"x" * 100_000)
        rules = Rules(hosts=frozenset({web.host}))

        untrusted = refusal(url, folder, rules)
        trusting = Rules(hosts=rules.hosts, authorities=Path(certificate[0]))
        [fetched] = fetch_all([RemoteFile(url=url, name="a")], folder, trusting)

    assert not untrusted.retryable
    assert "certificate" in untrusted.reason
    assert fetched.size_bytes == 100_000


def test_from_http_to_https_is_lawful_and_back_is_not(
    web: Web, folder: Path, certificate: tuple[str, str]
) -> None:
    with Web(tls=certificate) as safe:
        rules = Rules(hosts=frozenset({web.host, safe.host}), authorities=Path(certificate[0]))
        safe.put("/a", b"x")
        up = web.put("/up", always=redirect(safe.url("/a")))
        down = safe.put("/down", always=redirect(web.put("/b", b"x")))

        [fetched] = fetch_all([RemoteFile(url=up, name="a")], folder, rules)
        failure = refusal(down, folder, rules)

    assert fetched.size_bytes == 1
    assert "from https to http://" in failure.reason
    assert web.request_count("/b") == 0


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[str, str]:
    """A certificate for 127.0.0.1 that vouches for itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    pem, private = tmp_path / "certificate.pem", tmp_path / "key.pem"
    pem.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return str(pem), str(private)
