"""The answers of the Query port, one file a subject; ``flopwatch.query`` is where they are imported from."""
