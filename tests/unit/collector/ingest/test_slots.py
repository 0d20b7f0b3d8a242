from tests.integration.collector.batches import NOW, MemoryControl, batch, device, sample

from flopwatch import wire
from flopwatch_collector.ingest.directory import Directory
from flopwatch_collector.model import Gpu


def directory() -> Directory:
    return Directory(MemoryControl(), lambda: NOW)


def take(fleet: Directory, *batches: wire.Batch) -> None:
    for each in batches:
        fleet.resolve(each, each.sampled_at_seconds)


def gpus(fleet: Directory) -> list[Gpu]:
    return sorted(fleet.state().gpus.values(), key=lambda gpu: gpu.number)


def tenures(fleet: Directory) -> list[tuple[str, float, float | None]]:
    return [
        (gpu.uuid, gpu.from_seconds - NOW, gpu.to_seconds and gpu.to_seconds - NOW) for gpu in gpus(fleet)
    ]


def test_a_new_uuid_in_a_slot_retires_the_old_one() -> None:
    fleet = directory()

    take(fleet, batch(gpus=(device("A"),)), batch(at=NOW + 100, gpus=(device("B"),)))

    assert tenures(fleet) == [("A", 0.0, 100.0), ("B", 100.0, None)]


def test_an_inventory_that_arrives_late_does_not_undo_a_replacement() -> None:
    fleet = directory()

    take(
        fleet,
        batch(at=NOW + 100, gpus=(device("B"),)),
        batch(at=NOW, gpus=(device("A"),), gpu_samples=(sample("A", NOW - 50),)),
        batch(at=NOW + 50, gpus=(device("A"),), gpu_samples=(sample("A", NOW + 50),)),
    )

    assert tenures(fleet) == [("B", 100.0, None), ("A", -50.0, 100.0)]


def test_older_samples_of_the_same_card_begin_its_tenure_earlier() -> None:
    fleet = directory()

    take(fleet, batch(gpus=(device("A"),)), batch(at=NOW - 500, gpus=(device("A"),)))

    assert tenures(fleet) == [("A", -500.0, None)]


def test_a_uuid_that_two_nodes_report_is_one_gpu() -> None:
    fleet = directory()
    take(fleet, batch("host", gpus=(device("A"),), gpu_samples=(sample("A"),)))

    other = batch("pod", NOW + 5, gpus=(device("A"),), gpu_samples=(sample("A", NOW + 5),))
    rows = fleet.resolve(other, NOW + 5).rows.gpu

    assert [gpu.uuid for gpu in gpus(fleet)] == ["A"]
    assert len(rows["ts"]) == 0


def test_a_card_moves_to_another_node_once_its_old_one_is_silent() -> None:
    fleet = directory()

    take(fleet, batch("old", gpus=(device("A"),)), batch("new", NOW + 3600, gpus=(device("A"),)))

    assert tenures(fleet) == [("A", 0.0, 3600.0), ("A", 3600.0, None)]
    assert [fleet.state().nodes[gpu.node].name for gpu in gpus(fleet)] == ["old", "new"]


def test_mig_instances_share_a_slot_and_their_parent_is_no_gpu_beside_them() -> None:
    fleet = directory()
    parts = tuple(device(f"MIG-{n}", mig_profile="3g.40gb", mig_parent_uuid="A") for n in (1, 2))

    take(fleet, batch(gpus=(device("A"),)), batch(at=NOW + 10, gpus=(device("A"), *parts)))

    assert tenures(fleet) == [("A", 0.0, 10.0), ("MIG-1", 10.0, None), ("MIG-2", 10.0, None)]


def test_a_slot_the_kernel_lists_and_nothing_reports_is_capacity_that_is_unreadable() -> None:
    fleet = directory()
    facts = wire.NodeFacts(expected_gpus=("0000:1b:00.0", "0000:3d:00.0"), nvml="failed")

    take(fleet, batch(node_facts=facts))

    assert [(gpu.slot, gpu.state, gpu.name) for gpu in gpus(fleet)] == [
        ("0000:1b:00.0", "unreadable", ""),
        ("0000:3d:00.0", "unreadable", ""),
    ]


def test_a_gpu_that_becomes_readable_takes_the_place_of_the_unknown_one() -> None:
    fleet = directory()
    facts = wire.NodeFacts(expected_gpus=("0000:1b:00.0",), nvml="failed")

    take(fleet, batch(node_facts=facts), batch(at=NOW + 60, gpus=(device("A", "00000000:1B:00.0"),)))

    assert [(gpu.uuid, gpu.to_seconds) for gpu in gpus(fleet)] == [
        ("unread:node1:0000:1b:00.0", NOW + 60),
        ("A", None),
    ]


def test_a_gpu_missing_from_the_inventory_is_lost_and_keeps_its_slot() -> None:
    fleet = directory()
    both = (device("A"), device("B", "0000:3d:00.0"))

    take(fleet, batch(gpus=both), batch(at=NOW + 60, gpus=both[:1]))

    assert [(gpu.uuid, gpu.state, gpu.to_seconds) for gpu in gpus(fleet)] == [
        ("A", "ok", None),
        ("B", "lost", None),
    ]


def test_a_lost_gpu_that_comes_back_is_the_same_tenure() -> None:
    fleet = directory()
    both = (device("A"), device("B", "0000:3d:00.0"))

    take(fleet, batch(gpus=both), batch(at=NOW + 60, gpus=both[:1]), batch(at=NOW + 120, gpus=both))

    assert [(gpu.uuid, gpu.state) for gpu in gpus(fleet)] == [("A", "ok"), ("B", "ok")]


def test_a_sample_without_inventory_is_kept_and_finds_its_slot_later() -> None:
    fleet = directory()

    first = fleet.resolve(batch(gpu_samples=(sample("A"),)), NOW).rows.gpu
    take(fleet, batch(at=NOW + 10, gpus=(device("A"),)))

    assert first["gpu"].tolist() == [1]
    assert [(gpu.number, gpu.slot, gpu.name) for gpu in gpus(fleet)] == [
        (1, "0000:1b:00.0", "NVIDIA H100 80GB HBM3")
    ]


def test_a_gpu_that_only_a_lease_or_an_event_names_is_no_capacity() -> None:
    fleet = directory()
    lease = wire.Lease(lease_id="1", job="j", gpus=("X",), source="prolog", start_seconds=NOW)
    event = wire.Event(time_seconds=NOW, kind="xid", gpu="Y", code=79)

    rows = fleet.resolve(batch(leases=(lease,), events=(event,)), NOW).rows.event

    assert gpus(fleet) == []
    assert rows["gpu"].tolist() == [0]


def test_samples_of_a_retired_card_or_a_mig_parent_are_left_out() -> None:
    fleet = directory()
    part = device("MIG-1", mig_profile="3g.40gb", mig_parent_uuid="A")
    take(fleet, batch(gpus=(device("A"),)), batch(at=NOW + 10, gpus=(device("A"), part)))

    mixed = batch(at=NOW + 20, gpu_samples=(sample("A", NOW + 20), sample("MIG-1", NOW + 20)))
    rows = fleet.resolve(mixed, NOW + 20).rows.gpu

    assert rows["gpu"].tolist() == [2]
    assert len(gpus(fleet)) == 2


def test_a_sample_of_1970_does_not_begin_capacity_there() -> None:
    fleet = directory()

    take(fleet, batch(gpus=(device("A"),), gpu_samples=(sample("A", 5.0), sample("A", NOW))))

    assert gpus(fleet)[0].from_seconds == NOW - 400 * 86_400


def test_numbers_and_tenures_survive_a_restart() -> None:
    control = MemoryControl()
    before = Directory(control, lambda: NOW)
    take(before, batch(gpus=(device("A"), device("B", "0000:3d:00.0"))), batch("node2", gpus=(device("C"),)))
    control.save_all(before.take_documents())

    after = Directory(control, lambda: NOW)
    take(after, batch("node2", NOW + 9, gpus=(device("C"),)), batch("node3", NOW + 9, gpus=(device("D"),)))

    assert [(gpu.number, gpu.uuid, gpu.node) for gpu in gpus(after)] == [
        (1, "A", 1),
        (2, "B", 1),
        (3, "C", 2),
        (4, "D", 3),
    ]
