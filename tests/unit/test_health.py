"""Numbers that are not finite, and losses that climb away."""

from __future__ import annotations

import pytest

from kente.errors import Diverged
from kente.train.health import Health


def test_two_bad_updates_are_forgiven_and_three_in_a_row_are_not():
    health = Health()
    health.skipped(10)
    health.skipped(11)
    with pytest.raises(Diverged, match=r"updates 10 to 12 all gave .* not a finite number"):
        health.skipped(12)


def test_more_than_one_percent_of_the_last_thousand_is_too_many():
    health = Health()
    for step in range(100, 1100, 100):
        health.skipped(step)
    with pytest.raises(Diverged, match=r"11 of the last 1,000 updates"):
        health.skipped(1050)


def test_bad_updates_long_ago_are_forgotten():
    health = Health()
    for step in range(100, 30_000, 200):
        health.skipped(step)
    assert len(health.bad_steps) <= 5


def test_a_loss_that_climbs_and_stays_is_divergence():
    health = Health()
    for step in range(300):
        health.saw(3.0, step)
    with pytest.raises(Diverged, match=r"climbed to \d+\.\d+ by update 3\d\d after having been at 3\.00"):
        for step in range(300, 400):
            health.saw(9.0, step)


def test_a_spike_is_not():
    health = Health()
    for step in range(300):
        health.saw(3.0, step)
    for step in range(300, 320):
        health.saw(9.0, step)
    for step in range(320, 600):
        health.saw(3.0, step)


def test_watching_can_be_turned_off():
    health = Health()
    for step in range(300):
        health.saw(3.0 if step < 150 else 90.0, step, watch=False)
    assert Health(**health.as_dict()) == health
