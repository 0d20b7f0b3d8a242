"""What a signal is called by whoever exports it, as PromQL in base units.

Three spellings of a GPU's signals: dcgm-exporter's (``DCGM_FI_…``), the older gpu-monitoring-tools' (``dcgm_…``),
and our own agents'. A GPU that both exporters and an agent report is taken from the agent.
"""

from collections.abc import Sequence
from dataclasses import dataclass

OWN_UP = "flopwatch_gpu_up"
OWN_INFO = "flopwatch_gpu_info"
OWN_JOB = "flopwatch_job_gpu_info"
WHOLE_GPU = 'GPU_I_PROFILE=""'
"""dcgm-exporter repeats a GPU's values on each of its MIG instances, and an instance's ratio is of the instance."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Signal:
    """One signal of a GPU: DCGM's names in the order they are preferred, and the agent's."""

    dcgm: tuple[str, ...]
    own: str
    scale: float = 1.0
    """DCGM's unit in the base unit."""
    most: float = 1e15
    """DCGM's values above are blanks (0x7FFFFFFFFFFFFFF0 and up), or impossible."""
    fallback: tuple[str, ...] = ()
    """Ratios that stand in for a GPU of which ``dcgm`` is not there."""
    own_counter: bool = False
    """The agent's is a counter, DCGM's a rate."""


KERNEL = Signal(
    dcgm=("DCGM_FI_DEV_GPU_UTIL", "dcgm_gpu_utilization"),
    own="hw_gpu_utilization_ratio",
    scale=0.01,
    most=100.0,
    fallback=("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "dcgm_fi_prof_gr_engine_active"),
)
TENSOR = Signal(
    dcgm=("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "dcgm_fi_prof_pipe_tensor_active"),
    own="flopwatch_gpu_tensor_active_ratio",
    most=1.0,
)
SM_CLOCK = Signal(
    dcgm=("DCGM_FI_DEV_SM_CLOCK", "dcgm_sm_clock"), own="flopwatch_gpu_sm_clock_hertz", scale=1e6, most=1e5
)
POWER = Signal(
    dcgm=("DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_POWER_USAGE_INSTANT", "dcgm_power_usage"),
    own="hw_power_watts",
    most=1e4,
)
TEMPERATURE = Signal(dcgm=("DCGM_FI_DEV_GPU_TEMP", "dcgm_gpu_temp"), own="hw_temperature_celsius", most=1e3)
MEMORY_USED = Signal(
    dcgm=("DCGM_FI_DEV_FB_USED", "dcgm_fb_used"), own="hw_gpu_memory_usage_bytes", scale=2.0**20
)
MEMORY_FREE = Signal(dcgm=("DCGM_FI_DEV_FB_FREE", "dcgm_fb_free"), own="", scale=2.0**20)
NVLINK_SENT = Signal(
    dcgm=("DCGM_FI_PROF_NVLINK_TX_BYTES", "dcgm_fi_prof_nvlink_tx_bytes"),
    own="flopwatch_gpu_nvlink_transmit_bytes_total",
    own_counter=True,
)
NVLINK_RECEIVED = Signal(
    dcgm=("DCGM_FI_PROF_NVLINK_RX_BYTES", "dcgm_fi_prof_nvlink_rx_bytes"),
    own="flopwatch_gpu_nvlink_receive_bytes_total",
    own_counter=True,
)
PRESENT = (
    "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_GPU_UTIL", "dcgm_gpu_temp", "dcgm_gpu_utilization",
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
)  # fmt: skip
"""Any of them shows that a GPU is there."""
NODE_LABELS = ("Hostname", "kubernetes_node", "node", "instance")
"""Best first; of ``instance`` the port is left out."""
GPU_LABELS = ("gpu_uuid", "UUID", "uuid")
MODEL_LABELS = ("modelName", "name")
POD_LABELS = (("exported_pod", "exported_namespace"), ("pod", "namespace"), ("pod_name", "pod_namespace"))
"""Best first: where a scrape gives its own pod's name, the exporter's label is renamed to ``exported_…``."""
AGENT_JOB_LABELS = ("job_id", "scheduler", "user", "account")
JOB_LABELS = ("hpc_job", *AGENT_JOB_LABELS, *(label for pair in POD_LABELS for label in pair), *MODEL_LABELS)
"""What names a job, and the model of its GPUs."""
SIGNALS = (
    KERNEL,
    TENSOR,
    SM_CLOCK,
    POWER,
    TEMPERATURE,
    MEMORY_USED,
    MEMORY_FREE,
    NVLINK_SENT,
    NVLINK_RECEIVED,
)
NAMES: tuple[str, ...] = tuple(
    dict.fromkeys((
        *PRESENT, OWN_UP, OWN_JOB, "flopwatch_job_step", "kube_pod_owner", "kube_pod_labels", "ALERTS",
        *(name for signal in SIGNALS for name in (*signal.dcgm, *signal.fallback)),
    ))
)  # fmt: skip
"""What is looked for before anything is asked."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Scope:
    """Which GPUs: all, those of a cluster, those of a job."""

    cluster: str | None = None
    dcgm: tuple[str, ...] = ()
    """Label matchers of DCGM's series; several are alternatives. None: all, unless it is a job of an agent."""
    own_job: str | None = None
    """The agents' id of the job."""

    @property
    def is_job(self) -> bool:
        """Whether one job is meant."""
        return bool(self.dcgm) or self.own_job is not None


@dataclass(frozen=True, kw_only=True, slots=True)
class Dialect:
    """Expressions over what a server has."""

    present: frozenset[str]
    """Those of ``NAMES`` that have series."""
    cluster_label: str = "cluster"

    @property
    def own(self) -> bool:
        """Whether agents of ours are scraped."""
        return OWN_UP in self.present

    def gpus(self, signal: Signal, scope: Scope, window: str = "5m") -> str | None:
        """One series a GPU, in base units, without a name; None where nothing exports the signal."""
        parts = [self.own_gpus(signal, scope, window), self.dcgm_gpus(signal, scope)]
        known = [part for part in parts if part is not None]
        return f"({' or '.join(known)})" if known else None

    def dcgm_gpus(self, signal: Signal, scope: Scope) -> str | None:
        """The same of DCGM's series only, with all labels that the exporter gives."""
        names = [(name, signal.scale, signal.most) for name in signal.dcgm if name in self.present]
        names += [(name, 1.0, 1.0) for name in signal.fallback if name in self.present]
        if not names or scope.own_job is not None:
            return None
        parts = [
            f"({name}{{{self._matchers(scope, WHOLE_GPU, matcher)}}} <= {most:g}) * {scale:.17g}"
            for matcher in scope.dcgm or ("",)
            for name, scale, most in names
        ]
        return self._not_own(f"({' or '.join(parts)})")

    def own_gpus(self, signal: Signal, scope: Scope, window: str = "5m") -> str | None:
        """The same of our agents' series only."""
        if not self.own or not signal.own or scope.dcgm:
            return None
        selector = f"{signal.own}{{{self._matchers(scope)}}}"
        value = f"rate({selector}[{window}])" if signal.own_counter else f"{selector} * 1"
        whole = f'(({value}) and on (gpu_uuid, instance) {OWN_INFO}{{mig_profile=""}})'
        if scope.own_job is None:
            return whole
        return f"({whole} and on (gpu_uuid, instance) {OWN_JOB}{{job_id={quoted(scope.own_job)}}})"

    def present_gpus(self, scope: Scope, over: str | None = None) -> str | None:
        """One series for everything that is there, or was within ``over``; names of GPU and node are labels."""
        parts = []
        if self.own:
            selector = f"{OWN_UP}{{{self._matchers(scope)}}}"
            up = f"last_over_time({selector}[{over}])" if over else f"({selector} == 1)"
            parts.append(f"({up} * 1)")
        names = [name for name in PRESENT if name in self.present]
        selectors = [f"{name}{{{self._matchers(scope)}}}" for name in names]
        seen = [f"last_over_time({each}[{over}]) * 0" if over else f"{each} * 0" for each in selectors]
        if seen:
            parts.append(self._not_own(f"({' or '.join(seen)})"))
        return f"({' or '.join(parts)})" if parts else None

    def newest(self, scope: Scope) -> str | None:
        """When the newest sample was, in epoch seconds."""
        names = [name for name in (OWN_UP, *PRESENT) if name in self.present]
        parts = [f"timestamp({name}{{{self._matchers(scope)}}})" for name in names]
        return f"max({' or '.join(parts)})" if parts else None

    def by_job(
        self, operator: str, signals: Sequence[Signal], scope: Scope, more: Sequence[str]
    ) -> str | None:
        """The product of the signals over each job's GPUs, grouped by everything that may name a job."""
        labels = ", ".join((self.cluster_label, *more))
        dcgm = _product([self.dcgm_gpus(signal, scope) for signal in signals])
        own = _product([self.own_gpus(signal, scope) for signal in signals])
        parts = []
        if own is not None and OWN_JOB in self.present:
            jobs = self.once(OWN_JOB, (*NODE_LABELS[1:], *AGENT_JOB_LABELS))
            named = f"({jobs} * on (gpu_uuid, instance) group_left (name) {_MODELS})"
            joined = f"{named} * on (gpu_uuid, instance) group_left () {_one_each(own)}"
            parts.append(f"{operator} by ({labels}) ({joined})")
        if dcgm is not None:
            parts.append(f"{operator} by ({labels}) ({self.once(dcgm, more)})")
        return " or ".join(parts) or None

    def product(self, signals: Sequence[Signal], scope: Scope) -> str | None:
        """The product of signals of each GPU, with the model's name as ``modelName`` or ``name``."""
        dcgm = _product([self.dcgm_gpus(signal, scope) for signal in signals])
        own = _product([self.own_gpus(signal, scope) for signal in signals])
        if own is not None:
            own = f"({_one_each(own)} * on (gpu_uuid, instance) group_left (name) {_MODELS})"
        known = [part for part in (own, dcgm) if part is not None]
        return f"({' or '.join(known)})" if known else None

    def once(self, expression: str, labels: Sequence[str] = ()) -> str:
        """One series of each GPU, however often it is scraped, with these labels and the cluster's.

        Where the node has a name, that takes the place of the address, which another scrape may spell otherwise.
        """
        if NODE_LABELS[0] in labels:
            for label in reversed(NODE_LABELS[:-1]):
                expression = f'label_replace({expression}, "instance", "$1", "{label}", "(.+)")'
        return f"max by ({', '.join((self.cluster_label, *GPU_LABELS, *labels))}) ({expression})"

    def _not_own(self, expression: str) -> str:
        """Without the GPUs that an agent of ours reports."""
        if not self.own:
            return expression
        named = f'label_replace({expression}, "gpu_uuid", "$1", "uuid", "(.+)")'
        return f'(label_replace({named}, "gpu_uuid", "$1", "UUID", "(.+)") unless on (gpu_uuid) {OWN_UP})'

    def _matchers(self, scope: Scope, *more: str) -> str:
        cluster = () if scope.cluster is None else (f"{self.cluster_label}={quoted(scope.cluster)}",)
        return ",".join(part for part in (*cluster, *more) if part)


_MODELS = f"max by (gpu_uuid, instance, name) ({OWN_INFO})"


def _one_each(own: str) -> str:
    """An agent's series of a GPU as one, so that others can be matched with it."""
    return f"max by (gpu_uuid, instance) ({own})"


def _product(parts: Sequence[str | None]) -> str | None:
    known = [part for part in parts if part is not None]
    return f"({' * '.join(known)})" if len(known) == len(parts) else None


def quoted(text: str) -> str:
    """A label's value as PromQL writes it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
