"""Fixtures of the tests about Gym's rollouts."""

from pathlib import Path

import pytest

from tests.interop_gym.gym_lab import GymLab


@pytest.fixture
def gym_lab(tmp_path: Path) -> GymLab:
    return GymLab(tmp_path)
