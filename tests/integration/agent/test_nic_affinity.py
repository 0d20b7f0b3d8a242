"""How near GPUs and NICs are, from trees with the links that sysfs has."""

from pathlib import Path

from tests.integration.agent.kernel_files import write

from flopwatch.wire import GpuDevice
from flopwatch_agent.nic_affinity import affinities
from flopwatch_agent.sysfs import KernelTree

GPU = GpuDevice(uuid="GPU-a", slot="0000:1b:00.0", name="H100")


def function(root: Path, path: str, numa: int, nic: str = "") -> None:
    """A PCI function below ``devices``, with its link in ``bus/pci/devices``, and an RDMA device on it."""
    address = path.rsplit("/", 1)[-1]
    write(root, f"devices/{path}/numa_node", str(numa))
    links = root / "bus/pci/devices"
    links.mkdir(parents=True, exist_ok=True)
    (links / address).symlink_to(f"../../../devices/{path}")
    if nic:
        folder = root / "class/infiniband"
        folder.mkdir(parents=True, exist_ok=True)
        (root / f"devices/{path}/infiniband/{nic}").mkdir(parents=True)
        (folder / nic).symlink_to(f"../../devices/{path}/infiniband/{nic}")


def relations(root: Path) -> dict[str, str]:
    return {item.device: item.relation for item in affinities(KernelTree(root), (GPU,))}


def test_the_deepest_bridge_that_two_functions_share_decides(tmp_path: Path) -> None:
    up = "pci0000:15/0000:15:01.0/0000:16:00.0"
    function(tmp_path, f"{up}/0000:17:00.0/0000:1b:00.0", 0)
    function(tmp_path, f"{up}/0000:17:01.0/0000:1c:00.0", 0, "same_switch")
    function(
        tmp_path, "pci0000:15/0000:15:01.0/0000:16:01.0/0000:18:00.0/0000:19:00.0/0000:1e:00.0", 0, "switches"
    )
    function(tmp_path, "pci0000:15/0000:15:02.0/0000:1f:00.0", 0, "same_root")
    function(tmp_path, "pci0000:37/0000:37:01.0/0000:38:00.0", 0, "same_node")
    function(tmp_path, "pci0002:00/0002:00:01.0/0002:01:00.0", 1, "far")
    (tmp_path / "class/infiniband/rxe0").symlink_to("../../devices/virtual/infiniband/rxe0")

    assert relations(tmp_path) == {
        "same_switch": "switch", "switches": "switches", "same_root": "root_complex", "same_node": "numa_node",
        "far": "system",
    }  # fmt: skip


def test_the_flat_tree_of_a_virtual_machine_is_unknown_and_never_guessed(tmp_path: Path) -> None:
    function(tmp_path, "pci0000:00/0000:1b:00.0", -1)
    function(tmp_path, "pci0000:00/0000:1c:00.0", -1, "mlx5_0")

    assert relations(tmp_path) == {"mlx5_0": "unknown"}
