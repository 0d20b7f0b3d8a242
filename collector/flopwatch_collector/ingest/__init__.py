"""Accept a batch once, however often it is sent."""
