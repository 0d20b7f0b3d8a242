"""Readers of files with a structure of their own: JSON, CSV, metric files, Prometheus pages."""
