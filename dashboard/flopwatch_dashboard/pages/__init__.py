"""One file a page: layout and callbacks."""
