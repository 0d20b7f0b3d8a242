"""Where alerts go: one file a channel."""
