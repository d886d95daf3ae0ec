"""Settings that all tests share."""

from hypothesis import settings

# Timing differs between machines, so no deadline; the blob lets anyone replay a failure that another machine found.
settings.register_profile("cbfloat", deadline=None, print_blob=True)
settings.load_profile("cbfloat")
