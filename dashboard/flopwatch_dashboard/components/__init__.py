"""Parts used by more than one page."""
