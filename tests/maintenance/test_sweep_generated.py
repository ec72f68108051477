"""Thousands of generated worlds: every dV(k) of the sweep is the recomputed one."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from tests.maintenance.definitions import definition_of
from tests.maintenance.sweeping import Showing, cases, swept_changes, true_changes
from tests.worlds import World

many = settings(
    max_examples=3000,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@many
@given(cases())
def test_every_change_is_the_recomputed_one(generated: tuple[World, list[Showing]]) -> None:
    world, showings = generated
    assert swept_changes(definition_of(world.view), world, showings) == true_changes(world)
