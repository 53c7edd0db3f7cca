"""Plans in updates, corrections by the clock."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kente.train.plan import Pace, Plan, passed_mark


def test_progress_is_a_line_from_nothing_to_everything():
    plan = Plan(200, 50)
    assert [plan.progress(step) for step in (0, 50, 200)] == [0.0, 0.25, 1.0]


@given(st.integers(2, 5000), st.data())
def test_a_correction_never_jumps_and_always_lands(total, data):
    plan = Plan(total, 10)
    step = data.draw(st.integers(0, total - 1))
    corrected = plan.landing_at(data.draw(st.integers(0, 10_000)), step)
    assert corrected.progress(step) == pytest.approx(plan.progress(step))
    assert corrected.total > step and corrected.progress(corrected.total) == pytest.approx(1.0)
    assert Plan.from_record(corrected.as_record(step)) == corrected


@given(st.integers(1, 300), st.integers(1, 80), st.booleans(), st.data())
def test_validations_left_counts_those_that_come(total, number, by_updates, data):
    plan = Plan(total, validate_every=number) if by_updates else Plan(total, validations=number)
    step = data.draw(st.integers(0, total))
    if data.draw(st.booleans()) and step < total:
        plan = plan.landing_at(data.draw(st.integers(0, 400)), step)
    assert plan.validations_left(step) == sum(plan.validates(s) for s in range(step + 1, plan.total + 1))


def test_validations_by_progress_move_with_the_end():
    plan = Plan(100, validations=4)
    assert [s for s in range(1, 101) if plan.validates(s)] == [25, 50, 75, 100]
    longer = plan.landing_at(400, 25)
    assert [s for s in range(26, 401) if longer.validates(s)] == [150, 275, 400]


def test_a_slow_machine_gets_fewer_updates_and_a_fast_one_more():
    plan = Plan(1000, 500)
    for seconds, expected in ((0.2, 500), (0.05, 2000)):
        pace = Pace(100.0, 0.0, 0.1, 0.0)
        for _ in range(10):
            pace.updated(seconds)
        assert pace.total_for(plan, 0) == pytest.approx(expected, rel=0.01)


def test_time_for_validations_is_set_aside():
    pace = Pace(100.0, 0.0, 0.1, 0.0)
    pace.validated(20.0)
    assert pace.total_for(Plan(1000, 500), 0) == pytest.approx(600, rel=0.01)


def test_time_spent_before_a_resume_counts():
    assert Pace(100.0, 60.0, 0.1, 0.0).left == pytest.approx(40.0, abs=0.5)


def test_a_plan_out_of_time_still_makes_one_more_update():
    pace = Pace(1.0, 5.0, 0.1, 0.0)
    time.sleep(0)
    assert pace.total_for(Plan(1000, 500), 70) == 71


def test_marks_are_each_passed_once():
    plan = Plan(1000, 100)
    passed = [step for step in range(1, 1001) if passed_mark(plan, step)]
    assert passed[0] == 10 and len(passed) == 17
