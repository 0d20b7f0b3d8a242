"""Text as exporters give it, at addresses of a test: dcgm-exporter of several versions and sites, and others."""

H100, A100 = "NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB"
BLANK = "9223372036854775794"
"""DCGM's blank of 64 bits."""


def line(name: str, value: object, /, **labels: str) -> str:
    told = ",".join(f'{key}="{text}"' for key, text in labels.items())
    return f"{name}{{{told}}} {value}"


def kubernetes_node(host: str, pod: str, gpus: range) -> str:
    """dcgm-exporter 3.x in Kubernetes: two GPUs of one pod are busy, DCGM has no tensor figure of a third, idle one."""
    lines = []
    for gpu in gpus:
        labels = {
            "gpu": str(gpu), "UUID": f"GPU-{host}-{gpu}", "pci_bus_id": f"00000000:{gpu:02X}:00.0",
            "device": f"nvidia{gpu}", "modelName": H100, "Hostname": host, "DCGM_FI_DRIVER_VERSION": "535.104.05",
        }  # fmt: skip
        used = {**labels, "container": "main", "namespace": "nlp", "pod": pod} if gpu < 2 else labels
        lines += [
            line("DCGM_FI_DEV_GPU_UTIL", 90 + gpu * 10 if gpu < 2 else 0, **used),
            line("DCGM_FI_DEV_SM_CLOCK", 1647 if gpu < 2 else 345, **used),
            line("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", (0.4, 0.6)[gpu] if gpu < 2 else BLANK, **used),
            line("DCGM_FI_DEV_POWER_USAGE", 600.0 if gpu < 2 else 70.0, **used),
            line("DCGM_FI_DEV_FB_USED", 60_000, **used),
            line("DCGM_FI_DEV_FB_FREE", 20_000, **used),
            line("DCGM_FI_PROF_NVLINK_TX_BYTES", 1_000_000, **used),
            line("DCGM_FI_PROF_NVLINK_RX_BYTES", 2_000_000, **used),
            line("DCGM_FI_DEV_GPU_TEMP", 60, **used),
        ]
    return "\n".join(lines) + "\n"


def slurm_node(host: str, job: str) -> str:
    """dcgm-exporter 3.3 with its HPC directory: one A100 of a Slurm job; a MIG GPU beside it."""
    whole = {"gpu": "0", "UUID": f"GPU-{host}-0", "device": "nvidia0", "modelName": A100, "Hostname": host}
    own = {**whole, "hpc_job": job}
    mig = {**whole, "gpu": "1", "UUID": f"GPU-{host}-1", "device": "nvidia1"}
    instance = {**mig, "GPU_I_PROFILE": "1g.10gb", "GPU_I_ID": "7"}
    lines = [
        line("DCGM_FI_DEV_GPU_UTIL", 50, **own),
        line("DCGM_FI_DEV_SM_CLOCK", 705, **own),
        line("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 0.5, **own),
        line("DCGM_FI_DEV_POWER_USAGE", 200, **own),
        line("DCGM_FI_DEV_GPU_TEMP", 50, **own),
        line("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 1.0, **instance),
        line("DCGM_FI_DEV_GPU_TEMP", 50, **instance),
    ]
    return "\n".join(lines) + "\n"


def old_node() -> str:
    """gpu-monitoring-tools' exporter of 2019: no model, no host, lower case."""
    lines = [
        line("dcgm_gpu_utilization", 20, gpu="0", uuid="GPU-old-0"),
        line("dcgm_gpu_temp", 40, gpu="0", uuid="GPU-old-0"),
    ]
    return "\n".join(lines) + "\n"


def cluster_state(pods: dict[str, str], since: float) -> str:
    """kube-state-metrics and an alert, as Prometheus keeps it."""
    alert = {"alertname": "GpuHot", "severity": "page", "node": "node-a"}
    lines = [
        *(
            line(
                "kube_pod_owner", 1, namespace="nlp", pod=pod, owner_kind="PyTorchJob", owner_name=owner,
                owner_is_controller="true",
            )
            for pod, owner in pods.items()
        ),
        line("ALERTS", 1, alertstate="firing", **alert),
        line("ALERTS_FOR_STATE", since, **alert),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"
