"""The one table of metrics that the collector exports of fleet, jobs and alerts: at ``/metrics`` and by remote write.

Labels that describe a job stand on ``flopwatch_job_info`` only: join by ``cluster`` and ``job_id``. What is unknown
has no series. Metrics in ``WINDOW`` are of one closed five-minute window each, stamped with its end.
"""

from flopwatch.metrics import Metric, gauge

CLUSTER = ("cluster",)
JOB = ("cluster", "job_id")
BUCKET = ("cluster", "ledger_class", "bucket", "reason")

NODES = gauge("flopwatch_fleet_nodes", "Nodes that have reported.", CLUSTER)
GPUS = gauge("flopwatch_fleet_gpus", "GPU slots that are known.", CLUSTER)
GPUS_REPORTING = gauge("flopwatch_fleet_gpus_reporting", "GPU slots whose newest sample is fresh.", CLUSTER)
BILLABLE = gauge(
    "flopwatch_fleet_billable_ratio",
    "U_bill of today so far: leased, known and not idle, over capacity.",
    CLUSTER,
)
BILLABLE_UPPER = gauge(
    "flopwatch_fleet_billable_upper_ratio", "The same with unknown time counted as billable.", CLUSTER
)
ALLOCATED = gauge("flopwatch_fleet_allocated_ratio", "Leased over capacity, today so far.", CLUSTER)
UNKNOWN = gauge("flopwatch_fleet_unknown_ratio", "Unknown time over capacity, today so far.", CLUSTER)
MEAN_30_DAYS = gauge("flopwatch_fleet_billable_30d_ratio", "Mean U_bill of the last 30 days.", CLUSTER)
BREAKEVEN = gauge("flopwatch_fleet_breakeven_ratio", "Utilisation at which owning beats renting.", CLUSTER)
VERDICT = gauge(
    "flopwatch_fleet_verdict", "1 for where the fleet stands against the breakeven, 0 for the others.",
    ("cluster", "verdict"),
)  # fmt: skip
FLEET_MFU = gauge("flopwatch_fleet_mfu_ratio", "Fleet training MFU over the last hour.", CLUSTER)
FLEET_MFU_COVERAGE = gauge(
    "flopwatch_fleet_mfu_coverage_ratio", "Share of leased GPU time whose job has an MFU.", CLUSTER
)
FLEET_MFU_TARGET = gauge(
    "flopwatch_fleet_mfu_target_ratio", "Targets of running jobs, weighted by their GPUs.", CLUSTER
)
LEDGER = gauge("flopwatch_fleet_gpu_seconds", "GPU time of today so far, by class and bucket.", BUCKET)
WASTE = gauge("flopwatch_fleet_waste_gpu_seconds", "GPU time wasted today so far.", CLUSTER)
WASTE_MONEY = gauge("flopwatch_fleet_waste_money", "What it cost.", ("cluster", "currency"))

JOB_INFO = gauge(
    "flopwatch_job_info", "A job that has not ended, and who runs it.",
    ("cluster", "job_id", "name", "user", "account", "kind", "scheduler", "scheduler_job_id", "gpu_model"),
)  # fmt: skip
JOB_STATE = gauge("flopwatch_job_state", "1 for the state the job is in.", ("cluster", "job_id", "state"))
JOB_GPUS = gauge(
    "flopwatch_job_gpus", "GPUs of the job: its world size, else its lease, else those seen.", JOB
)
JOB_GPUS_OBSERVED = gauge("flopwatch_job_gpus_observed", "GPUs of the job that an agent sees.", JOB)
JOB_NODES = gauge("flopwatch_job_nodes", "Nodes of the job that an agent sees.", JOB)
JOB_MFU = gauge(
    "flopwatch_job_mfu_ratio", "Step MFU over the newest steady steps, and what it was made from.",
    ("cluster", "job_id", "basis", "convention"),
)  # fmt: skip
JOB_HARDWARE = gauge(
    "flopwatch_job_hardware_utilization_ratio",
    "Of a job without an MFU: tensor activity x SM clock / clock of the peak. An estimate, no MFU.", JOB,
)  # fmt: skip
JOB_WALL_MFU = gauge("flopwatch_job_wall_mfu_ratio", "Wall MFU over the last 24 hours.", JOB)
JOB_TARGET = gauge("flopwatch_job_mfu_target_ratio", "The job's MFU target.", JOB)
JOB_KERNEL = gauge("flopwatch_job_kernel_active_ratio", "Mean kernel activity of its GPUs.", JOB)
JOB_TENSOR = gauge("flopwatch_job_tensor_active_ratio", "Mean tensor activity of its GPUs.", JOB)
JOB_TOKENS = gauge("flopwatch_job_tokens_per_second", "Tokens trained per second in steady steps.", JOB)
JOB_LAST_STEP = gauge("flopwatch_job_last_step", "Newest optimizer step.", JOB)
JOB_LAST_STEP_TIME = gauge("flopwatch_job_last_step_timestamp_seconds", "When the newest step ended.", JOB)
JOB_WASTE = gauge("flopwatch_job_waste_gpu_seconds", "GPU time the job wasted in the last 24 hours.", JOB)
JOB_NORM = gauge("flopwatch_job_norm_mfu_ratio", "Median MFU of other runs of its size, GPU and format.", JOB)
JOB_LAUNCHES = gauge("flopwatch_job_recent_launches", "Launches within the last half hour.", JOB)
JOB_STUCK_LAUNCHES = gauge(
    "flopwatch_job_launches_without_checkpoint",
    "Newest launches that went on from one and the same step.",
    JOB,
)
JOB_SAVE = gauge("flopwatch_job_checkpoint_seconds", "The shortest of its newest three blocking saves.", JOB)
JOB_USUAL_SAVE = gauge(
    "flopwatch_job_checkpoint_usual_seconds", "Median of its blocking saves before those.", JOB
)
JOB_SAVE_SHARE = gauge("flopwatch_job_checkpoint_ratio", "Share of its time in blocking saves.", JOB)
JOB_SPIKES = gauge(
    "flopwatch_job_step_spike_ratio", "Share of its newest 200 steps that take far longer than usual.", JOB
)
JOB_USED = gauge("flopwatch_job_used_gpu_seconds", "GPU time it has held since it began.", JOB)
JOB_IDLE = gauge("flopwatch_job_idle_gpu_seconds", "GPU time of it that was held without work.", JOB)
JOB_DECLARED = gauge("flopwatch_job_declared_gpu_seconds", "GPU time that was declared for it.", JOB)
BUDGET_USED = gauge("flopwatch_budget_used_ratio", "Share of a budget used in its period.", ("budget",))
BUDGET_FORECAST = gauge(
    "flopwatch_budget_forecast_ratio",
    "Share of a budget that will be used by the end of its period.",
    ("budget",),
)
BUDGET_STATE = gauge(
    "flopwatch_budget_state",
    "1 for where the budget stands: ok, warning, critical, unknown.",
    ("budget", "state"),
)
ALERT = gauge(
    "flopwatch_alert_active", "Alerts that are pending, firing or clearing, or whose data are missing.",
    ("alertname", "alertstate", "severity", "cluster", "job_id", "node"),
)  # fmt: skip
READ = gauge(
    "flopwatch_fleet_readable",
    "1 when fleet, jobs and alerts could be read for this scrape; 0 leaves them out.",
)

NOW: tuple[Metric, ...] = (
    NODES, GPUS, GPUS_REPORTING, BILLABLE, BILLABLE_UPPER, ALLOCATED, UNKNOWN, MEAN_30_DAYS, BREAKEVEN, VERDICT,
    FLEET_MFU, FLEET_MFU_COVERAGE, FLEET_MFU_TARGET, LEDGER, WASTE, WASTE_MONEY, JOB_INFO, JOB_STATE, JOB_GPUS,
    JOB_GPUS_OBSERVED, JOB_NODES, JOB_MFU, JOB_HARDWARE, JOB_WALL_MFU, JOB_TARGET, JOB_KERNEL, JOB_TENSOR,
    JOB_TOKENS, JOB_LAST_STEP, JOB_LAST_STEP_TIME, JOB_WASTE, JOB_NORM, JOB_LAUNCHES, JOB_STUCK_LAUNCHES, JOB_SAVE,
    JOB_USUAL_SAVE, JOB_SAVE_SHARE, JOB_SPIKES, JOB_USED, JOB_IDLE, JOB_DECLARED, BUDGET_USED, BUDGET_FORECAST,
    BUDGET_STATE, ALERT, READ,
)  # fmt: skip
"""What is true now."""

WINDOW_LEDGER = gauge(
    "flopwatch_fleet_window_gpu_seconds", "GPU time of a window, by class and bucket.", BUCKET
)
WINDOW_JOB_GPU = gauge("flopwatch_job_window_gpu_seconds", "GPU time the job held in a window.", JOB)
WINDOW_JOB_WASTE = gauge(
    "flopwatch_job_window_waste_gpu_seconds", "GPU time the job wasted in a window.", JOB
)
WINDOW_JOB_MFU = gauge(
    "flopwatch_job_window_mfu_ratio", "Kept FLOPs over what the held GPUs could have done in a window.", JOB
)
WINDOW_JOB_KERNEL = gauge(
    "flopwatch_job_window_kernel_active_ratio", "Mean kernel activity of its GPUs in a window.", JOB
)
WINDOW_JOB_TENSOR = gauge(
    "flopwatch_job_window_tensor_active_ratio", "Mean tensor activity of its GPUs in a window.", JOB
)
WINDOW: tuple[Metric, ...] = (
    WINDOW_LEDGER, WINDOW_JOB_GPU, WINDOW_JOB_WASTE, WINDOW_JOB_MFU, WINDOW_JOB_KERNEL, WINDOW_JOB_TENSOR,
)  # fmt: skip
"""Closed windows; by remote write only, because a scrape has no time of its own."""

REMOTE_WRITE_SENT = Metric(
    name="flopwatch_remote_write_samples_total", kind="counter", help="Samples that a receiver took.",
    labels=("receiver",),
)  # fmt: skip
REMOTE_WRITE_DROPPED = Metric(
    name="flopwatch_remote_write_dropped_samples_total", kind="counter",
    help="Samples given up: refused for good, or the queue was full.", labels=("receiver", "reason"),
)  # fmt: skip
REMOTE_WRITE_FAILED = Metric(
    name="flopwatch_remote_write_failed_attempts_total", kind="counter", help="Attempts that are tried again.",
    labels=("receiver",),
)  # fmt: skip
REMOTE_WRITE_WAITING = gauge(
    "flopwatch_remote_write_waiting_requests", "Requests that wait for the receiver.", ("receiver",)
)
REMOTE_WRITE: tuple[Metric, ...] = (
    REMOTE_WRITE_SENT, REMOTE_WRITE_DROPPED, REMOTE_WRITE_FAILED, REMOTE_WRITE_WAITING,
)  # fmt: skip
"""How the receivers of remote write fare."""

ALL: tuple[Metric, ...] = (*NOW, *WINDOW, *REMOTE_WRITE)
