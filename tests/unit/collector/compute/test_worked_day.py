"""The worked example: every bucket, every ratio, every dollar."""

from tests.unit.collector.compute.worked_day import worked_day

EXPECTED = {
    "STEP": 134_400, "LOST": 16_000, "HANG": 5_120, "RECOVERY": 4_800, "STARTUP": 4_800, "CKPT": 1_440, "EVAL": 2_400,
    "BUSY_OPAQUE": 262_800, "HELD_IDLE": 25_200, "HELD_EMPTY": 28_800, "SPARE": 34_200, "FREE": 732_840,
    "FAULT": 57_600, "MAINT": 57_600, "UNKNOWN": 14_400,
}  # fmt: skip


def test_every_bucket_of_the_worked_day_has_its_seconds():
    assert worked_day().totals() == EXPECTED
