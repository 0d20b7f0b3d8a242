"""Recorded batches through the real ingest and accounting, in a scratch store, at full speed."""
