"""From signals to causes, each with the figures for and against it."""
