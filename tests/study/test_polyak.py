import numpy as np
import pytest

from simlib.regression import Preconditioner
from study.polyak import heavy_ball
from support.regression import coherent, matrix, noisy, normal, sketched


def test_it_gains_eta_a_step_on_all_of_the_spectrum():
    eta = 12**-0.5
    singular = np.linspace(1 / (1 + eta), 1 / (1 - eta), 60)
    A, R = np.diag(singular), Preconditioner(np.eye(60), 1.0, eta)
    truth = normal(60, 1, seed=2)
    for target in (1e-4, 1e-8, 1e-12):
        x, steps, _ = heavy_ball(A, A @ truth, R, target)
        assert np.linalg.norm(x - truth) / np.linalg.norm(truth) < 10 * target
        assert steps <= np.log(target) / np.log(1.15 * eta) + 1


@pytest.mark.parametrize("condition", [1e1, 1e6, 1e10])
@pytest.mark.parametrize(("oversampling", "most"), [(12, 22), (4, 38)])
def test_steps_do_not_depend_on_the_condition(condition, oversampling, most):
    A = matrix(4096, 100, condition)
    b = noisy(A, 1e-3)
    x, steps, _ = heavy_ball(A, b, sketched(A, oversampling), 1e-13)
    assert steps <= (most if condition <= 1e3 else 1.5 * most)
    optimum = A @ np.linalg.lstsq(A, b)[0]
    assert np.linalg.norm(A @ x - optimum) < 1e-9 * np.linalg.norm(b)


@pytest.mark.parametrize("oversampling", [1.5, 4])
def test_a_failed_sketch_is_told(oversampling):
    """All that matters is in few rows, which fall on the same row of the sketch."""
    A = coherent(4096, 70)
    A[70:] = 1e-9 * np.random.default_rng(1).standard_normal((4026, 70))
    R = Preconditioner.from_matrix(
        A, sketch="count_sketch", oversampling=oversampling, refine=False, rng=0
    )
    with pytest.raises(np.linalg.LinAlgError, match="The sketch has failed"):
        heavy_ball(A, normal(4096, 1, seed=1), R, 1e-13)
