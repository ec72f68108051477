"""What every test shares."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# No deadline: a loaded machine is slow, not wrong.
settings.register_profile(
    "steadyview", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("steadyview")
