"""Which object it is, what a new version holds, what the inventory is told; and what was cut off in between."""

import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from apps.ingest.identifiers.ezid_server import EzidServer, says
from apps.ingest.objects.scene import BID, Deposit, Service, about, payload, tarred, zipped
from apps.ingest.signals import failure
from apps.ingest.storage.judge import put
from spinney.apps.ingest import storage
from spinney.apps.ingest.deposits import identities
from spinney.apps.ingest.identifiers import LocalMinter
from spinney.apps.ingest.inventory.inventory import Inventory
from spinney.apps.ingest.inventory.model import Version
from spinney.apps.ingest.manifests import PayloadKind
from spinney.apps.ingest.objects.processing import ark_lock
from spinney.apps.ingest.storage import Incoming, Storage, open_storage
from spinney.testing import StageHarness

# --- whose it is ------------------------------------------------------------------------------


def _versions(inventory: Inventory, ark: str) -> Sequence[Version]:
    record = inventory.object(ark)
    assert record is not None
    return record.versions


def test_the_same_local_id_is_another_version_of_the_object(service: Service) -> None:
    first = service.of_file(b"1", about=about(local_ids=("m",))).deposit()
    second = service.of_file(b"2", number=2, about=about(local_ids=("m",))).deposit()
    assert (second["ark"], second["version"]) == (first["ark"], 2)


def test_two_objects_of_one_batch_with_one_local_id_become_one_whoever_is_first(service: Service) -> None:
    one = service.of_file(b"1", about=about(local_ids=("m",)))
    other = service.of_file(b"2", number=2, about=about(local_ids=("m",)))
    one.to("downloading")
    other.to("downloading")
    # Given that the one has been named and not yet bound when the other passes.
    one.harness.data["ark"] = "ark:/99999/fk4lost"
    done = other.to("recording", "processing").harness.results["processing"]
    assert one.run("processing").outcome == "ok"
    result = one.harness.results["processing"]
    assert (result["ark"], result["version"]) == (done["ark"], 2)


def test_a_local_id_that_is_taken_meanwhile_is_looked_at_again(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    deposit = service.of_file(about=about(local_ids=("m",)))
    deposit.to("downloading")
    with service.inventory as inventory:
        identify = identities.identify

        def before_another(*args: Any) -> str | None:
            identity = identify(*args)
            inventory.bind("maps", ["m"], "ark:/99999/fk4other")
            return identity

        monkeypatch.setattr(identities, "identify", before_another)
        assert deposit.run("processing").outcome == "defer"
    assert deposit.run("processing").outcome == "ok"
    assert deposit.harness.results["processing"]["ark"] == "ark:/99999/fk4other"


@pytest.fixture
def refused_update(service: Service) -> Deposit:
    """An update of an object with the local id 'm', to which it adds 'n', that the storage refuses."""
    ark = service.of_container(zipped({"x": b"1"}), about=about(local_ids=("m",))).deposit()["ark"]
    description = about(primary_id=ark, local_ids=("m", "n"))
    return service.of_container(zipped({"x/y": b"2"}), number=2, update=True, about=description)


def test_a_deposit_that_the_storage_refuses_binds_no_local_id(
    service: Service, refused_update: Deposit
) -> None:
    # Given an update with another local id, which would make a folder of a file, and is refused,
    ark = refused_update.order["about"]["primary_id"]
    refused = refused_update.to("processing")
    assert not failure(refused).retryable
    assert "'x' is a file, and" in refused.message.replace("producer/", "")
    # when that local id is deposited,
    other = service.of_file(b"3", number=3, about=about(local_ids=("n",))).deposit()
    # then it is an object of its own, and the local id that was bound before stays bound.
    assert other["ark"] != ark
    assert other["version"] == 1
    assert service.of_file(b"4", number=4, about=about(local_ids=("m",))).deposit()["ark"] == ark


def test_nor_does_one_that_waits_for_another_writer(service: Service) -> None:
    # Given an object that meets another writer in the storage,
    ark = "ark:/12345/x"
    deposit = service.of_file(about=about(primary_id=ark, local_ids=("m",)))
    deposit.to("downloading")
    outcomes: list[str] = []

    def meanwhile(step: str) -> None:
        if step == "content":
            outcomes.append(deposit.run("processing").outcome)

    other = open_storage(service.settings.storage["main"].url, on_step=meanwhile)
    put(other, Incoming(path="a", source=b"a", size_bytes=1), object_id=ark)
    # then its local id is free while it waits,
    assert outcomes == ["defer"]
    with service.inventory as inventory:
        assert inventory.ark_of("maps", "m") is None
        # and is bound when it is stored.
        assert deposit.run("processing").outcome == "ok"
        assert inventory.ark_of("maps", "m") == ark


def test_a_deposit_that_waited_for_a_refused_one_is_an_object_of_its_own(
    service: Service, refused_update: Deposit, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a deposit that finds its local id bound by the update, and waits for the lock on the object,
    ark = refused_update.order["about"]["primary_id"]
    other = service.of_file(b"3", number=3, about=about(local_ids=("n",)))
    other.to("downloading")
    waiting = other.beside(ark_lock(ark))
    bind = Inventory.bind

    def then_wait(self: Inventory, collection: str, names: Sequence[str], ark: str) -> None:
        bind(self, collection, names, ark)
        if "n" in names:
            assert waiting.run("processing").outcome == "locked"

    with monkeypatch.context() as patch:
        patch.setattr(Inventory, "bind", then_wait)
        # when the storage refuses the update, and the other continues,
        assert refused_update.to("processing").outcome == "error"
    again = waiting.beside()
    assert again.run("processing").outcome == "ok"
    # then it makes an object of its own, which is also the one that its job shows.
    result = again.harness.results["processing"]
    assert result["ark"] != ark
    assert result["version"] == 1
    assert again.harness.data["ark"] == again.harness.data["minted"] == result["ark"]


def test_a_local_id_that_is_free_again_before_the_lock_is_taken_is_looked_up_again(
    service: Service, refused_update: Deposit, monkeypatch: pytest.MonkeyPatch
) -> None:
    ark = refused_update.order["about"]["primary_id"]
    other = service.of_file(b"3", number=3, about=about(local_ids=("n",)))
    other.to("downloading")
    identify = identities.identify

    def before_the_refusal(inventory: Inventory, collection: str, *args: Any) -> str | None:
        inventory.bind(collection, ["n"], ark)
        identity = identify(inventory, collection, *args)
        inventory.unbind(collection, ["n"], ark)
        monkeypatch.setattr(identities, "identify", identify)
        return identity

    monkeypatch.setattr(identities, "identify", before_the_refusal)
    assert other.run("processing").outcome == "defer"
    assert other.run("processing").outcome == "ok"
    assert other.harness.results["processing"]["ark"] != ark


def test_a_given_ark_that_is_not_the_local_ids_fails(service: Service) -> None:
    first = service.of_file(b"1", about=about(local_ids=("m",))).deposit()
    other = service.of_file(b"2", number=2, about=about(primary_id="ark:/12345/x", local_ids=("m",)))
    refused = other.to("processing")
    assert not failure(refused).retryable
    assert refused.message == (
        f"ark:/12345/x was given, but 'm' is {first['ark']}; correct the primary id or the local ids, "
        "and submit it again"
    )


def test_so_does_what_is_no_ark(service: Service) -> None:
    refused = service.of_file(about=about(primary_id="doi:10.1/\x1b[2Jx")).to("processing")
    assert refused.outcome == "error"
    assert refused.message == r"'doi:10.1/\x1b[2Jx' is no ARK; give one like ark:/12345/fk4abc"


def test_who_knows_an_ark_cannot_add_to_another_collections_object(service: Service) -> None:
    first = service.of_file(b"1").deposit()
    service.profile("coins", collection="coins")
    thief = service.of_file(
        b"2", number=2, profile="coins", update=True, about=about(primary_id=first["ark"])
    )
    refused = thief.to("processing")
    assert refused.outcome == "error"
    assert f"{first['ark']} is of collection 'maps'" in refused.message
    assert [v.number for v in service.storage.versions(first["ark"])] == [1]


def test_nor_to_one_that_was_stored_and_not_recorded(service: Service) -> None:
    # Given an object that is cancelled after it was stored;
    description = about(primary_id="ark:/12345/secret")
    service.of_file(b"secret", about=description).deposit("processing")
    # when somebody of another collection lays a file over it under its ARK,
    service.profile("coins", collection="coins")
    thief = service.of_file(b"2", number=2, profile="coins", update=True, about=description)
    refused = thief.to("processing")
    # then that is refused.
    assert refused.outcome == "error"
    assert refused.message.startswith(
        "ark:/12345/secret is of collection 'maps' and owner 'maps', not of this"
    )
    assert service.stored("ark:/12345/secret") == {"a.txt": b"secret"}


def test_two_objects_with_the_same_ark_are_two_versions(service: Service) -> None:
    ark = "ark:/12345/x"
    for number, content in ((1, b"1"), (2, b"2")):
        service.of_file(content, number=number, about=about(primary_id=ark)).deposit()
    assert service.stored(ark, 1) == {"a.txt": b"1"}
    assert service.stored(ark, 2) == {"a.txt": b"2"}


# --- minting ----------------------------------------------------------------------------------


@pytest.mark.parametrize("collection", ["maps", "coins"])
def test_what_is_minted_is_never_an_object_that_is_there_already(service: Service, collection: str) -> None:
    # Given somebody who deposits under the ARK that will be minted next,
    service.profile("others", collection=collection)
    mine = service.of_file(b"mine", 1)
    # (the order of a NOID minter is no secret)
    guessed = LocalMinter(naan="99999", shoulder="fk4", template="zeedeedk", number=lambda *_: 0).mint("", {})
    squatter = service.of_file(b"theirs", 2, profile="others", about=about(primary_id=guessed))
    assert squatter.deposit()["ark"] == guessed
    # when that is minted,
    ran = mine.to("processing")
    assert ran.outcome == "defer"
    assert f"{guessed} was minted" in ran.message
    # then it is left to them, and another is minted.
    assert mine.run("processing").outcome == "ok"
    done = mine.harness.results["processing"]
    assert done["ark"] != guessed
    assert service.stored(guessed) == {"a.txt": b"theirs"}
    assert service.stored(done["ark"]) == {"a.txt": b"mine"}
    assert [v.number for v in service.storage.versions(done["ark"])] == [1]


def test_ezid_is_asked_once_and_its_ark_outlives_a_wait_for_the_lock(
    service: Service, ezid: EzidServer
) -> None:
    deposit = service.of_file(about=about(title="A map", creator="Ann"))
    deposit.to("downloading")
    waiting = deposit.beside(ark_lock("ark:/99999/fk4rx9d523"))
    assert waiting.run("processing").outcome == "locked"
    assert waiting.beside().run("processing").value["ark"] == "ark:/99999/fk4rx9d523"
    assert len(ezid.requests) == 1
    assert "erc.what: A map" in ezid.requests[0][2]


def test_a_refusal_of_ezid_is_told_and_not_tried_again(service: Service, ezid: EzidServer) -> None:
    ezid.answers[:] = [says("error: bad request - no such shoulder", 400)]
    refused = service.of_file().to("processing")
    assert not failure(refused).retryable
    assert "no such shoulder" in refused.message
    assert "hush" not in refused.message


@pytest.fixture
def ezid(service: Service, monkeypatch: pytest.MonkeyPatch) -> Iterator[EzidServer]:
    monkeypatch.setenv("SPINNEY_EZID_PASSWORD", "hush")
    with EzidServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        service.write(
            minters={"main": {"naan": "99999", "shoulder": "fk4", "url": server.url, "user": "lib"}}
        )
        yield server
        server.over.set()
        server.shutdown()
        thread.join()


# --- versions ---------------------------------------------------------------------------------


def test_add_makes_a_version_of_just_these_files_and_update_lays_them_over(service: Service) -> None:
    description = about(local_ids=("m",))
    ark = service.of_files({"a": b"1", "b": b"1"}, about=description).deposit()["ark"]
    service.of_files({"b": b"2", "c": b"2"}, number=2, about=description, update=True).deposit()
    assert service.stored(ark) == {"a": b"1", "b": b"2", "c": b"2"}
    service.of_files({"d": b"3"}, number=3, about=description).deposit()
    assert service.stored(ark) == {"d": b"3"}


def test_an_update_of_an_object_that_is_not_there_makes_it(service: Service) -> None:
    done = service.of_file(update=True, about=about(primary_id="ark:/12345/new")).deposit()
    assert (done["ark"], done["version"]) == ("ark:/12345/new", 1)


def test_an_update_keeps_the_media_types_of_the_files_that_stay(service: Service) -> None:
    description = about(local_ids=("m",))
    url = service.web.put("/p.tif", b"tif")
    file_payload = payload(PayloadKind.FILE, url, "p.tif", mime_type="image/tiff")
    ark = service.object(payload=file_payload, about=description).deposit()["ark"]
    service.of_file(number=2, about=description, update=True).deposit()
    with service.inventory as inventory:
        types = {file.path: file.mime_type for file in inventory.files(ark, 2)}
    assert types["producer/p.tif"] == "image/tiff"


def test_the_same_deposit_again_makes_no_version_and_says_so(service: Service) -> None:
    description = about(local_ids=("m",), title="Maps")
    first = service.of_file(about=description).deposit()
    again = service.of_file(number=2, about=description)
    ran = again.to("notify")
    assert ran.outcome == "warning"
    assert ran.message == f"nothing changed: {first['ark']} had all of this as version 1; no other was made"
    with service.inventory as inventory:
        assert len(_versions(inventory, first["ark"])) == 1


def test_sent_back_from_its_first_stage_it_makes_a_version_only_of_what_differs(service: Service) -> None:
    deposit = service.of_file(b"map")
    first = deposit.deposit()
    deposit.harness.results.clear()
    # With nothing changed, and with the object lost from the storage,
    assert (deposit.deposit()["ark"], service.storage.versions(first["ark"])[-1].number) == (first["ark"], 1)
    [root] = (p for p in (service.folder / "archive").rglob("0=ocfl_object_1.1"))
    shutil.rmtree(root.parent)
    deposit.harness.results.clear()
    assert (deposit.deposit()["ark"], service.storage.versions(first["ark"])[-1].number) == (first["ark"], 1)
    # and where what is to be fetched is another by now.
    service.web.put("/1/a.txt", b"another map")
    deposit.harness.results.clear()
    assert (deposit.deposit()["version"], service.stored(first["ark"])) == (2, {"a.txt": b"another map"})


def test_sent_back_with_its_earlier_content_it_makes_a_version_of_that_again(service: Service) -> None:
    # Given an object whose content is changed, and changed back, each time sent back,
    deposit = service.of_file(b"A", about=about(local_ids=("m",)))
    ark = deposit.deposit()["ark"]
    for number, content in ((2, b"B"), (3, b"A"), (4, b"B"), (4, b"B")):
        service.web.put("/1/a.txt", content)
        deposit.harness.results.clear()
        done = deposit.deposit()
        # then the newest version has it; and of the same content again none is made.
        assert (done["version"], done["own"], service.stored(ark)) == (number, True, {"a.txt": content})
    # When another deposit has made a version since, it is not taken back.
    service.of_file(b"C", number=2, about=about(local_ids=("m",))).deposit()
    service.web.put("/1/a.txt", b"A")
    deposit.harness.results.clear()
    assert deposit.deposit()["version"] == 3
    assert service.stored(ark) == {"a.txt": b"C"}
    with service.inventory as inventory:
        assert [v.version for v in _versions(inventory, ark)] == [1, 2, 3, 4, 5]


def test_one_that_changed_nothing_takes_no_later_deposit_back_when_it_is_sent_back(service: Service) -> None:
    # Given a deposit of what the object had already, and another one with other content after it,
    description = about(local_ids=("m",))
    ark = service.of_file(b"A", about=description).deposit()["ark"]
    again = service.of_file(b"A", number=2, about=description)
    again.deposit()
    service.of_file(b"B", number=3, about=description).deposit()
    # when the first of them is sent back,
    again.harness.results.clear()
    done = again.deposit()
    # then the other content stays the newest; until it has new content itself.
    assert (done["version"], done["own"], service.stored(ark)) == (1, False, {"a.txt": b"B"})
    service.web.put("/2/a.txt", b"C")
    again.harness.results.clear()
    assert (again.deposit()["version"], service.stored(ark)) == (3, {"a.txt": b"C"})


def test_killed_before_the_result_is_kept_it_makes_that_version_once(service: Service) -> None:
    deposit = service.of_file(b"A")
    for content in (b"A", b"B", b"A"):
        service.web.put("/1/a.txt", content)
        deposit.harness.results.clear()
        deposit.deposit()
    deposit.harness.results.clear()
    deposit.to("downloading")
    assert deposit.run("processing").value["version"] == 3


def _copied_object(service: Service) -> Callable[[], None]:
    """Copy the only object of the archive; returns a function that puts the copy in place of it."""
    [root] = (path.parent for path in (service.folder / "archive").rglob("0=ocfl_object_1.1"))
    copy = shutil.copytree(root, service.folder / "copy")

    def restore() -> None:
        shutil.rmtree(root)
        copy.rename(root)

    return restore


def test_a_version_that_the_storage_has_lost_is_made_again_by_what_made_it_and_by_nothing_else(
    service: Service,
) -> None:
    # Given an object whose second version is lost, since the archive's disk was restored from an older copy;
    description = about(local_ids=("m",))
    ark = service.of_file(b"1", about=description).deposit()["ark"]
    restore = _copied_object(service)
    second = service.of_file(b"2", number=2, about=description)
    second.deposit()
    restore()
    # when other content is deposited to it, or the content of the version that is left,
    for number, content in ((3, b"3"), (4, b"1")):
        refused = service.of_file(content, number=number, about=description).to("processing")
        # then that is refused,
        assert not failure(refused).retryable
        assert refused.message == (
            f"the inventory has version 2 of {ark}, and the storage has only version 1; restore the object there from "
            f"a newer copy, or requeue {second.order['jid']} of {BID}, which made version 2, and then requeue this one"
        )
    service.web.put("/2/a.txt", b"another")
    second.harness.results.clear()
    assert second.to("processing").message == (
        f"the inventory has version 2 of {ark}, and the storage has only version 1; restore the object there from a "
        f"newer copy (this object made version 2, with other files, descriptions or local ids than now), and then "
        f"requeue this one"
    )
    assert len(service.storage.versions(ark)) == 1
    # and the deposit that made the version makes it again, with the same content.
    service.web.put("/2/a.txt", b"2")
    (second.folder / "payload/a.txt").unlink()
    second.harness.results.clear()
    assert second.deposit()["version"] == 2
    assert service.stored(ark) == {"a.txt": b"2"}


def test_an_update_that_the_storage_has_lost_is_made_again_as_it_was(service: Service) -> None:
    # Given an update that took over the title, and a later one that gave another, both lost from the storage,
    ark = service.of_file(b"1", about=about(title="Old")).deposit()["ark"]
    restore = _copied_object(service)
    second = service.of_file(b"2", number=2, name="b.txt", update=True, about=about(primary_id=ark))
    second.deposit()
    changes = about(primary_id=ark, title="New")
    third = service.of_file(b"3", number=3, name="c.txt", update=True, about=changes)
    third.deposit()
    restore()
    # when they are requeued, then they make the same versions again.
    for number, lost, title in ((2, second, "Old"), (3, third, "New")):
        lost.harness.results.clear()
        result = lost.deposit()
        assert (result["version"], result["what"]) == (number, title)
    assert set(service.stored(ark)) == {"a.txt", "b.txt", "c.txt"}


def test_what_was_stored_before_it_was_sent_back_is_recorded_then(service: Service) -> None:
    # Given a version that was stored, and not recorded; when the same comes again, packed anew,
    deposit = service.of_container(zipped({"a": b"1"}))
    first = deposit.to("processing").value
    service.web.put("/1/a.zip", zipped({"a": b"1"}))
    (deposit.folder / "payload/a.zip").unlink()
    deposit.deposit("recording")
    # then it is recorded once.
    with service.inventory as inventory:
        assert [v.version for v in _versions(inventory, first["ark"])] == [1]


def test_what_was_stored_by_somebody_who_was_cancelled_then_is_recorded_with_the_same_again(
    service: Service,
) -> None:
    # Given an object that was stored, and ended before it was recorded;
    description = about(local_ids=("m",), title="Maps")
    first = service.of_file(about=description, submitter="Ann <ann@example.org>")
    ark = first.deposit("processing")["ark"]
    # when the same is deposited again,
    again = service.of_file(number=2, about=description, submitter="bob")
    assert again.to("notify").message.startswith(f"nothing changed: {ark} had all of this as version 1")
    # then the inventory has the version, as of who brought it, who may also go on.
    with service.inventory as inventory:
        [version] = _versions(inventory, ark)
    assert (version.job_id, version.submitter) == (first.order["jid"], "Ann <ann@example.org>")
    assert first.run("recording").outcome == "ok"


def test_it_is_recorded_as_it_was_stored_whatever_the_profile_says_by_then(service: Service) -> None:
    deposit = service.of_file()
    done = deposit.to("processing").value
    service.write(storage={"main": {"url": "archive"}, "other": {"url": "other"}})
    service.profile(storage="other", owner="somebody")
    assert deposit.run("recording").outcome == "ok"
    with service.inventory as inventory:
        record = inventory.object(done["ark"])
    assert record is not None
    assert (record.owner, record.versions[0].storage) == ("maps", "main")


def test_an_object_stays_in_its_storage_when_a_profile_with_another_one_updates_it(service: Service) -> None:
    first = service.of_files({"a": b"1"}, about=about(local_ids=("m",))).deposit()
    with_another_storage(service)

    for number, name in ((2, "b"), (3, "c")):
        update = service.of_files({name: b"2"}, number, update=True, about=about(local_ids=("m",)))
        update.deposit()

    assert sorted(service.stored(first["ark"])) == ["a", "b", "c"]
    with service.inventory as inventory:
        versions = [(v.version, v.storage) for v in _versions(inventory, first["ark"])]
    assert versions == [(1, "main"), (2, "main"), (3, "main")]


def test_a_new_object_is_in_the_storage_of_its_profile(service: Service) -> None:
    service.of_file(b"1").deposit()
    with_another_storage(service)
    done = service.of_file(b"2", 2).deposit()
    with service.inventory as inventory:
        assert [(v.version, v.storage) for v in _versions(inventory, done["ark"])] == [(1, "other")]


def test_an_object_waits_where_the_settings_have_its_storage_no_longer(service: Service) -> None:
    service.of_file(b"1", about=about(local_ids=("m",))).deposit()
    service.write(storage={"other": {"url": "other"}})
    service.prepare()
    again = service.of_file(b"2", 2, about=about(local_ids=("m",))).to("processing")
    assert again.outcome == "defer"
    assert again.message == (
        "the settings have no storage 'main', where objects are kept; add it to the settings again"
    )


def with_another_storage(service: Service) -> None:
    """Add a storage, and name it in the profile."""
    service.write(storage={"main": {"url": "archive"}, "other": {"url": "other", "algorithm": "sha256"}})
    service.prepare()
    service.profile(storage="other")


# --- descriptions -----------------------------------------------------------------------------

ERC = b"erc:\nwho: Ann\nwhat: Old maps\nwhen: 1850\nwhere: shelf 7\n"


def test_the_depositors_own_erc_speaks_where_the_order_is_silent(service: Service) -> None:
    done = service.of_files({"mrt-erc.txt": ERC, "a": b"1"}, about=about(creator="Bea")).deposit()
    assert (done["who"], done["what"], done["when"], done["local_ids"]) == (
        "Bea",
        "Old maps",
        "1850",
        ["shelf 7"],
    )
    assert service.stored(done["ark"])["mrt-erc.txt"] == ERC
    assert b"who: Bea\nwhat: Old maps\n" in service.stored(done["ark"], below="system")["mrt-erc.txt"]


def test_an_update_keeps_the_description_that_it_does_not_give(service: Service) -> None:
    # Given an object with a description,
    description = about(local_ids=("m",), title="A map of the world", creator="Ann", date="1912")
    ark = service.of_file(b"1", about=description).deposit()["ark"]
    # when an update gives none, another a part, and the first one is sent back,
    bare = service.of_file(b"2", number=2, name="b.txt", update=True, about=about(primary_id=ark))
    bare.deposit()
    changes = about(primary_id=ark, title="Old", local_ids=("n",))
    service.of_file(b"3", number=3, name="c.txt", update=True, about=changes).deposit()
    bare.harness.results.clear()
    again = bare.deposit()
    # then what was not given stays, in the inventory and in the object.
    with service.inventory as inventory:
        described = [(v.who, v.what, v.when) for v in _versions(inventory, ark)]
    assert described == [("Ann", "A map of the world", "1912")] * 2 + [("Ann", "Old", "1912")]
    assert (
        service.stored(ark, below="system")["mrt-erc.txt"]
        == f"erc:\nwho: Ann\nwhat: Old\nwhen: 1912\nwhere: {ark}\nwhere: n\nwhere: m\n".encode()
    )
    assert (again["version"], again["what"]) == (2, "A map of the world")
    # A deposit of the whole object describes it anew.
    service.of_file(b"4", number=4, about=about(primary_id=ark)).deposit()
    with service.inventory as inventory:
        assert (_versions(inventory, ark)[-1].what, _versions(inventory, ark)[-1].who) == ("a.txt", None)


def test_an_update_that_is_recorded_after_a_later_one_has_the_title_with_which_it_was_stored(
    service: Service,
) -> None:
    # Given an update that was stored, and not recorded before another one gave the object another title,
    ark = service.of_file(b"1", about=about(title="Old")).deposit()["ark"]
    update = service.of_file(b"2", number=2, name="b.txt", update=True, about=about(primary_id=ark))
    assert update.to("processing").outcome == "ok"
    changes = about(primary_id=ark, title="New")
    service.of_file(b"3", number=3, name="c.txt", update=True, about=changes).deposit()
    # when it is requeued from its storing, and recorded,
    del update.harness.results["processing"]
    assert update.to("recording", "processing").outcome == "ok"
    # then the inventory has the title that the object has.
    with service.inventory as inventory:
        assert [version.what for version in _versions(inventory, ark)] == ["Old", "Old", "New"]
    assert b"what: Old\n" in service.stored(ark, 2, below="system")["mrt-erc.txt"]


@pytest.mark.parametrize(
    ("erc", "sentence"),
    [
        (b"erc:\nwhat: a%00b\n", "the title 'a\\x00b' contains a NUL; remove it"),
        (b"erc:\nwhat: \xff\n", "'mrt-erc.txt' is not UTF-8"),
        (b"erc:\nwhere: ark:/1234\nwhat: x\n", "is no ARK"),
        (b"erc:\nwhere: " + b"x" * 1001 + b"\n", "longer than 1000 bytes"),
        (b"x" * ((1 << 20) + 1), "is longer than 1048576 bytes"),
    ],
)
def test_an_erc_that_could_not_be_recorded_stops_it_before_anything_is_stored(
    service: Service, erc: bytes, sentence: str
) -> None:
    refused = service.of_files({"mrt-erc.txt": erc}).to("processing")
    assert refused.outcome == "error"
    assert sentence in refused.message
    assert not any((service.folder / "archive").rglob("inventory.json"))


def test_hostile_text_is_harmless_in_the_descriptions(service: Service) -> None:
    description = about(
        title='</dc:title><!ENTITY x SYSTEM "file:///etc/passwd">\x1b[2J', creator="a\nwhere: ark:/1/forged"
    )
    done = service.of_file(about=description).deposit()
    written = service.stored(done["ark"], below="system")
    record = written["mrt-dc.xml"]
    assert b"&lt;/dc:title&gt;" in record
    assert b"\x1b" not in record
    assert b"\nwhere: ark:/1/forged" not in written["mrt-erc.txt"]


# --- containers -------------------------------------------------------------------------------


def test_all_files_of_a_container_get_the_profiles_digest(service: Service) -> None:
    service.profile(digest="md5")
    done = service.of_container(zipped({"a.txt": b"1"})).deposit()
    with service.inventory as inventory:
        by_path = {file.path: set(file.digests) for file in inventory.files(done["ark"], 1)}
    assert by_path["producer/a.txt"] == {"md5", "sha256", "sha512"}


def test_a_mended_container_of_the_same_size_is_what_is_stored(service: Service) -> None:
    deposit = service.of_container(zipped({"a.txt": b"bad!"}))
    deposit.to("processing")
    # When it is mended after it was unpacked and stored, and fetched again,
    service.web.put("/1/a.zip", zipped({"a.txt": b"good"}))
    (deposit.folder / "payload/a.zip").unlink()
    deposit.run("downloading")
    done = deposit.run("processing").value
    # then nothing of the old one stands in its way.
    assert done["version"] == 2
    assert service.stored(done["ark"]) == {"a.txt": b"good"}


def test_what_was_unpacked_is_not_unpacked_again_for_a_lock(service: Service) -> None:
    deposit = service.of_container(zipped({"a.txt": b"1"}))
    deposit.to("processing")
    unpacked = deposit.folder / "content-1/a.txt"
    before = unpacked.stat().st_ino
    deposit.run("processing")
    assert unpacked.stat().st_ino == before


def test_what_was_unpacked_before_the_machine_was_started_again_is_not_trusted(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    deposit = service.of_container(zipped({"a.txt": b"1"}))
    deposit.to("processing")
    (deposit.folder / "content-1/a.txt").write_bytes(b"")
    monkeypatch.setattr("spinney.apps.ingest.objects.unpacked_content.boot_id", lambda: "another")
    assert deposit.run("processing").outcome == "ok"
    assert (deposit.folder / "content-1/a.txt").read_bytes() == b"1"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (zipped({"../../x": b"1"}), "container 'a.zip': member '../../x'"),
        (zipped({"/etc/cron.d/x": b"1"}), "container 'a.zip': member '/etc/cron.d/x'"),
        (zipped({"a": b"1", "a/b": b"2"}), "'a' is a file too"),
        (zipped({}), "container 'a.zip': it holds no file"),
        (b"no zip at all", "container 'a.zip'"),
    ],
    ids=["above", "absolute", "clash", "empty", "none"],  # not of the content, which bears the time
)
def test_a_hostile_container_is_refused_and_nothing_of_it_stays(
    service: Service, content: bytes, sentence: str
) -> None:
    deposit = service.of_container(content)
    refused = deposit.to("processing")
    assert not failure(refused).retryable
    assert sentence in refused.message
    assert _names(deposit) <= {"payload", "payload.fetching", "wanted.jsonl", "fetched.jsonl", "content-1"}
    assert not any((deposit.folder / "content-1").glob("*"))


def test_a_bomb_stops_where_the_settings_say(service: Service) -> None:
    service.write(working={"limit": 1.0, "warning": 1.0, "unpacked_bytes": 1000})
    bomb = tarred([("a", b"\0" * 5000)])
    refused = service.of_container(bomb, name="a.tar.gz").to("processing")
    assert "it unpacks to more than 1000 bytes" in refused.message


def _names(deposit: Deposit) -> set[str]:
    return {path.name for path in Path(deposit.folder).iterdir()}


def test_an_object_that_is_new_asks_the_engine_for_little(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each question is a turn of the supervisor, and each write a commit."""
    deposit = service.of_files({"a.txt": b"a"})
    deposit.to("downloading")
    urls: list[str] = []
    looked: list[str] = []
    real = StageHarness.ask
    monkeypatch.setattr(identities, "require_same_owner", lambda *args: looked.append(args[-1]))
    monkeypatch.setattr(
        StageHarness, "ask", lambda self, verb, **args: (urls.append(verb), real(self, verb, **args))[1]
    )

    assert deposit.run("processing").outcome == "ok"

    assert urls == ["get_data", "put_data", "take_lock"]
    assert looked == []  # whose it is, for nobody has anything under an ARK that was just minted
    assert not (deposit.folder / "system").exists()
    assert not (deposit.folder / "manifest").exists()


def test_the_owner_of_an_object_costs_no_other_look_into_the_storage(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given an object whose ARK was given, and which is not in the inventory,
    deposit = service.of_file(about=about(primary_id="ark:/12345/x"))
    deposit.to("downloading")
    read: list[str] = []
    versions = Storage.versions

    def counted(self: Storage, ark: str) -> list[storage.Version]:
        read.append(ark)
        return versions(self, ark)

    monkeypatch.setattr(Storage, "versions", counted)
    # when it is processed, then its versions are read once.
    assert deposit.run("processing").outcome == "ok"
    assert read == ["ark:/12345/x"]
