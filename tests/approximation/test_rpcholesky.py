from collections import Counter
from functools import partial
from itertools import permutations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from simlib import METHODS, Similarity
from simlib.approximation.rpcholesky import rpcholesky
from support.matrices import error, indefinite, psd, quick, rbf

rpcholesky_calls = METHODS["rpcholesky"].calls

INDEFINITE = "not positive semidefinite.*Use tikhonov"

each_block_size = pytest.mark.parametrize("block_size", [1, 3, 64])


def run(K, *args, **options):
    return rpcholesky(Similarity.from_matrix(K), *args, **options)


def eliminated(K, pivots):
    """Return what is left of K after Gaussian elimination, one pivot at a time."""
    rest = K.astype(float).copy()
    for j in pivots:
        rest -= np.outer(rest[:, j], rest[j]) / rest[j, j]
    return rest


def smooth(n, *, width=1.0, seed=0):
    """A Gaussian kernel on the line, whose condition is beyond double precision."""
    x = np.random.default_rng(seed).uniform(-2, 2, n)
    return np.exp(-((x[:, None] - x) ** 2) / width)


@each_block_size
@pytest.mark.parametrize("make", [psd, rbf, smooth])
def test_gaussian_elimination_on_the_same_pivots(make, block_size):
    K = make(60)
    answer = run(K, 12, rng=1, block_size=block_size)
    rest = eliminated(K, answer.landmarks)
    np.testing.assert_allclose(K - answer.toarray(), rest, atol=1e-11 * K.max())
    np.testing.assert_array_equal(answer.core, np.eye(answer.rank))
    assert (abs(np.triu(answer.left[answer.landmarks], 1)) < 1e-9).all()


@pytest.mark.parametrize("tol", [0.0, 1e-11])
def test_matrix_of_zeros(tol):
    for options in ({"n_landmarks": 3, "rng": 0}, {"landmarks": [4, 2]}):
        sim = Similarity.from_matrix(np.zeros((5, 5)))
        answer = rpcholesky(sim, tol=tol, **options)
        assert answer.rank == 0
        assert answer.calls == sim.calls == 9
        np.testing.assert_array_equal(answer.toarray(), np.zeros((5, 5)))
        assert answer.extend(np.zeros((2, 0))).shape == (2, 0)


# The law of the landmarks

TWINS = np.array(
    [
        [1.00, 0.98, 0.10, 0.00, 0.30],
        [0.98, 1.00, 0.12, 0.00, 0.30],
        [0.10, 0.12, 0.50, 0.20, 0.00],
        [0.00, 0.00, 0.20, 2.00, 0.10],
        [0.30, 0.30, 0.00, 0.10, 1.00],
    ]
)


def law(K, s):
    """Return the probability of every sequence of s landmarks drawn one at a time."""
    result = {}
    for sequence in permutations(range(len(K)), s):
        probability = 1.0
        for k in range(s):
            diagonal = eliminated(K, sequence[:k]).diagonal()
            probability *= diagonal[sequence[k]] / diagonal.sum()
        result[sequence] = probability
    return result


def p_value(counts, law):
    """Return that of a chi-square test, sequences that are rare taken together."""
    n = sum(counts.values())
    often = [key for key, probability in law.items() if n * probability >= 5]
    expected = np.array([n * law[key] for key in often])
    observed = np.array([counts[key] for key in often])
    return chisquare(
        np.append(observed, n - observed.sum()), np.append(expected, n - expected.sum())
    ).pvalue


@pytest.mark.parametrize("block_size", [2, 64])
def test_law_is_that_of_one_landmark_at_a_time(block_size):
    sim = Similarity.from_matrix(TWINS)
    counts = Counter(
        tuple(rpcholesky(sim, 3, rng=seed, block_size=block_size).landmarks.tolist())
        for seed in range(2000)
    )
    exact = law(TWINS, 3)
    assert sum(exact.values()) == pytest.approx(1)
    assert p_value(counts, exact) > 0.01


# Early stops


@pytest.mark.parametrize("tol", [0.3, 1e-2, 1e-6])
def test_stops_as_soon_as_the_trace_is_explained(tol):
    K = smooth(60)
    answer = run(K, 60, rng=0, tol=tol, block_size=1)
    assert answer.rank < 60
    before, after = (
        eliminated(K, S).trace() for S in (answer.landmarks[:-1], answer.landmarks)
    )
    assert after <= tol * K.trace() < before
    assert K.trace() - answer.trace() == pytest.approx(after)


@each_block_size
def test_repeated_items_are_taken_once(block_size):
    K = np.kron(psd(8), np.ones((4, 4)))
    answer = run(K, 20, rng=0, block_size=block_size)
    assert sorted(answer.landmarks // 4) == list(range(8))
    np.testing.assert_allclose(answer.toarray(), K, atol=1e-11 * K.max())


def test_no_landmark_is_taken_for_rounding_errors():
    K = smooth(200)
    answer = run(K, 200, rng=0, tol=0)
    rest = [eliminated(K, answer.landmarks[:k]) for k in range(answer.rank)]
    taken = [R[j, j] for R, j in zip(rest, answer.landmarks, strict=True)]
    assert min(taken) > 1e-14
    assert answer.rank < 30


# Given landmarks


def test_landmarks_of_a_draw_give_its_answer():
    K = rbf(60)
    one = run(K, 25, rng=5, block_size=4)
    other = run(K, 25, landmarks=one.landmarks, rng=1)
    np.testing.assert_array_equal(other.landmarks, one.landmarks)
    np.testing.assert_allclose(other.left, one.left, atol=1e-12)


@pytest.mark.parametrize(("units", "taken"), [(10, [0, 2]), (1000, [0, 1, 2])])
def test_given_landmark_that_nearly_repeats_another(units, taken):
    """A residual below 100 rounding units is none: the column is not read."""
    K = np.eye(5)
    K[0, 1] = K[1, 0] = np.sqrt(1 - units * np.finfo(float).eps)
    sim = Similarity.from_matrix(K)
    answer = rpcholesky(sim, landmarks=[0, 1, 2])
    np.testing.assert_array_equal(answer.landmarks, taken)
    assert sim.calls == answer.calls == rpcholesky_calls(5, len(taken))


# Indefinite matrices

FLAT = np.ones((12, 12))
HIDDEN = np.kron(np.eye(4), np.ones((3, 3)))  # each 2 x 2 minor is semidefinite
HIDDEN[:3, :3] = [[1, -0.6, -0.6], [-0.6, 1, -0.6], [-0.6, -0.6, 1]]


@each_block_size
@pytest.mark.parametrize(
    "K",
    [
        indefinite(12),
        -np.eye(12),
        np.eye(12) - 0.3 * FLAT,
        1.01 * FLAT - 0.01 * np.eye(12),
        FLAT - np.eye(12),
        np.abs(np.subtract.outer(np.arange(12.0), np.arange(12))),
        HIDDEN,
        1e-170 * (FLAT - np.eye(12)),
    ],
    ids=["random", "minus", "negative", "minor", "hollow", "distant", "hidden", "tiny"],
)
def test_indefinite(K, block_size):
    sim = Similarity.from_matrix(K)
    with pytest.raises(np.linalg.LinAlgError, match=INDEFINITE):
        rpcholesky(sim, 12, rng=0, block_size=block_size)
    with pytest.raises(np.linalg.LinAlgError, match=INDEFINITE):
        rpcholesky(sim, landmarks=range(12))


def test_indefinite_block_is_refused_before_its_columns_are_read():
    sim = Similarity.from_matrix(HIDDEN)
    with pytest.raises(np.linalg.LinAlgError, match=r"is -0.8 at item 2\."):
        rpcholesky(sim, landmarks=[0, 1, 2, 5, 8])
    assert sim.calls == 12 + 4 + 3


def test_similarities_known_to_few_digits():
    E = np.random.default_rng(0).standard_normal((100, 100))
    K = smooth(100) + 1e-6 * (E + E.T)
    with pytest.raises(np.linalg.LinAlgError, match="or raise `tol`"):
        run(K, 50, rng=0)
    answer = run(K, 50, rng=0, tol=1e-4)
    assert error(K, answer) < 1e-3


@given(
    st.sampled_from(["psd", "low rank", "rbf", "smooth", "repeated"]),
    st.integers(1, 40),
    st.sampled_from([1, 7, 64]),
    st.sampled_from([np.float32, np.float64]),
    st.integers(0, 1000),
)
@quick
def test_semidefinite_matrices_are_never_refused(kind, s, block_size, dtype, seed):
    K = {
        "psd": lambda: psd(40, seed=seed),
        "low rank": lambda: psd(40, seed=seed, rank=5),
        "rbf": lambda: rbf(40, seed=seed),
        "smooth": lambda: smooth(40, seed=seed),
        "repeated": lambda: np.kron(psd(20, seed=seed), np.ones((2, 2))),
    }[kind]()
    sim = Similarity.from_matrix(K.astype(dtype))
    answer = rpcholesky(sim, s, rng=seed, block_size=block_size, tol=0)
    assert sim.calls == answer.calls <= rpcholesky_calls(40, s)
    rest = np.linalg.eigvalsh(K - answer.toarray().astype(float))
    assert rest[0] > -1e4 * np.finfo(dtype).eps * K.max()


@pytest.mark.parametrize("make", [rbf, smooth])
def test_embedding_and_new_items(make):
    K = make(80)
    answer = run(K[:60, :60], 15, rng=0)
    Z, signs = answer.embedding()
    np.testing.assert_array_equal(Z, answer.left)
    assert (signs == 1).all()
    S = answer.landmarks
    np.testing.assert_allclose(answer.extend(K[:60, S]), Z, atol=1e-9)
    new = answer.extend(K[60:, S])
    plain = run(K, landmarks=S)
    np.testing.assert_allclose(new, plain.left[60:], atol=1e-9)
    np.testing.assert_allclose(answer.extend(K[60, S]), new[:1], atol=1e-9)
    with pytest.raises(ValueError, match="to 15 landmarks; got 3"):
        answer.extend(np.zeros((2, 3)))


# Similarities of few digits


def cosines(n, d, seed):
    Z = np.random.default_rng(seed).standard_normal((n, d)).astype(np.float32)
    return Z / np.linalg.norm(Z, axis=1, keepdims=True)


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize(("n", "d", "s"), [(300, 20, 100), (500, 3, 100)])
@pytest.mark.parametrize("seed", range(3))
def test_cosines_rounded_to_float32(n, d, s, seed, given):
    """Whatever the type that they are kept in, and however the landmarks are chosen."""
    Z = cosines(n, d, seed)
    K = Z @ Z.T
    landmarks = np.arange(s) if given else None
    for sim in (
        Similarity.from_matrix(K),
        Similarity(Z, lambda x, y: x @ y.T, batch="block"),
        Similarity.from_matrix(K.astype(float), symmetric=True),
    ):
        answer = rpcholesky(sim, s, landmarks=landmarks, rng=seed)
        assert answer.rank == d
        assert error(K, answer) < 2e-5


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_few_digits_excuse_no_indefinite_matrix(dtype):
    """Eigenvalues of -1 among sixty others, and a scorer's of a few per cent."""
    rng = np.random.default_rng(0)
    Z = cosines(200, 5, 0)
    noise = 0.05 * rng.standard_normal((200, 200))
    for K in (indefinite(200), Z @ Z.T + (noise + noise.T) / 2):
        sim = Similarity.from_matrix(K.astype(np.float32).astype(dtype), symmetric=True)
        with pytest.raises(np.linalg.LinAlgError, match=INDEFINITE):
            rpcholesky(sim, 150, rng=0)


def test_exact_numbers_of_few_digits_are_no_rounded_ones():
    """Integers fit into float32 and are exact: no digit of a residual is given up."""
    rng = np.random.default_rng(0)
    A = rng.integers(-3, 4, (40, 30)).astype(float)
    A[:, -1] = 0
    A[7, -1] = 2.0**-9
    K = A @ A.T
    answer = rpcholesky(Similarity.from_matrix(K), 40, rng=0)
    assert answer.rank == 30
    assert error(K, answer) < 1e-12


def test_another_core_embeds_new_items_too():
    x = np.random.default_rng(0).standard_normal((60, 5))
    K = x @ x.T
    answer = rpcholesky(Similarity.from_matrix(K), 2, rng=0)
    other = answer.with_core([[1.0, 2.0], [0.0, 1.0]])
    columns = K[:, answer.landmarks]
    both = np.hstack([columns, columns])
    np.testing.assert_allclose(other.extend(both), other.embedding()[0], atol=1e-10)
    dense = other.toarray()
    assert_rows = partial(np.testing.assert_allclose, atol=1e-10)
    assert_rows(other.extend(columns) @ other.right.T, dense)
    turned = other.T  # its landmarks are those of the rows
    assert_rows(turned.extend(columns) @ turned.right.T, dense.T)
    assert_rows(turned.extend(both), turned.embedding()[0])
    with pytest.raises(ValueError, match="to 4 landmarks; got 3"):
        other.extend(K[:, :3])
    with pytest.raises(ValueError, match=r"columns must be .*finite"):
        answer.extend([[1.0, np.nan]])
    with pytest.raises(ValueError, match=r"toarray\(\) it"):
        answer.extend(scipy.sparse.csr_array([[1.0, 0.0]]))
