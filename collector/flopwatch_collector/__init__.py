"""The collector: ingest, store, compute, views, alerting."""
