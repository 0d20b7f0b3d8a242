"""The bridge to the Prometheus world: remote write out, PromQL in."""
