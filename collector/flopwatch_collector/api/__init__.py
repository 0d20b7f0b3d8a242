"""HTTP, one router a file."""
