"""The worked day of 16 GPUs as its two nodes would have sent it."""

from tests.integration.accounting.recorded import NodeTape, batches, lease, phase, session, sighting, steps

from flopwatch.wire import Batch, RunFacts

DAY = 86_400.0
STEP_FLOPS = 3.16608e16
TOKENS = 4_194_304
EXPECTED = {
    "MAINT": 57_600, "FAULT": 57_600, "UNKNOWN": 14_400, "SPARE": 34_200, "FREE": 732_840, "HELD_EMPTY": 28_800,
    "HELD_IDLE": 25_200, "BUSY_OPAQUE": 262_800, "STARTUP": 4_800, "RECOVERY": 4_800, "CKPT": 1_440, "EVAL": 2_400,
    "DATA_WAIT": 0, "HANG": 5_120, "GAP": 0, "LOST": 16_000, "STEP": 134_400,
}  # fmt: skip
HOT = {"kernel_active_ratio": 1.0, "process_count": 1, "power_watts": 650.0}
EMPTY = {"kernel_active_ratio": 0.0, "process_count": 0, "power_watts": 70.0}


def node_a(interval: float = 60.0) -> NodeTape:
    """Eight GPUs of one training job that hangs, is restarted, and ends."""
    tape = NodeTape("a", interval=interval)
    sighting(
        tape, "J1", (0, 21_120), world_size=8, user="ada", kind="pretrain",
        run=(
            RunFacts(
                source="log", origin="test", flops_per_token=STEP_FLOPS / TOKENS, tokens_per_step=TOKENS,
                world_size=8, dtype="bf16",
            ),
        ),
    )  # fmt: skip
    lease(tape, "J1", tape.uuids(), (0, 21_120))
    session(tape, "J1", 0, 0, 14_160, exit_reason="killed")
    session(tape, "J1", 1, 14_160, 21_120, exit_reason="completed", resumed_from_step=1080)
    steps(tape, "J1", (1, 540, 600))
    phase(tape, "J1", "checkpoint", (6000, 6060), step=540)
    steps(tape, "J1", (541, 1080, 6060))
    phase(tape, "J1", "checkpoint", (11_460, 11_520), step=1080)
    steps(tape, "J1", (1081, 1280, 11_520))
    steps(tape, "J1", (1081, 1480, 14_760), session=1)
    phase(tape, "J1", "eval", (18_760, 19_060), session=1)
    steps(tape, "J1", (1481, 1680, 19_060), session=1)
    phase(tape, "J1", "checkpoint", (21_060, 21_120), session=1, step=1680)
    tape.event(50_000, "drain", "begin")
    tape.event(57_200, "drain", "end")
    tape.sample(None, 0, 13_500, job="J1", **HOT)
    tape.sample(None, 13_500, 14_160, job="J1", **{**HOT, "power_watts": 120.0})
    tape.sample(None, 14_160, 21_120, job="J1", **HOT)
    tape.sample(None, 21_120, DAY, **EMPTY)
    return tape


def node_b(interval: float = 60.0) -> NodeTape:
    """Eight GPUs of users that report no steps; a spare, a silence, maintenance."""
    tape = NodeTape("b", interval=interval)
    work = {"kernel_active_ratio": 0.7, "process_count": 1}
    for ref, gpus, end, user in (
        ("K0", (0,), 28_800, "bob"),
        ("K1", (1,), 28_800, "bob"),
        ("K2", tuple(range(2, 8)), 43_200, "eve"),
    ):
        sighting(tape, ref, (0, end), user=user)
        lease(tape, ref, tape.uuids(*gpus), (0, end))
    tape.sample([0], 0, 3600, job="K0", **work)
    tape.sample([0], 3600, 28_800, job="K0", **{**work, "kernel_active_ratio": 0.0})
    tape.sample([1], 0, 28_800, **EMPTY)
    tape.sample(range(2, 8), 0, 43_200, job="K2", **work)
    for index in range(8):
        tape.sample([index], 28_800 if index < 2 else 43_200, 60_000, **EMPTY)
    tape.sample(None, 61_800, DAY, **EMPTY)
    tape.event(43_200, "spare", "begin", gpu=7)
    tape.event(79_200, "maintenance", "begin")
    return tape


def worked_day(interval: float = 60.0) -> list[Batch]:
    """All batches of the day, node by node."""
    return [*batches(node_a(interval), DAY), *batches(node_b(interval), DAY)]
