import numpy as np
import pytest

from flopwatch_collector.compute.detection.change import change_of


def course(levels: list[tuple[int, float]], noise: float, seed: int = 1) -> np.ndarray:
    random = np.random.default_rng(seed)
    base = np.concatenate([np.full(count, seconds) for count, seconds in levels])
    return base * np.exp(random.normal(0.0, noise, base.size))


def test_a_step_change_is_found_where_it_happened() -> None:
    found = change_of(course([(120, 10.0), (60, 12.0)], 0.02))

    assert found is not None
    assert found.kind == "step"
    assert abs(found.index - 120) <= 5
    assert found.ratio == pytest.approx(0.20, abs=0.02)


def test_a_slow_slide_is_a_drift() -> None:
    random = np.random.default_rng(3)
    seconds = np.linspace(10.0, 11.5, 300) * np.exp(random.normal(0.0, 0.01, 300))

    found = change_of(seconds)

    assert found is not None
    assert found.kind == "drift"
    assert found.ratio == pytest.approx(0.15, abs=0.03)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("noise", [0.01, 0.03, 0.06])
def test_noise_alone_is_no_change(noise: float, seed: int) -> None:
    assert change_of(course([(200, 10.0)], noise, seed)) is None


def test_checkpoints_and_evaluations_are_no_change() -> None:
    seconds = course([(200, 10.0)], 0.02)
    seconds[::20] *= 6.0
    seconds[100:104] *= 15.0

    assert change_of(seconds) is None


def test_few_steps_say_nothing() -> None:
    assert change_of(course([(20, 10.0), (20, 20.0)], 0.0)) is None
