"""flopwatch's contract between its rooms, and the training SDK: ``from flopwatch import StepReporter``."""

from flopwatch.report import StepReporter

__all__ = ["StepReporter"]
