"""Where samples go: exposition and push."""
