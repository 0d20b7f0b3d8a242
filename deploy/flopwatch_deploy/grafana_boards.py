"""The dashboards: fleet, job, node."""

from flopwatch_deploy.grafana_panels import Board, Panel, Variable, graph, ratio, stat

CLUSTER = Variable(name="cluster", query="label_values(flopwatch_fleet_gpus, cluster)")
C = 'cluster=~"$cluster"'
J = 'cluster=~"$cluster", job_id="$job_id"'
A = 'cluster=~"$cluster", job_id="$scheduler_job"'
"""Agents know a job by its scheduler's name."""
N = 'instance=~"$instance"'

FLEET = Board(
    uid="flopwatch-fleet",
    title="flopwatch / Fleet",
    variables=(CLUSTER,),
    panels=(
        stat(
            "Utilisation today (U_bill)",
            f"flopwatch_fleet_billable_ratio{{{C}}}",
            note="Leased, known, not idle",
        ),
        stat("Mean of 30 days", f"flopwatch_fleet_billable_30d_ratio{{{C}}}"),
        stat("Breakeven", f"flopwatch_fleet_breakeven_ratio{{{C}}}"),
        stat("Training MFU, last hour", f"flopwatch_fleet_mfu_ratio{{{C}}}", note="Of instrumented jobs"),
        stat("Wasted today", f"flopwatch_fleet_waste_gpu_seconds{{{C}}} / 3600", "short", "GPU-hours"),
        stat("GPUs reporting", f"flopwatch_fleet_gpus_reporting{{{C}}}", "short"),
        ratio(
            "Kernel activity, tensor activity, MFU",
            (f"cluster:hw_gpu_utilization_ratio:avg{{{C}}}", "kernels active {{cluster}}"),
            (f"cluster:flopwatch_gpu_tensor_active_ratio:avg{{{C}}}", "tensor active {{cluster}}"),
            (f"flopwatch_fleet_mfu_ratio{{{C}}}", "MFU {{cluster}}"),
            (f"flopwatch_fleet_mfu_target_ratio{{{C}}}", "target {{cluster}}"),
        ),
        ratio(
            "Utilisation against the breakeven",
            (f"flopwatch_fleet_billable_ratio{{{C}}}", "today {{cluster}}"),
            (f"flopwatch_fleet_breakeven_ratio{{{C}}}", "breakeven {{cluster}}"),
        ),
        Panel(
            title="Where GPU time went today",
            queries=(
                (f"sum by (ledger_class) (flopwatch_fleet_gpu_seconds{{{C}}}) / 3600", "{{ledger_class}}"),
            ),
            unit="short",
            kind="bargauge",
            note="GPU-hours since midnight",
        ),
        graph(
            "GPU time of closed windows",
            "short",
            (
                f"sum by (ledger_class) (flopwatch_fleet_window_gpu_seconds{{{C}}}) / 300",
                "{{ledger_class}}",
            ),
            stacked=True,
            note="GPUs by class; only where the collector writes remotely",
        ),
        Panel(
            title="Jobs that wasted most, last 24 hours",
            queries=((f"topk(10, flopwatch_job_waste_gpu_seconds{{{C}}} / 3600)", "{{job_id}}"),),
            unit="short",
            kind="bargauge",
            note="GPU-hours",
        ),
        Panel(
            title="Alerts",
            queries=((f"flopwatch_alert_active{{{C}}}", ""),),
            unit="short",
            kind="table",
        ),
        graph("Power", "watt", (f"cluster:hw_power_watts:sum{{{C}}}", "{{cluster}}")),
        ratio("Waste of capacity today", (f"cluster:flopwatch_fleet_waste:ratio{{{C}}}", "{{cluster}}")),
        graph(
            "Runs that restart, save slowly or stutter",
            "short",
            (f"flopwatch_job_recent_launches{{{C}}} > 1", "{{job_id}}: launches in half an hour"),
            (
                f"flopwatch_job_launches_without_checkpoint{{{C}}} > 1",
                "{{job_id}}: launches without a newer checkpoint",
            ),
        ),
        ratio(
            "Steps far longer than usual, time in checkpoints",
            (f"topk(10, flopwatch_job_step_spike_ratio{{{C}}} > 0.01)", "{{job_id}}: long steps"),
            (f"topk(10, flopwatch_job_checkpoint_ratio{{{C}}} > 0.01)", "{{job_id}}: checkpoints"),
        ),
        graph(
            "Budgets",
            "percentunit",
            ("flopwatch_budget_used_ratio", "{{budget}}: used"),
            ("flopwatch_budget_forecast_ratio", "{{budget}}: by the period's end"),
            note="1 is all of it",
        ),
        ratio(
            "Share of leased GPU time in steps, today",
            (f"cluster:flopwatch_fleet_steps:ratio{{{C}}}", "{{cluster}}"),
            note="Goodput of all leased GPUs: jobs that report no steps count as none",
        ),
        graph(
            "Collectors on duty",
            "short",
            ("flopwatch_collector_on_duty", "{{instance}}"),
            ("sum(flopwatch_collector_on_duty)", "all: 1 is right"),
            note="Of several collectors one does the periodic work",
        ),
        graph(
            "Age of the collectors' periodic work",
            "s",
            (
                "flopwatch_collector_periodic_age_seconds and on (instance) (flopwatch_collector_on_duty == 1)",
                "{{instance}} {{task}}",
            ),
        ),
    ),
)
JOB = Board(
    uid="flopwatch-job",
    title="flopwatch / Job",
    variables=(
        CLUSTER,
        Variable(name="job_id", query=f"label_values(flopwatch_job_gpus{{{C}}}, job_id)", multi=False),
        Variable(
            name="scheduler_job",
            query=f"label_values(flopwatch_job_info{{{J}}}, scheduler_job_id)",
            multi=False,
        ),
    ),
    panels=(
        stat("Step MFU", f"max by (job_id) (flopwatch_job_mfu_ratio{{{J}}})"),
        stat("Wall MFU", f"flopwatch_job_wall_mfu_ratio{{{J}}}"),
        stat("Target", f"flopwatch_job_mfu_target_ratio{{{J}}}"),
        stat("GPUs", f"flopwatch_job_gpus{{{J}}}", "short"),
        stat("Tokens per second", f"flopwatch_job_tokens_per_second{{{J}}}", "short"),
        stat("Wasted, 24 hours", f"flopwatch_job_waste_gpu_seconds{{{J}}} / 3600", "short", "GPU-hours"),
        ratio(
            "MFU",
            (f"flopwatch_job_mfu_ratio{{{J}}}", "step MFU, {{basis}}"),
            (f"flopwatch_job_hardware_utilization_ratio{{{J}}}", "hardware estimate, no MFU"),
            (f"flopwatch_job_wall_mfu_ratio{{{J}}}", "wall MFU"),
            (f"flopwatch_job_mfu_target_ratio{{{J}}}", "target"),
        ),
        ratio(
            "Kernel and tensor activity",
            (f"flopwatch_job_kernel_active_ratio{{{J}}}", "kernels active"),
            (f"flopwatch_job_tensor_active_ratio{{{J}}}", "tensor active"),
        ),
        graph("Newest step", "short", (f"flopwatch_job_last_step{{{J}}}", "step"), width=8),
        graph(
            "Time since the newest step",
            "s",
            (f"time() - flopwatch_job_last_step_timestamp_seconds{{{J}}}", "age"),
            width=8,
        ),
        graph("State", "short", (f"flopwatch_job_state{{{J}}}", "{{state}}"), width=8),
        Panel(
            title="Who", queries=((f"flopwatch_job_info{{{J}}}", ""),), unit="short", kind="table", width=24
        ),
        graph(
            "Launches in half an hour, and without a newer checkpoint",
            "short",
            (f"flopwatch_job_recent_launches{{{J}}}", "launches"),
            (f"flopwatch_job_launches_without_checkpoint{{{J}}}", "without a newer checkpoint"),
            width=8,
        ),
        graph(
            "Blocking checkpoints",
            "s",
            (f"flopwatch_job_checkpoint_seconds{{{J}}}", "shortest of the newest three"),
            (f"flopwatch_job_checkpoint_usual_seconds{{{J}}}", "usual"),
            width=8,
        ),
        ratio(
            "Long steps, time in checkpoints",
            (f"flopwatch_job_step_spike_ratio{{{J}}}", "of the newest 200 steps far longer than usual"),
            (f"flopwatch_job_checkpoint_ratio{{{J}}}", "of its time in checkpoints"),
            width=8,
        ),
        graph(
            "GPU time used, held without work, declared",
            "short",
            (f"flopwatch_job_used_gpu_seconds{{{J}}} / 3600", "used"),
            (f"flopwatch_job_idle_gpu_seconds{{{J}}} / 3600", "held without work"),
            (f"flopwatch_job_declared_gpu_seconds{{{J}}} / 3600", "declared"),
            note="GPU-hours since it began",
        ),
        ratio(
            "MFU against runs like it",
            (f"max by (job_id) (flopwatch_job_mfu_ratio{{{J}}})", "this run"),
            (f"flopwatch_job_norm_mfu_ratio{{{J}}}", "median of others of its size, GPU and format"),
        ),
        graph(
            "Hosts: main thread and busiest data loader",
            "percentunit",
            (f"flopwatch_job_main_thread_ratio{{{A}}}", "{{instance}} main thread"),
            (f"flopwatch_job_loader_busiest_ratio{{{A}}}", "{{instance}} data loader"),
            note="Of one core; a main thread that spins while it waits for the GPU counts as busy",
        ),
        graph(
            "Hosts: CPU of training and of data loaders",
            "short",
            (f"flopwatch_job_training_cpu_cores{{{A}}}", "{{instance}} training"),
            (f"flopwatch_job_loader_cpu_cores{{{A}}}", "{{instance}} data loaders"),
            note="Cores",
        ),
        ratio(
            "Hosts: waiting for storage, and pressure",
            (f"flopwatch_job_io_wait_ratio{{{A}}}", "{{instance}} waits for storage"),
            (f"flopwatch_job_pressure_ratio{{{A}}}", "{{instance}} {{resource}}"),
        ),
        graph(
            "Hosts: pages read from storage",
            "short",
            (f"rate(flopwatch_job_major_faults_total{{{A}}}[5m])", "{{instance}} major faults"),
            (f"rate(flopwatch_job_cache_refaults_total{{{A}}}[5m])", "{{instance}} read again"),
            note="A second",
        ),
        graph(
            "Hosts: storage of the job",
            "Bps",
            (f"rate(flopwatch_job_disk_io_bytes_total{{{A}}}[5m])", "{{instance}} {{direction}}"),
            note="Local disks; storage over the network is not in it",
        ),
        graph(
            "Hosts: memory of the job",
            "bytes",
            (f"flopwatch_job_memory_usage_bytes{{{A}}}", "{{instance}} used"),
            (f"flopwatch_job_memory_limit_bytes{{{A}}}", "{{instance}} limit"),
        ),
    ),
)
NODE = Board(
    uid="flopwatch-node",
    title="flopwatch / Node",
    variables=(Variable(name="instance", query="label_values(flopwatch_agent_info, instance)"),),
    panels=(
        stat("GPUs seen", f"flopwatch_gpus_seen{{{N}}}", "short"),
        stat("GPUs expected", f"flopwatch_gpus_expected{{{N}}}", "short"),
        stat("NVML works", f"flopwatch_nvml_up{{{N}}}", "short"),
        stat("CPU busy", f"flopwatch_node_cpu_busy_ratio{{{N}}}"),
        stat("Memory available", f"flopwatch_node_memory_available_bytes{{{N}}}", "bytes"),
        stat("Batches waiting", f"flopwatch_spool_waiting_batches{{{N}}}", "short"),
        ratio("Kernels active", (f"hw_gpu_utilization_ratio{{{N}}}", "{{gpu_uuid}}")),
        ratio("Tensor active", (f"flopwatch_gpu_tensor_active_ratio{{{N}}}", "{{gpu_uuid}}")),
        graph("Power", "watt", (f"hw_power_watts{{{N}}}", "{{gpu_uuid}}")),
        graph("Temperature", "celsius", (f"hw_temperature_celsius{{{N}}}", "{{gpu_uuid}}")),
        graph("SM clock", "hertz", (f"flopwatch_gpu_sm_clock_hertz{{{N}}}", "{{gpu_uuid}}")),
        ratio(
            "Slowed down by heat or the power brake",
            (f"rate(flopwatch_gpu_throttle_seconds_total{{{N}}}[5m])", "{{gpu_uuid}}"),
        ),
        graph(
            "Memory",
            "percentunit",
            (f"hw_gpu_memory_usage_bytes{{{N}}} / hw_gpu_memory_limit_bytes{{{N}}}", "{{gpu_uuid}}"),
            most=1.0,
        ),
        graph(
            "Network",
            "Bps",
            (f"rate(hw_network_io_bytes_total{{{N}}}[5m])", "{{port}} {{network_io_direction}}"),
        ),
        graph(
            "NVLink",
            "Bps",
            (f"rate(flopwatch_gpu_nvlink_transmit_bytes_total{{{N}}}[5m])", "{{gpu_uuid}} sent"),
            (f"rate(flopwatch_gpu_nvlink_receive_bytes_total{{{N}}}[5m])", "{{gpu_uuid}} received"),
        ),
        Panel(
            title="Jobs on the GPUs",
            queries=((f"flopwatch_job_gpu_info{{{N}}}", ""),),
            unit="short",
            kind="table",
        ),
        graph("Sources that fail", "short", (f"flopwatch_source_success{{{N}}} == 0", "{{source}}")),
        ratio(
            "Pressure: time in which some task waited",
            (f"flopwatch_node_cpu_pressure_ratio{{{N}}}", "for a core"),
            (f"flopwatch_node_memory_pressure_ratio{{{N}}}", "for memory"),
            (f"flopwatch_node_io_pressure_ratio{{{N}}}", "for storage"),
            (f"flopwatch_node_io_wait_ratio{{{N}}}", "CPUs waiting for storage"),
        ),
        graph("Disks", "Bps", (f"rate(flopwatch_node_disk_io_bytes_total{{{N}}}[5m])", "{{direction}}")),
        graph(
            "Jobs: main thread, busiest data loader",
            "percentunit",
            (f"flopwatch_job_main_thread_ratio{{{N}}}", "{{job_id}} main thread"),
            (f"flopwatch_job_loader_busiest_ratio{{{N}}}", "{{job_id}} data loader"),
            note="Of one core",
        ),
        ratio(
            "Jobs: waiting for storage, and pressure",
            (f"flopwatch_job_io_wait_ratio{{{N}}}", "{{job_id}} waits for storage"),
            (f"flopwatch_job_pressure_ratio{{{N}}}", "{{job_id}} {{resource}}"),
        ),
        graph(
            "XIDs, PCIe and NVLink errors",
            "short",
            (f"increase(flopwatch_gpu_xid_errors_total{{{N}}}[5m])", "{{gpu_uuid}} XID {{xid}}"),
            (f"increase(flopwatch_gpu_pcie_errors_total{{{N}}}[5m])", "{{gpu_uuid}} PCIe {{kind}}"),
            (f"increase(flopwatch_gpu_nvlink_errors_total{{{N}}}[5m])", "{{gpu_uuid}} NVLink {{kind}}"),
        ),
        graph(
            "Network errors, waits for credits",
            "short",
            (f"rate(flopwatch_network_errors_total{{{N}}}[5m])", "{{port}} errors"),
            (f"rate(flopwatch_network_transmit_wait_ticks_total{{{N}}}[5m])", "{{port}} waits"),
            note="A second",
        ),
    ),
)
BOARDS: tuple[Board, ...] = (FLEET, JOB, NODE)
