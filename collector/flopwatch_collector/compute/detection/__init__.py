"""Finding what is slow or stands still, from what peers and the run's own past show."""
