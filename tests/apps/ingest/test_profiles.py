"""Profiles: what a deposit is treated by."""

from pathlib import Path

import pytest

from spinney.apps.ingest.config import profiles, settings
from spinney.model.errors import UsageError


@pytest.fixture
def configuration(tmp_path: Path) -> settings.Settings:
    (tmp_path / "ingest.toml").write_text(
        "[storage.first]\nurl='a'\n[storage.other]\nurl='b'\n[minters.main]\nnaan='99999'\nshoulder='fk4'\n"
    )
    (tmp_path / "profiles").mkdir()
    return settings.load({settings.VARIABLE: str(tmp_path / "ingest.toml")})


def load(configuration: settings.Settings, text: str) -> profiles.Profile:
    (configuration.profiles / "maps.toml").write_text(text)
    return profiles.load(configuration, "maps")


def test_what_is_not_said_is_what_the_service_has(configuration: settings.Settings) -> None:
    profile = load(configuration, 'collection = "maps"')
    assert (profile.name, profile.collections, profile.storage, profile.minter) == (
        "maps",
        ("maps",),
        "first",
        "main",
    )
    assert (profile.owned_by, profile.digest, profile.priority, profile.hold) == (
        "maps",
        "sha256",
        None,
        None,
    )


def test_all_that_may_be_said(configuration: settings.Settings) -> None:
    profile = load(
        configuration,
        'collection = "maps"\ncollections = ["coast", "old"]\nowner = "Library"\nstorage = "other"\npriority = 3\n'
        'digest = "SHA-512"\nhosts = ["files.example.org", "[::1]:8080"]\nhold = "until Monday"\n'
        '[report]\nbatch = ["Ann <ann@example.org>"]\nadmins = []\nkind = "attached"\n'
        '[callback]\nurl = "https://example.org/told"\nsecret = "partner"\n',
    )
    assert profile.collections == ("maps", "coast", "old")
    assert (profile.collection, profile.owned_by, profile.digest) == ("maps", "Library", "sha512")
    assert profile.hosts == {"files.example.org", "[::1]:8080"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("collection = ", "is not valid TOML"),
        ("", "collections: Field required; correct it there"),
        ('collection = "a b"', "collections.0: 'a b' cannot name a collection"),
        ("collection = 5", "collections.0: Input should be a valid string"),
        ('collection = "a"\ncollections = "bcd"', "collections: Input should be a valid tuple"),
        ('collection = "a"\ncollections = 5', "collections: Input should be a valid tuple"),
        ("collections = []", "collections: Tuple should have at least 1 item"),
        ('collection = "a"\nname = "b"', "name: a profile has the name of its file; remove this key"),
        ('collection = "a"\nhosts = "example.org"', "hosts: Input should be a valid frozenset"),
        ('collection = "a"\nhosts = ["http://x.org"]', "hosts.0: String should match pattern"),
        ('collection = "a"\nhosts = ["10.0.0.0/8"]', "hosts.0: String should match pattern"),
        ('collection = "a"\npriority = 100', "priority: Input should be less than or equal to 99"),
        ('collection = "a"\ndigest = "sha3"', "digest: 'sha3' is no digest algorithm"),
        ('collection = "a"\nowner = "a\\nb"', "owner: "),
        ('collection = "a"\nhold = ""', "hold: '' cannot be a reason"),
        (
            'collection = "a"\nstorage = "tape"',
            "there is no storage 'tape' in the settings; name one of: first, other",
        ),
        ('collection = "a"\nminter = "x"', "there is no minter 'x'"),
        ('collection = "a"\narea = "x"', "there is no area 'x'"),
        ('collection = "a"\n[report]\nbatch = ["ann"]', "report.batch.0: 'ann' is no mail address"),
        ('collection = "a"\n[report]\nkind = "loud"', "report.kind: "),
        ('collection = "a"\n[callback]\nurl = "ftp://x"\nsecret = "s"', "callback.url: a webhook goes to"),
        (
            'collection = "a"\n[callback]\nurl = "https://u:hush@x/"\nsecret = "s"',
            "callback.url: the URL of a webhook",
        ),
        ('collection = "a"\n[callback]\nurl = "https://x/"\nsecret = "$HOME"', "callback.secret: "),
        ('collection = "a"\n[callbacks]\n', "callbacks: Extra inputs are not permitted"),
    ],
)
def test_what_is_wrong_is_named_by_file_and_key(
    configuration: settings.Settings, text: str, sentence: str
) -> None:
    with pytest.raises(UsageError) as caught:
        load(configuration, text)
    message = str(caught.value)
    assert message.startswith(str(configuration.profiles / "maps.toml"))
    assert sentence in message
    assert "hush" not in message


def test_a_profile_that_is_not_there_is_helped_with(configuration: settings.Settings) -> None:
    load(configuration, 'collection = "maps"')
    with pytest.raises(UsageError, match=r"no profile 'mapz'.*maps"):
        profiles.load(configuration, "mapz")


@pytest.mark.parametrize("name", ["../maps", "/etc/passwd", "", "maps.toml", ".maps", "a/b"])
def test_no_name_leads_elsewhere(configuration: settings.Settings, name: str) -> None:
    load(configuration, 'collection = "maps"')
    with pytest.raises(UsageError, match="there is no profile"):
        profiles.load(configuration, name)


def test_what_editors_leave_is_no_profile(configuration: settings.Settings) -> None:
    for name in ("maps.toml", ".#maps.toml", "maps.toml~", "#maps.toml#", "old maps.toml"):
        (configuration.profiles / name).write_text("")
    assert profiles.names_of(configuration) == ["maps"]


def test_a_folder_that_cannot_be_read_is_named(configuration: settings.Settings) -> None:
    # Given one that the system refuses to look at.
    long = configuration.model_copy(update={"profiles": configuration.profiles / ("x" * 300)})
    with pytest.raises(UsageError, match=r"cannot be read \(File name too long\); correct its permissions"):
        profiles.load(long, "maps")
