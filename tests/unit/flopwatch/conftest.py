"""Properties are checked on the same examples each time, however busy the machine is."""

from hypothesis import settings

settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile("repeatable")
