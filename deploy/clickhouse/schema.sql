-- What the collector makes with clickhouse_cluster = "flopwatch" and raw_days = 14; it needs no hand.

CREATE DATABASE IF NOT EXISTS `flopwatch` ON CLUSTER `flopwatch`;

CREATE TABLE IF NOT EXISTS `flopwatch`.`gpu_shard` ON CLUSTER `flopwatch` (
  `ts` DateTime64(6, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
  `gpu` UInt32 CODEC(ZSTD(1)),
  `node` Nullable(UInt32) CODEC(ZSTD(1)),
  `job` UInt32 CODEC(ZSTD(1)),
  `interval_seconds` Nullable(Float64) CODEC(ZSTD(1)),
  `kernel_active_ratio` Nullable(Float64) CODEC(ZSTD(1)),
  `memory_busy_ratio` Nullable(Float64) CODEC(ZSTD(1)),
  `sm_active_ratio` Nullable(Float64) CODEC(ZSTD(1)),
  `sm_occupancy_ratio` Nullable(Float64) CODEC(ZSTD(1)),
  `tensor_active_ratio` Nullable(Float64) CODEC(ZSTD(1)),
  `dram_active_ratio` Nullable(Float64) CODEC(ZSTD(1)),
  `memory_used_bytes` Nullable(Int64) CODEC(ZSTD(1)),
  `power_watts` Nullable(Float64) CODEC(ZSTD(1)),
  `energy_joules` Nullable(Float64) CODEC(ZSTD(1)),
  `temperature_celsius` Nullable(Float64) CODEC(ZSTD(1)),
  `memory_temperature_celsius` Nullable(Float64) CODEC(ZSTD(1)),
  `sm_clock_hertz` Nullable(Float64) CODEC(ZSTD(1)),
  `memory_clock_hertz` Nullable(Float64) CODEC(ZSTD(1)),
  `clock_event_reasons` Nullable(Int64) CODEC(ZSTD(1)),
  `throttle_seconds` Nullable(Float64) CODEC(ZSTD(1)),
  `pcie_transmit_bytes` Nullable(Int64) CODEC(ZSTD(1)),
  `pcie_receive_bytes` Nullable(Int64) CODEC(ZSTD(1)),
  `nvlink_transmit_bytes` Nullable(Int64) CODEC(ZSTD(1)),
  `nvlink_receive_bytes` Nullable(Int64) CODEC(ZSTD(1)),
  `ecc_corrected` Nullable(Int64) CODEC(ZSTD(1)),
  `ecc_uncorrected` Nullable(Int64) CODEC(ZSTD(1)),
  `remapped_rows` Nullable(Int64) CODEC(ZSTD(1)),
  `recovery_action` Nullable(Int64) CODEC(ZSTD(1)),
  `process_count` Nullable(Int64) CODEC(ZSTD(1)),
  `flush` UInt64 CODEC(Delta, ZSTD(1)),
  INDEX by_flush flush TYPE minmax GRANULARITY 4,
  INDEX by_job job TYPE minmax GRANULARITY 4
) ENGINE = ReplicatedMergeTree('/clickhouse/flopwatch/{shard}/gpu', '{replica}')
PARTITION BY toDate(ts)
ORDER BY (gpu, ts)
TTL toDateTime(ts) + toIntervalSecond(1209600)
SETTINGS replicated_deduplication_window = 1000, ttl_only_drop_parts = 1;

CREATE TABLE IF NOT EXISTS `flopwatch`.`gpu` ON CLUSTER `flopwatch` (`ts` DateTime64(6, 'UTC'), `gpu` UInt32, `node` Nullable(UInt32), `job` UInt32, `interval_seconds` Nullable(Float64), `kernel_active_ratio` Nullable(Float64), `memory_busy_ratio` Nullable(Float64), `sm_active_ratio` Nullable(Float64), `sm_occupancy_ratio` Nullable(Float64), `tensor_active_ratio` Nullable(Float64), `dram_active_ratio` Nullable(Float64), `memory_used_bytes` Nullable(Int64), `power_watts` Nullable(Float64), `energy_joules` Nullable(Float64), `temperature_celsius` Nullable(Float64), `memory_temperature_celsius` Nullable(Float64), `sm_clock_hertz` Nullable(Float64), `memory_clock_hertz` Nullable(Float64), `clock_event_reasons` Nullable(Int64), `throttle_seconds` Nullable(Float64), `pcie_transmit_bytes` Nullable(Int64), `pcie_receive_bytes` Nullable(Int64), `nvlink_transmit_bytes` Nullable(Int64), `nvlink_receive_bytes` Nullable(Int64), `ecc_corrected` Nullable(Int64), `ecc_uncorrected` Nullable(Int64), `remapped_rows` Nullable(Int64), `recovery_action` Nullable(Int64), `process_count` Nullable(Int64), `flush` UInt64)
ENGINE = Distributed(`flopwatch`, `flopwatch`, `gpu_shard`, intHash64(node));

CREATE TABLE IF NOT EXISTS `flopwatch`.`node_shard` ON CLUSTER `flopwatch` (
  `ts` DateTime64(6, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
  `node` UInt32 CODEC(ZSTD(1)),
  `cpu_busy_ratio` Nullable(Float64) CODEC(ZSTD(1)),
  `io_wait_ratio` Nullable(Float64) CODEC(ZSTD(1)),
  `memory_available_bytes` Nullable(Int64) CODEC(ZSTD(1)),
  `memory_total_bytes` Nullable(Int64) CODEC(ZSTD(1)),
  `memory_pressure_ratio` Nullable(Float64) CODEC(ZSTD(1)),
  `disk_read_bytes` Nullable(Int64) CODEC(ZSTD(1)),
  `disk_write_bytes` Nullable(Int64) CODEC(ZSTD(1)),
  `cpu_pressure_ratio` Nullable(Float64) CODEC(ZSTD(1)),
  `io_pressure_ratio` Nullable(Float64) CODEC(ZSTD(1)),
  `major_faults` Nullable(Int64) CODEC(ZSTD(1)),
  `cache_refaults` Nullable(Int64) CODEC(ZSTD(1)),
  `flush` UInt64 CODEC(Delta, ZSTD(1)),
  INDEX by_flush flush TYPE minmax GRANULARITY 4
) ENGINE = ReplicatedMergeTree('/clickhouse/flopwatch/{shard}/node', '{replica}')
PARTITION BY toDate(ts)
ORDER BY (node, ts)
TTL toDateTime(ts) + toIntervalSecond(1209600)
SETTINGS replicated_deduplication_window = 1000, ttl_only_drop_parts = 1;

CREATE TABLE IF NOT EXISTS `flopwatch`.`node` ON CLUSTER `flopwatch` (`ts` DateTime64(6, 'UTC'), `node` UInt32, `cpu_busy_ratio` Nullable(Float64), `io_wait_ratio` Nullable(Float64), `memory_available_bytes` Nullable(Int64), `memory_total_bytes` Nullable(Int64), `memory_pressure_ratio` Nullable(Float64), `disk_read_bytes` Nullable(Int64), `disk_write_bytes` Nullable(Int64), `cpu_pressure_ratio` Nullable(Float64), `io_pressure_ratio` Nullable(Float64), `major_faults` Nullable(Int64), `cache_refaults` Nullable(Int64), `flush` UInt64)
ENGINE = Distributed(`flopwatch`, `flopwatch`, `node_shard`, intHash64(node));

ALTER TABLE `flopwatch`.`node_shard` ON CLUSTER `flopwatch` ADD COLUMN IF NOT EXISTS `cpu_pressure_ratio` Nullable(Float64), ADD COLUMN IF NOT EXISTS `io_pressure_ratio` Nullable(Float64), ADD COLUMN IF NOT EXISTS `major_faults` Nullable(Int64), ADD COLUMN IF NOT EXISTS `cache_refaults` Nullable(Int64);

ALTER TABLE `flopwatch`.`node` ON CLUSTER `flopwatch` ADD COLUMN IF NOT EXISTS `cpu_pressure_ratio` Nullable(Float64), ADD COLUMN IF NOT EXISTS `io_pressure_ratio` Nullable(Float64), ADD COLUMN IF NOT EXISTS `major_faults` Nullable(Int64), ADD COLUMN IF NOT EXISTS `cache_refaults` Nullable(Int64);

CREATE TABLE IF NOT EXISTS `flopwatch`.`port_shard` ON CLUSTER `flopwatch` (
  `ts` DateTime64(6, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
  `node` UInt32 CODEC(ZSTD(1)),
  `port` String CODEC(ZSTD(1)),
  `role` Nullable(String) CODEC(ZSTD(1)),
  `transmit_bytes` Nullable(Int64) CODEC(ZSTD(1)),
  `receive_bytes` Nullable(Int64) CODEC(ZSTD(1)),
  `errors` Nullable(Int64) CODEC(ZSTD(1)),
  `waits` Nullable(Int64) CODEC(ZSTD(1)),
  `link_up` Nullable(Int64) CODEC(ZSTD(1)),
  `link_rate_bits_per_second` Nullable(Float64) CODEC(ZSTD(1)),
  `flush` UInt64 CODEC(Delta, ZSTD(1)),
  INDEX by_flush flush TYPE minmax GRANULARITY 4
) ENGINE = ReplicatedMergeTree('/clickhouse/flopwatch/{shard}/port', '{replica}')
PARTITION BY toDate(ts)
ORDER BY (node, port, ts)
TTL toDateTime(ts) + toIntervalSecond(1209600)
SETTINGS replicated_deduplication_window = 1000, ttl_only_drop_parts = 1;

CREATE TABLE IF NOT EXISTS `flopwatch`.`port` ON CLUSTER `flopwatch` (`ts` DateTime64(6, 'UTC'), `node` UInt32, `port` String, `role` Nullable(String), `transmit_bytes` Nullable(Int64), `receive_bytes` Nullable(Int64), `errors` Nullable(Int64), `waits` Nullable(Int64), `link_up` Nullable(Int64), `link_rate_bits_per_second` Nullable(Float64), `flush` UInt64)
ENGINE = Distributed(`flopwatch`, `flopwatch`, `port_shard`, intHash64(node));

CREATE TABLE IF NOT EXISTS `flopwatch`.`step_shard` ON CLUSTER `flopwatch` (
  `ts` DateTime64(6, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
  `job` UInt32 CODEC(ZSTD(1)),
  `node` Nullable(UInt32) CODEC(ZSTD(1)),
  `source` Nullable(Int64) CODEC(ZSTD(1)),
  `launch` Nullable(Int64) CODEC(ZSTD(1)),
  `rank` Nullable(Int64) CODEC(ZSTD(1)),
  `step` Nullable(Int64) CODEC(ZSTD(1)),
  `steps_covered` Nullable(Int64) CODEC(ZSTD(1)),
  `seconds` Nullable(Float64) CODEC(ZSTD(1)),
  `resolution_seconds` Nullable(Float64) CODEC(ZSTD(1)),
  `tokens` Nullable(Float64) CODEC(ZSTD(1)),
  `padded_tokens` Nullable(Float64) CODEC(ZSTD(1)),
  `sum_squared_document_tokens` Nullable(Float64) CODEC(ZSTD(1)),
  `loss` Nullable(Float64) CODEC(ZSTD(1)),
  `skipped_steps` Nullable(Int64) CODEC(ZSTD(1)),
  `steady` Nullable(Int64) CODEC(ZSTD(1)),
  `reported_flops_per_gpu` Nullable(Float64) CODEC(ZSTD(1)),
  `reported_mfu_ratio` Nullable(Float64) CODEC(ZSTD(1)),
  `data_wait_seconds` Nullable(Float64) CODEC(ZSTD(1)),
  `basis` Nullable(Int64) CODEC(ZSTD(1)),
  `flush` UInt64 CODEC(Delta, ZSTD(1)),
  INDEX by_flush flush TYPE minmax GRANULARITY 4
) ENGINE = ReplicatedMergeTree('/clickhouse/flopwatch/{shard}/step', '{replica}')
PARTITION BY toDate(ts)
ORDER BY (job, ts)
TTL toDateTime(ts) + toIntervalSecond(1209600)
SETTINGS replicated_deduplication_window = 1000, ttl_only_drop_parts = 1;

CREATE TABLE IF NOT EXISTS `flopwatch`.`step` ON CLUSTER `flopwatch` (`ts` DateTime64(6, 'UTC'), `job` UInt32, `node` Nullable(UInt32), `source` Nullable(Int64), `launch` Nullable(Int64), `rank` Nullable(Int64), `step` Nullable(Int64), `steps_covered` Nullable(Int64), `seconds` Nullable(Float64), `resolution_seconds` Nullable(Float64), `tokens` Nullable(Float64), `padded_tokens` Nullable(Float64), `sum_squared_document_tokens` Nullable(Float64), `loss` Nullable(Float64), `skipped_steps` Nullable(Int64), `steady` Nullable(Int64), `reported_flops_per_gpu` Nullable(Float64), `reported_mfu_ratio` Nullable(Float64), `data_wait_seconds` Nullable(Float64), `basis` Nullable(Int64), `flush` UInt64)
ENGINE = Distributed(`flopwatch`, `flopwatch`, `step_shard`, intHash64(job));

CREATE TABLE IF NOT EXISTS `flopwatch`.`phase_shard` ON CLUSTER `flopwatch` (
  `ts` DateTime64(6, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
  `end` Nullable(DateTime64(6, 'UTC')) CODEC(DoubleDelta, ZSTD(1)),
  `job` UInt32 CODEC(ZSTD(1)),
  `launch` Nullable(Int64) CODEC(ZSTD(1)),
  `kind` Nullable(Int64) CODEC(ZSTD(1)),
  `step` Nullable(Int64) CODEC(ZSTD(1)),
  `blocking` Nullable(Int64) CODEC(ZSTD(1)),
  `committed` Nullable(Int64) CODEC(ZSTD(1)),
  `flush` UInt64 CODEC(Delta, ZSTD(1)),
  INDEX by_flush flush TYPE minmax GRANULARITY 4
) ENGINE = ReplicatedMergeTree('/clickhouse/flopwatch/{shard}/phase', '{replica}')
PARTITION BY toDate(ts)
ORDER BY (job, ts)
TTL toDateTime(ts) + toIntervalSecond(1209600)
SETTINGS replicated_deduplication_window = 1000, ttl_only_drop_parts = 1;

CREATE TABLE IF NOT EXISTS `flopwatch`.`phase` ON CLUSTER `flopwatch` (`ts` DateTime64(6, 'UTC'), `end` Nullable(DateTime64(6, 'UTC')), `job` UInt32, `launch` Nullable(Int64), `kind` Nullable(Int64), `step` Nullable(Int64), `blocking` Nullable(Int64), `committed` Nullable(Int64), `flush` UInt64)
ENGINE = Distributed(`flopwatch`, `flopwatch`, `phase_shard`, intHash64(job));

CREATE TABLE IF NOT EXISTS `flopwatch`.`event_shard` ON CLUSTER `flopwatch` (
  `ts` DateTime64(6, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
  `kind` Nullable(String) CODEC(ZSTD(1)),
  `node` Nullable(UInt32) CODEC(ZSTD(1)),
  `gpu` Nullable(UInt32) CODEC(ZSTD(1)),
  `code` Nullable(Int64) CODEC(ZSTD(1)),
  `value` Nullable(String) CODEC(ZSTD(1)),
  `text` Nullable(String) CODEC(ZSTD(1)),
  `flush` UInt64 CODEC(Delta, ZSTD(1)),
  INDEX by_flush flush TYPE minmax GRANULARITY 4
) ENGINE = ReplicatedMergeTree('/clickhouse/flopwatch/{shard}/event', '{replica}')
PARTITION BY toDate(ts)
ORDER BY (ts)
TTL toDateTime(ts) + toIntervalSecond(1209600)
SETTINGS replicated_deduplication_window = 1000, ttl_only_drop_parts = 1;

CREATE TABLE IF NOT EXISTS `flopwatch`.`event` ON CLUSTER `flopwatch` (`ts` DateTime64(6, 'UTC'), `kind` Nullable(String), `node` Nullable(UInt32), `gpu` Nullable(UInt32), `code` Nullable(Int64), `value` Nullable(String), `text` Nullable(String), `flush` UInt64)
ENGINE = Distributed(`flopwatch`, `flopwatch`, `event_shard`, intHash64(flush));

CREATE TABLE IF NOT EXISTS `flopwatch`.`host_shard` ON CLUSTER `flopwatch` (
  `ts` DateTime64(6, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
  `node` Nullable(UInt32) CODEC(ZSTD(1)),
  `job` UInt32 CODEC(ZSTD(1)),
  `interval_seconds` Nullable(Float64) CODEC(ZSTD(1)),
  `training_processes` Nullable(Int64) CODEC(ZSTD(1)),
  `main_thread_ratio` Nullable(Float64) CODEC(ZSTD(1)),
  `training_cpu_cores` Nullable(Float64) CODEC(ZSTD(1)),
  `loader_processes` Nullable(Int64) CODEC(ZSTD(1)),
  `loader_cpu_cores` Nullable(Float64) CODEC(ZSTD(1)),
  `loader_busiest_ratio` Nullable(Float64) CODEC(ZSTD(1)),
  `io_wait_ratio` Nullable(Float64) CODEC(ZSTD(1)),
  `cpu_pressure_ratio` Nullable(Float64) CODEC(ZSTD(1)),
  `memory_pressure_ratio` Nullable(Float64) CODEC(ZSTD(1)),
  `io_pressure_ratio` Nullable(Float64) CODEC(ZSTD(1)),
  `memory_used_bytes` Nullable(Int64) CODEC(ZSTD(1)),
  `memory_limit_bytes` Nullable(Int64) CODEC(ZSTD(1)),
  `disk_read_bytes` Nullable(Int64) CODEC(ZSTD(1)),
  `disk_write_bytes` Nullable(Int64) CODEC(ZSTD(1)),
  `major_faults` Nullable(Int64) CODEC(ZSTD(1)),
  `cache_refaults` Nullable(Int64) CODEC(ZSTD(1)),
  `flush` UInt64 CODEC(Delta, ZSTD(1)),
  INDEX by_flush flush TYPE minmax GRANULARITY 4
) ENGINE = ReplicatedMergeTree('/clickhouse/flopwatch/{shard}/host', '{replica}')
PARTITION BY toDate(ts)
ORDER BY (job, ts)
TTL toDateTime(ts) + toIntervalSecond(1209600)
SETTINGS replicated_deduplication_window = 1000, ttl_only_drop_parts = 1;

CREATE TABLE IF NOT EXISTS `flopwatch`.`host` ON CLUSTER `flopwatch` (`ts` DateTime64(6, 'UTC'), `node` Nullable(UInt32), `job` UInt32, `interval_seconds` Nullable(Float64), `training_processes` Nullable(Int64), `main_thread_ratio` Nullable(Float64), `training_cpu_cores` Nullable(Float64), `loader_processes` Nullable(Int64), `loader_cpu_cores` Nullable(Float64), `loader_busiest_ratio` Nullable(Float64), `io_wait_ratio` Nullable(Float64), `cpu_pressure_ratio` Nullable(Float64), `memory_pressure_ratio` Nullable(Float64), `io_pressure_ratio` Nullable(Float64), `memory_used_bytes` Nullable(Int64), `memory_limit_bytes` Nullable(Int64), `disk_read_bytes` Nullable(Int64), `disk_write_bytes` Nullable(Int64), `major_faults` Nullable(Int64), `cache_refaults` Nullable(Int64), `flush` UInt64)
ENGINE = Distributed(`flopwatch`, `flopwatch`, `host_shard`, intHash64(job));

CREATE TABLE IF NOT EXISTS `flopwatch`.`job5m` ON CLUSTER `flopwatch` (
  ts DateTime64(6, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
  revision UInt64 CODEC(Delta, ZSTD(1))
) ENGINE = ReplicatedMergeTree('/clickhouse/flopwatch/all/job5m', '{shard}-{replica}')
PARTITION BY toYYYYMM(ts)
ORDER BY (ts, revision)
SETTINGS replicated_deduplication_window = 1000;

CREATE TABLE IF NOT EXISTS `flopwatch`.`job1h` ON CLUSTER `flopwatch` (
  ts DateTime64(6, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
  revision UInt64 CODEC(Delta, ZSTD(1))
) ENGINE = ReplicatedMergeTree('/clickhouse/flopwatch/all/job1h', '{shard}-{replica}')
PARTITION BY toYYYYMM(ts)
ORDER BY (ts, revision)
SETTINGS replicated_deduplication_window = 1000;

CREATE TABLE IF NOT EXISTS `flopwatch`.`ledger5m` ON CLUSTER `flopwatch` (
  ts DateTime64(6, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
  revision UInt64 CODEC(Delta, ZSTD(1))
) ENGINE = ReplicatedMergeTree('/clickhouse/flopwatch/all/ledger5m', '{shard}-{replica}')
PARTITION BY toYYYYMM(ts)
ORDER BY (ts, revision)
SETTINGS replicated_deduplication_window = 1000;

CREATE TABLE IF NOT EXISTS `flopwatch`.`ledger1d` ON CLUSTER `flopwatch` (
  ts DateTime64(6, 'UTC') CODEC(DoubleDelta, ZSTD(1)),
  revision UInt64 CODEC(Delta, ZSTD(1))
) ENGINE = ReplicatedMergeTree('/clickhouse/flopwatch/all/ledger1d', '{shard}-{replica}')
PARTITION BY toYYYYMM(ts)
ORDER BY (ts, revision)
SETTINGS replicated_deduplication_window = 1000;

CREATE TABLE IF NOT EXISTS `flopwatch`.`rollup_window` ON CLUSTER `flopwatch` (
  kind String,
  ts DateTime64(6, 'UTC'),
  revision UInt64
) ENGINE = ReplicatedMergeTree('/clickhouse/flopwatch/all/rollup_window', '{shard}-{replica}')
ORDER BY (kind, ts, revision)
SETTINGS replicated_deduplication_window = 1000;
