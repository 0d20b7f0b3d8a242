"""A ``Query`` whose answers never change."""

from collections.abc import Mapping

from flopwatch import query
from flopwatch.answers.economy import no_economy
from flopwatch.answers.nodes import GpuColumns, GpuRow, NodeRow
from flopwatch_collector.config_costs import CostSettings, OwnCosts
from flopwatch_collector.economics.overrides import overridden

STATUS = query.Status(
    version="0", now_seconds=1000.0, data_time_seconds=995.0, generation=3, simulated=False, time_zone="UTC",
    currency="EUR", price_per_gpu_hour=2.0, price_is_example=False,
    clusters=(query.ClusterInfo(name="c1", nodes=1, gpus=8, gpus_reporting=8),),
)  # fmt: skip
LEDGER = query.Ledger(
    start_seconds=0.0, end_seconds=1000.0, provisional_from_seconds=None, capacity_gpu_milliseconds=8_000_000,
    classes=tuple(
        query.ClassAmount(
            name=name,
            gpu_milliseconds=6_000_000 if name == "productive" else 2_000_000 if name == "stalled" else 0,
            money=3.0 if name == "productive" else 1.0 if name == "stalled" else 0.0,
            buckets={"HANG": 1_500_000, "LOST:preempted": 500_000} if name == "stalled" else {},
        )
        for name in query.LEDGER_CLASSES
    ),
    waste_gpu_milliseconds=2_000_000, waste_money=1.0, billable_ratio=1.0, billable_upper_ratio=1.0,
    allocated_ratio=1.0, unknown_ratio=0.0,
)  # fmt: skip
FIGURE = query.MfuFigure(
    value_ratio=0.41, palm_ratio=0.42, convention="causal", basis="steps+shape", reason=None, flops_per_token=1e10,
    palm_flops_per_token=1.1e10, tokens_per_second=1e5, gpus=8, gpus_basis="world_size", gpus_observed=8,
    gpu_model="NVIDIA H100 80GB HBM3", peak_flops=9.89e14, peak_source="datasheet", dtype="bf16", dtype_basis="log",
    shape_origin="argument block", steps=10, window_start_seconds=900.0, window_end_seconds=1000.0,
)  # fmt: skip
ROW = query.JobRow(
    job_id="77-abcdef01", name='=HYPERLINK("http://x")', cluster="c1", user="ada", account=None, kind="pretrain",
    state="running", scheduler="slurm", scheduler_job_id="77", waiting_for=None, gpus=8, gpus_basis="world_size",
    gpus_observed=8, nodes=1, gpu_model="NVIDIA H100 80GB HBM3", mfu=FIGURE, wall_mfu_ratio=0.4,
    target=query.Target(ratio=0.45, source="job"), kernel_active_ratio=0.9, tensor_active_ratio=0.5,
    trend=(None, 0.4), start_seconds=10.0, end_seconds=None, last_step=10, last_step_seconds=990.0,
    waste_gpu_milliseconds=5000, waste_money=None, waste_by_class={}, cause=None, findings=0, trainer="Megatron-LM",
)  # fmt: skip
TILE = query.Tile(value=1.0, reference=None, spark=())
NO_SERIES = query.Series(level="raw", step_seconds=10.0, time_seconds=(), columns={})
DAY = query.Day(
    day="2026-11-30",
    billable_ratio=0.8,
    unknown_ratio=0.0,
    capacity_gpu_milliseconds=8_000_000,
    complete=False,
    valid=True,
)
VERDICT = query.Verdict(
    code="insufficient_data", line_ratio=0.7, line_source="default", mean_30d_ratio=None, valid_days=0, days_above=0,
    days_total=1, sustained=False, days_in_state=0, cost_at_mean=None, cost_at_line=None,
)  # fmt: skip


JOB = query.JobRef(job_id="77-abcdef01", name='=HYPERLINK("http://x")')
NODE = NodeRow(
    node="n1", cluster="c1", rack="r1", gpu_model="NVIDIA H100 80GB HBM3", gpus=1, gpus_reporting=1,
    last_seen_seconds=995.0, health="warning", problems=("throttled",), declared=("drain",),
)  # fmt: skip
GPUS = GpuColumns(
    node=(0,), index=(0,), bucket=(0,), health=(1,), job=(0,), reporting=(True,),
    values={"kernel_active_ratio": (0.9,), "power_watts": (None,)},
)  # fmt: skip
GPU = GpuRow(
    uuid="GPU-1", node="n1", slot="0000:1b:00.0", index=0, model="NVIDIA H100 80GB HBM3", state="ok", reason=None,
    bucket="STEP", job=JOB, health="warning", problems=("throttled",), reporting=True, sample_seconds=995.0,
    values={"kernel_active_ratio": 0.9, "power_watts": None}, throttles=("hw_thermal",),
)  # fmt: skip


class StaticQuery:
    """Remembers what was asked."""

    def __init__(self, status: query.Status = STATUS) -> None:
        self._status = status
        self.asked: list[query.Range] = []

    def status(self) -> query.Status:
        return self._status

    def fleet(self, asked: query.Range) -> query.Fleet:
        self.asked.append(asked)
        return query.Fleet(
            status=self._status, range_seconds=asked.seconds, verdict=VERDICT, utilisation=TILE, mfu=TILE,
            mfu_coverage_ratio=None, waste=TILE, waste_money=TILE, waste_money_per_day=None, alerts_by_severity={},
            ledger_today=LEDGER, days=(DAY,), series=NO_SERIES, mfu_target_ratio=None, top_jobs=(ROW,), alerts=(),
        )  # fmt: skip

    def jobs(self, asked: query.Range) -> query.Jobs:
        self.asked.append(asked)
        return query.Jobs(status=self._status, range_seconds=asked.seconds, rows=(ROW,))

    def job(self, job_id: str, asked: query.Range) -> query.Job | None:
        self.asked.append(asked)
        if job_id != ROW.job_id:
            return None
        return query.Job(
            status=self._status, range_seconds=asked.seconds, row=ROW, series=NO_SERIES, steps=NO_SERIES,
            step_percentiles={}, ledger=LEDGER, sessions=(), nodes=(), marks=(), strip=(), shape={},
            shape_origin=None, arithmetic=(), findings=(), alerts=(),
        )  # fmt: skip

    def nodes(self, asked: query.Range) -> query.Nodes:
        self.asked.append(asked)
        return query.Nodes(
            status=self._status,
            nodes=(NODE,),
            gpus=GPUS,
            buckets=("STEP",),
            classes=("productive",),
            jobs=(JOB,),
        )

    def node(self, name: str, asked: query.Range) -> query.NodePage | None:
        self.asked.append(asked)
        if name != NODE.node:
            return None
        return query.NodePage(
            status=self._status,
            range_seconds=asked.seconds,
            row=NODE,
            gpus=(GPU,),
            series=NO_SERIES,
            ledger=LEDGER,
        )

    def gpu(self, uuid: str, asked: query.Range) -> query.GpuPage | None:
        self.asked.append(asked)
        if uuid != GPU.uuid:
            return None
        return query.GpuPage(
            status=self._status, range_seconds=asked.seconds, row=GPU, cluster="c1", series=NO_SERIES
        )

    def economy(self, asked: query.Range, overrides: Mapping[str, float]) -> query.Economy:
        self.asked.append(asked)
        overridden(CostSettings(own=OwnCosts(capex_per_gpu=1.0, life_years=1.0)), overrides)
        return no_economy(self._status)

    def alerts(self, asked: query.Range) -> query.Alerts:
        self.asked.append(asked)
        return query.Alerts(status=self._status, active=(), history=())
