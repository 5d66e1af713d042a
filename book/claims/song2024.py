"""Claims of Song, Yin and Zhang (2024), and what became of them."""

from functools import cache
from math import sqrt
from warnings import catch_warnings

import numpy as np
from scipy.linalg import orth, svdvals

from simlib.regression import ExponentialFeatures
from simlib.regression.sketch import PolynomialSketch, sparse_sign, srht
from study.as_printed import sketched_solve

from .verdicts import claim, found, item

TITLE = "Song, Yin and Zhang (2024)"


def edge(song2024, features):
    """The least and the largest eigenvalue relative to the kernel."""
    return [*found(song2024, "Theorem H.6", f"^{features:g} features")]


def left_over(song2024):
    """The residual of Algorithm 3 by features a point."""
    residuals = found(song2024, "Algorithm 3")
    return {float(case.split()[0]): value for case, value in residuals.items()}


def ranks(song2024):
    """The ranks of tensors of degree 1, 2 and 3, in general and in a plane."""
    return [found(song2024, "Theorem H.5", some) for some in ("general", "plane")]


def digits(powers, method):
    """The error of the fourth power at a condition of a million, for a generic b."""
    errors = powers.errors.query("b == 'generic' and j == 4 and condition == 1e6")
    return errors.set_index("method").error[method]


def seconds(powers, method, other=None):
    """The time of each power by a method, or over that of another."""
    least = powers.times.groupby(["method", "j"]).seconds.min()
    return least[method] / (least[other] if other else 1)


def told(numbers):
    """Numbers, as a sentence has them."""
    first, second, third = (f"{number:.0f}" for number in numbers)
    return f"{first}, {second} and {third}"


def lost_lengths(sketched, basis):
    """The distortion of the subspace that a basis spans, whose rows were sketched."""
    return float(max(abs(svdvals(basis.T @ sketched)[: basis.shape[1]] - 1)))


def tensor_distortion(features, in_a_plane):
    """The largest distortion of sketched tensors of degree 3, of 200 points."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 8))
    if in_a_plane:
        X = X[:, :2] @ orth(rng.standard_normal((8, 2))).T
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    values, vectors = np.linalg.eigh((X @ X.T) ** 3)
    kept = values > 1e-8 * values[-1]
    basis = vectors[:, kept] / np.sqrt(values[kept])
    sketches = (PolynomialSketch(features, 8, 3, shared=False, rng=k) for k in range(5))
    return max(lost_lengths(sketch(X), basis) for sketch in sketches)


def column_distortion(make, columns):
    """The distortion of an incoherent subspace with 16 rows a column."""
    U = orth(np.random.default_rng(0).standard_normal((4096, columns)))
    return float(max(abs(svdvals(make(16 * columns, 4096, rng=0) @ U) - 1)))


def circle(points):
    """Points at even angles of a circle, in a plane of 16 dimensions."""
    angles = 2 * np.pi * np.arange(points) / points
    plane = orth(np.random.default_rng(0).standard_normal((16, 2)))
    return angles, np.stack([np.cos(angles), np.sin(angles)], axis=1) @ plane.T


def sketched(X, features, draw=0):
    """The features of the paper's sketch."""
    sketch = ExponentialFeatures(features, kind="shared_tree", random_state=draw)
    return sketch.fit_transform(X)


@cache
def rank_on_a_circle(features):
    """The rank of the sketch for 256 points of a circle."""
    return int(np.linalg.matrix_rank(sketched(circle(256)[1], features)))


@cache
def left_on_a_circle(features):
    """The least and the largest residual of Algorithm 3, for three kinds of y.

    y = K z, a random y, and a cosine of forty periods.
    """
    angles, X = circle(256)
    K, z = np.exp(X @ X.T), np.random.default_rng(0).standard_normal(256)
    left = []
    for y in (K @ z, z, np.cos(40 * angles)):
        residuals = []
        for draw in range(5):
            with catch_warnings(action="ignore"):  # that the system is singular
                alpha = sketched_solve(sketched(X, features, draw), y, rng=draw).x
            residuals.append(np.linalg.norm(K @ alpha - y) / np.linalg.norm(y))
        left.append((float(min(residuals)), float(max(residuals))))
    return left


# Sketches and lemmas


@claim("Fact A.3", kind="holds", chapter="song")
def fact_a3(song2024):
    """Norms and condition numbers of A, of its Gram matrix and of the powers of that
    are related as usual."""
    gaps = found(song2024, "Fact A.3")
    return [*(gaps < 1e-8)], (
        f"As we read it. To {max(gaps):.0e} on a matrix of condition 20."
    )


@claim("Fact B.3", kind="holds", chapter="song")
def fact_b3(song2024):
    """In a PSD matrix the square of an entry is at most the product of its diagonal
    entries."""
    [share] = found(song2024, "Fact B.3")
    return share <= 1 + 1e-12, (
        f"As we read it. On an attention kernel, at most {share:.2f} times it."
    )


@claim("Lemma B.4", kind="holds", chapter="song")
def lemma_b4(song2024):
    """If X Xᵀ is known to within a factor 1 ± ε, its exponential is, entry by entry, to
    within 1 ± O(ε r)."""
    least, largest = found(song2024, "Lemma B.4")
    return [least > 1 - 3 * 0.05, largest < 1 + 3 * 0.05], (
        "As we read it, for points on the unit sphere and ε = 0.05: the "
        f"entries are between {least:.3f} and {largest:.3f} times the exact ones. "
        "It is a statement on entries, not on spectra, and the theorem needs the "
        "latter."
    )


@claim("Lemma C.4", "Lemma H.2", kind="holds", chapter="lstsq")
def lemma_c4(song2024):
    """An SRHT, or a sparse embedding, with about d/ε² rows, up to logarithms, is a
    subspace embedding of distortion ε."""
    worst = found(song2024, "Lemma C.4")
    cases = [
        worst[f"{kind}, {rows} rows a column"] < 2 / sqrt(rows)
        for kind in ("srht", "sparse_sign")
        for rows in (4, 16)
    ]
    grown = {
        make: [column_distortion(make, columns) for columns in (10, 160)]
        for make in (srht, sparse_sign)
    }
    cases += [many < 1.5 * few for few, many in grown.values()]
    return cases, (
        "As we read it. With 16 rows a column the largest distortion, on a matrix with "
        "and one without preferred rows, was "
        f"{worst['srht, 16 rows a column']:.2f} and "
        f"{worst['sparse_sign, 16 rows a column']:.2f}; "
        r"the law $\sqrt{d/m}$ says 0.25. "
        "As many rows a column serve 10 columns and 160, with distortions of "
        f"{grown[srht][0]:.2f} and {grown[srht][1]:.2f} (SRHT), "
        f"{grown[sparse_sign][0]:.2f} and {grown[sparse_sign][1]:.2f} (sparse signs): "
        "a logarithm does not show at these sizes. The SRHT needs scattered rows, the "
        "sparse embedding more than one nonzero in a column."
    )


@claim("Section C.3", kind="holds", chapter="lstsq")
def application_time():
    """An SRHT, and a sparse embedding, are applied in the times of Lemma C.4."""
    return (
        "Not tested. Both times are missing from our text; those in use are n d log n "
        "for an SRHT and the number of nonzeros for a sparse embedding."
    )


@claim("Fact D.1", kind="holds", chapter="song")
def fact_d1(song2024):
    """Norms within 1 ± ε of unit vectors and a Gram matrix within ε of the identity are
    the same."""
    [gap] = found(song2024, "Fact D.1")
    return gap < 1e-12, (
        "As we read it, of squared norms: both say where the eigenvalues of the Gram "
        f"matrix are. Equal to {gap:.0e}."
    )


@claim("Lemma D.2", kind="holds", chapter="song")
def lemma_d2(song2024):
    """Gradient descent with unit steps on a PSD matrix with eigenvalues in [3/4, 5/4]
    contracts by a constant."""
    [factor] = found(song2024, "Lemma D.2")
    return factor < 0.57, (
        f"As we read it. A step multiplies the error by {factor:.3f}; 9/16 is the "
        "worst. The matrix is applied twice a step, where once would multiply it by "
        "1/4 at most."
    )


@claim("Lemma D.3", kind="holds", chapter="lstsq")
def lemma_d3(song2024):
    """A cost within a factor 1 + ε of the least bounds the error of the solution by
    √(2ε + ε²) of the residual over σmin."""
    [share] = found(song2024, "Lemma D.3")
    return abs(share - 1) < 0.001, (
        "As we read it; the constant is ours. Attained along the weakest singular "
        f"vector, to {abs(share - 1):.0e}. The error falls only as the root of ε."
    )


@claim("Lemma D.4", kind="holds", chapter="song")
def lemma_d4(song2024):
    """For a PSD system the error is at most ε σmin⁻² of the right-hand side."""
    [share] = found(song2024, "Lemma D.4")
    return share <= 1 + 1e-9, (
        "As we read it. Attained along the weakest singular vector "
        f"({share:.3f} of the bound). The proof's Pythagorean step is not "
        "needed."
    )


@claim("Section 3.2", kind="remark", chapter="lstsq")
def forward_psd():
    """To the best of the authors' knowledge there was no proof of the forward error for
    PSD matrices."""
    return (
        "Lemma D.4 is the textbook's: an error is the inverse times its residual. What "
        "was proved before is not for a record to tell."
    )


# The iterations


@claim("Lemma E.1", "Algorithm 4", kind="holds", chapter="lstsq")
def least_squares_steps(song2024):
    """Sketch, precondition and descend, and the cost is within 1 + ε of the least."""
    shares = found(song2024, "Algorithm 4", "share")
    steps = found(song2024, "Algorithm 4", "steps")["steps, 100 rows a column"]
    return [[*(shares <= 1)], steps < 1000], (
        "As we read it. With the embedding of 0.1 that the paper asks, a hundred rows "
        f"a column, in {steps:.0f} steps. It is the constant of the embedding that "
        "decides: unit steps diverge below 11.66 rows a column, and do at 8. Heavy "
        "ball or LSQR take any number above one."
    )


@claim("Lemma E.2", "Algorithm 5", kind="holds", chapter="powers")
def psd_steps(song2024):
    """The same for a PSD system, to a residual of ε."""
    steps = found(song2024, "Algorithm 5")["steps, 100 rows a column"]
    return steps < 1000, (
        f"As we read it. In {steps:.0f} steps with a "
        "hundred rows a column; with 20 it diverges, as it squares an operator that is "
        "positive definite already."
    )


@claim("Lemma F.1", "Algorithm 6", "Section 3.1", kind="holds", chapter="powers")
def three_matrices(song2024):
    """One regression and one PSD solve give A AᵀA x a cost within (1 + ε) of the least
    plus ε of the right-hand side."""
    shares = found(song2024, "Algorithm 2", "j = 1, share")
    return [*(shares <= 1)], (
        "As we read it. At a condition number of 20: the extra cost is at most "
        f"{max(shares):.1g} of what is allowed."
    )


@claim("Lemma F.2", "Algorithm 7", "Section 3.2", kind="holds", chapter="powers")
def four_matrices(song2024):
    """Two PSD solves give (AᵀA)² x a residual of ε."""
    shares = found(song2024, "Algorithm 1", "j = 2, share")
    return [*(shares <= 1)], (
        "As we read it. At a condition number of 20: the residual is at most "
        f"{max(shares):.1g} of what is allowed."
    )


@claim(
    "Theorem 1.4",
    "Theorem 4.1",
    "Lemma G.1",
    "Theorem G.2",
    "Algorithm 1",
    kind="holds",
    chapter="powers",
)
def even_powers(powers, song2024):
    """j PSD solves give (AᵀA)^j x a residual of ε."""
    cases = [*(found(song2024, "Algorithm 1", "share") <= 1)]
    return cases, (
        "As we read it. At a condition of 20, for j up to 3. In floating point no "
        "generic right-hand side reaches it once κ^(2j) times the rounding unit is "
        "well above ε: at κ = 10⁶ and j = 4 the explicit product has no digits left "
        f"({digits(powers, 'explicit product'):.1g}), while the stages keep "
        f"them ({digits(powers, 'Algorithm 1'):.0e})."
    )


@claim(
    "Theorem 1.5",
    "Theorem 4.1",
    "Theorem G.3",
    "Algorithm 2",
    kind="holds",
    chapter="powers",
)
def odd_powers(song2024):
    """One regression and j PSD solves give A (AᵀA)^j x a cost within (1 + ε) of the
    least plus ε of b."""
    cases = [*(found(song2024, "Algorithm 2", "share") <= 1)]
    return cases, (
        "As we read it. At a condition number of 20, for j up to 3 and ε down to 10⁻⁶."
    )


@claim("Section 5", kind="limit", chapter="powers")
def linear_in_j(song2024):
    """The running time is linear in the number j of factors."""
    growth = [*found(song2024, "Algorithm 1", "steps to 1e-06").astype(int)]
    cases = growth[2] <= 3.15 * growth[0]
    return cases, (
        "As we read it, the bounds being missing from our text; logarithms may be "
        "meant to be left out. The accuracies that the proof asks of the stages make "
        f"it quadratic, with a logarithm of the condition: {growth[0]:d}, "
        f"{growth[1]:d} and {growth[2]:d} steps for j = 1, 2, 3, on a matrix of 4,096 "
        "by 40 and condition 20. In floating point all stages end at the rounding unit "
        "and cost the same."
    )


@claim("Section 5", kind="holds", chapter="powers")
def alternating(powers):
    """As it solves with one factor after the other, the algorithm's time has to grow
    with their number."""
    times, ours = seconds(powers, "Algorithm 1"), seconds(powers, "cholesky_qr")
    return times[4] > 2 * times[1], (
        "Of its stages, each of which passes over A many times. Stages that solve with "
        "one factor of it, made once, take d² operations each: by Cholesky-QR j = 4 "
        f"takes {ours[4] / ours[1]:.1f} times as long as j = 1, with as many digits; "
        "making the factor takes n d²."
    )


@claim("Section 1.1", "Section 4", kind="remark", chapter="powers")
def squaring(powers):
    """What multiplying out takes, and with squaring."""
    times = seconds(powers, "explicit product")
    return (
        "Not tested, since both formulas are missing from our text. The Gram matrix is "
        "made once: squaring takes n d² + d³ log j, and Cholesky's decomposition needs "
        f"none. Measured, j = 4 takes {times[4] / times[1]:.2f} times as long as j = 1."
    )


@claim("Section 1.1", "Section 4", "Theorem 1.4", kind="limit", chapter="powers")
def faster(powers):
    """The method is a significant improvement over multiplying out as long as d is
    small beside n."""
    plain = seconds(powers, "Algorithm 1", "explicit product")
    six = seconds(powers, "Algorithm 1, six digits", "explicit product")
    return (
        "As we read it, for d up to √n (the bound is missing), a statement on the "
        "growth of costs, up to constants and logarithms; one size cannot test it. At "
        "that size the constants decide: for a "
        f"matrix of {powers.times['size'][0]} it takes {plain[1]:.0f} to "
        f"{plain[4]:.0f} times as long, to six digits still {six[1]:.0f} to "
        f"{six[4]:.0f} times. What it has are digits, which the paper does not claim."
    )


@claim("Abstract", "Section 1", kind="remark", chapter="powers")
def stand_in(song2024):
    """Regressions with powers are sub-problems of one with the matrix exponential, term
    by term."""
    [total] = found(song2024, "Abstract")
    return (
        "How they are to be put together the paper does not say. Adding up their "
        "solutions, which it does not propose, would not do, as the inverse of a sum "
        "is not the sum of inverses: at an eigenvalue of 1 the solutions of the terms "
        f"add up to {total:.0f} with three terms, where the solution is 0.37."
    )


@claim(
    "Section A.3", "Definition A.5", "Definition A.6", kind="holds", chapter="powers"
)
def weight(song2024):
    """With a weight W of full rank between, the problem is an odd power of degree 3."""
    root, other = found(song2024, "Definition A.6")
    return [root < 1e-6, other < 1e-6], (
        "As we read it. With $X W^{1/2}$ as the factor it is so for a symmetric "
        f"positive definite W ({root:.0e} apart). The W of attention, a product of two "
        "different weights, has no symmetric root; for it, and an X of full column "
        r"rank, $x' = (X^\top X)^{-1} W X^\top X x$ is the unknown of an odd power of "
        f"X itself ({other:.0e} apart), with one stage more to come back to x."
    )


@claim("Algorithm 1", "Algorithm 2", kind="remark", chapter="lstsq")
def one_sketch():
    """Each call sketches anew, and takes its share of the failure probability."""
    return (
        "As we read it. R depends on A alone, so that one sketch serves all stages; "
        "our functions make one."
    )


# The attention kernel


@claim("Theorem H.4", "Algorithm 8", kind="holds", chapter="attention")
def tree(song2024):
    """A tree of sketches keeps the lengths of tensors to within (1 ± ε)^(3p)."""
    tree = found(song2024, "Theorem H.4", "a shared tree")
    worst = [tree[f"a shared tree, degree {p}, distortion"] for p in (2, 4, 8)]
    long = tree["a shared tree, degree 8, length"]
    bounds = [(1 + worst[0]) ** (3 * p) - 1 for p in (2, 4, 8)]
    cases = [one < bound for one, bound in zip(worst, bounds, strict=True)]
    return cases, (
        f"As we read it. Far within: {worst[2]:.2f} at degree 8 where a "
        f"node has {worst[0]:.2f}. A shared tree is too long on average, "
        f"with the 512 features of this test {long:.2f} times at degree 8 (why, is in "
        "{ref}`chap:attention`). It is not worth the products it saves."
    )


@claim("Theorem H.1", "Theorem H.5", kind="holds", chapter="attention")
def tensor_embedding(song2024):
    """Tensors of degree p have a subspace embedding whose size goes by their rank and
    grows with p no faster than a power of it."""
    low, high = (
        found(song2024, "Theorem H.4")[f"own signs, degree {p}, distortion"]
        for p in (2, 8)
    )
    cases = [high < 8 * low, high < 1]
    return cases, (
        "As we read it. With 512 features for 24 tensors and nodes that draw their own "
        f"signs the largest distortion grows from {low:.2f} at degree 2 to "
        f"{high:.2f} at degree 8; a size that grew like 2^p would be 8 times "
        "the distortion. Its time is missing from our text, and not tested."
    )


@claim("Section 1.1", "Section 3.5", "Theorem H.5", kind="holds", chapter="attention")
def tensor_rank(song2024):
    """If the data are highly structured, so that the rank of the tensors is small, the
    sketch can be shorter than n."""
    general, plane = ranks(song2024)
    few = {flat: tensor_distortion(128, flat) for flat in (True, False)}
    return [[*(plane <= 8)], few[True] < 0.5 < few[False]], (
        "As we read it; the formulas are missing, and its time is not tested. Of 200 "
        "points in a plane of 8 dimensions the tensors of degree 1, 2 and 3 have ranks "
        f"{told(plane)}, in general position {told(general)}, min(n, C(d + p − 1, p)), "
        "so that the rank is small by structure alone. A sketch of 128 features "
        f"distorts those of degree 3 by at most {few[True]:.2f} in the plane, and by "
        f"{few[False]:.1f} in general position. In the coordinates of the plane d is "
        "less, too."
    )


@claim("Theorem H.6", kind="error", chapter="attention")
def taylor(song2024):
    """The sketch is a spectral approximation of the kernel, within 1 ± ε."""
    edges = {of: edge(song2024, of) for of in (0.5, 8, 128, 512)}
    cases = [edges[of][0] > 0.5 and edges[of][1] < 1.5 for of in (0.5, 128, 512)]
    rank = rank_on_a_circle(8192)
    return [*cases, rank == 256], (
        "As we read it, without a ridge or an error that is added. The kernel of "
        "distinct points has full rank, so that the sketch needs it, too. With enough "
        "features it can have it: on 256 points in general position the eigenvalues "
        f"relative to the kernel lie between {edges[128][0]:.2f} and "
        f"{edges[128][1]:.2f} with 128 times as many features as points, between "
        f"{edges[512][0]:.2f} and {edges[512][1]:.2f} with 512 times, and between "
        f"{edges[8][0]:.2f} and {edges[8][1]:.1f} with 8 times. With fewer features "
        "than points, where Theorem H.7 uses it, they begin at zero. Where the "
        "truncated series has a low rank, no number of features is enough: for 256 "
        f"points of a circle the sketch of 8,192 features has rank {rank}, and a wave "
        f"of {rank // 2 + 1} periods, which the kernel does not leave out, is lost. "
        "With a ridge "
        "added to both few features are enough."
    )


@claim(
    "Theorem 1.6",
    "Theorem 4.2",
    "Theorem H.7",
    "Algorithm 3",
    kind="error",
    chapter="attention",
)
def residual(attention_kernel, song2024):
    """Solving with the sketch leaves a residual of at most ε |y| with the kernel."""
    lost = attention_kernel.lost.query("closeness == y").set_index(["y", "condition"])
    lost, left = lost.residual, left_over(song2024)
    reached, any_y, wave = left_on_a_circle(128)
    return [reached[1] < 0.5, any_y[1] < 0.5, wave[1] < 0.5], (
        "As we read it. The algorithm is for fewer features than points; for more the "
        "paper refers to another work. Then the solution is a combination of few "
        "columns, and what of y these do not reach is left: for 256 points of a "
        "circle in 16 dimensions, with half as many features as points, a cosine of "
        f"forty periods is left whole ({wave[0]:.2f} |y| with each of five sketches), "
        f"and of a random y {any_y[0]:.1f} to {any_y[1]:.1f} |y|. Where y = K z it is "
        f"at most {reached[1]:.2f} |y|. Nor does it follow from spectral closeness, "
        "which is all that the proof uses: closeness of 0.1 allows a residual of "
        f"{lost['worst', 1e8]:,.0f} |y| at a condition of 10⁸, a factor √κ(G), and a "
        f"random error of that size leaves {lost['random', 1e8]:.0f} |y|; for 48 "
        "points on a sphere in three dimensions and a random y the sketch of Algorithm "
        "8 is within a half of the kernel and leaves more than ten times |y|. (For 256 "
        "points in general position and a random y, solved exactly, it leaves "
        f"{left[128]:.2f} and {left[512]:.2f} |y| with 128 and 512 times as many "
        "features as points.) In the norm of G⁻¹ it is right, with ε / (1 − ε), where "
        "the sketch is spectrally close, which takes at least n features."
    )


@claim("Section 1.1", "Theorem 1.6", kind="holds", chapter="attention")
def than_exact():
    """With a naive bound on the rank, and up to some size, the algorithm is faster than
    computing the kernel."""
    return (
        "Not tested. The bound, the size and both times are missing from our text. "
        "With the features that spectral closeness takes for points of full rank the "
        "sketch has more entries than the kernel."
    )


@claim("Section 3.5", "Algorithm 3", kind="holds", chapter="attention")
def preconditioner(attention_kernel, song2024):
    """A sketch of the sketched kernel is a good preconditioner of it."""
    before, after = (
        found(song2024, "Section 3.5", some) for some in (", condition", ", precond")
    )
    steps = attention_kernel.steps.groupby("method").iterations
    failed = steps.agg(lambda some: some.isna().sum())
    return [*(after.to_numpy() < before.to_numpy() / 10)], (
        "As we read it. Of the sketched problem, which is what the paper solves with "
        "it: for 256 points a sketch of four rows for each feature lowers the "
        f"condition of the features from {before.iloc[0]:.0f} to {after.iloc[0]:.1f} "
        f"with an eighth as many as points, and from {before.iloc[1]:.0f} to "
        f"{after.iloc[1]:.1f} with a quarter. For the exact kernel, where it "
        "would be of more use and which the paper does not propose, the sketch of "
        "Algorithm 8, with fewer features than points, does not converge in "
        f"{attention_kernel.steps.limit[0]:d} steps in "
        f"{failed.shared_tree:.0f} of 8 cases, though conjugate gradients without a "
        "preconditioner do; columns of the kernel converge in all "
        f"({steps.max().rpcholesky:.0f} steps at most)."
    )


@claim("Algorithm 3", "Definition B.2", kind="remark", chapter="attention")
def algorithm_3_sizes():
    """The unknown has n entries, the preconditioner as many rows as the sketch; points
    are rows, and columns."""
    return (
        "As far as our text tells they do not fit together; the solution of least norm "
        "is the nearest problem for which they do. Definition B.2, of the attention "
        "kernel, calls it the Gaussian kernel, Lemma E.2 is the formal version of a "
        "Lemma 4.2 that there is not, and the proof of Lemma B.4 cites Fact B.3 as a "
        "lemma: misprints."
    )


@claim(
    "Abstract",
    "Section 1",
    "Section 5",
    "Section A.3",
    kind="remark",
    chapter="attention",
)
def proxy(song2024):
    """The problems are proxies of attention."""
    far = found(song2024, "Section A.3")
    least, *_ = sorted(far.filter(like="matrix"))
    return (
        "The paper offers different objects that may serve in the place of attention, "
        "not approximations of it. How far they are, up to one factor, on 256 points "
        "of 16 dimensions with rows of length ½ to 4: the kernel without its division "
        f"is at most {max(far.filter(like='kernel')):.2f} away from that of softmax, "
        "where rows point in all directions; on digits it departs as rows grow "
        r"({ref}`chap:attention`). The paper's matrix exponential is, by its abstract "
        r"on arXiv, that of $A^\top A$, of columns; that of $X X^\top$, which has the "
        f"size of attention, is at least {least:.2f} away."
    )


# What the paper numbers


@item("Algorithm 1", chapter="powers")
def algorithm_1(powers):
    """Even powers."""
    ours = (
        "κ = 10⁶, j = 4: error "
        f"{digits(powers, 'Algorithm 1'):.0e}, QR "
        f"{digits(powers, 'Householder QR'):.0e}"
    )
    return "", ours


@item("Algorithm 2", chapter="powers")
def algorithm_2(song2024):
    """Odd powers."""
    share = max(found(song2024, "Algorithm 2", "share"))
    ours = (
        f"extra cost {share:.0e} of what is allowed, on a matrix of 4,096 by 40 and "
        "condition 20"
    )
    return "", ours


@item(
    "Algorithm 3",
    chapter="attention",
    corrected=(
        "The solution of least norm, for which the sizes fit, and a ridge. Better, the "
        "exact kernel, with columns of it for a preconditioner."
    ),
)
def algorithm_3(song2024):
    """Attention-kernel regression."""
    theirs = "as we read it, a residual of at most ε |y|"
    reached, any_y, _ = left_on_a_circle(128)
    ours = (
        "with half as many features as points, 256 of a circle, at most "
        f"{reached[1]:.2f} |y| for y = K z, and {any_y[0]:.1f} to {any_y[1]:.1f} |y| "
        f"for a random y; in general position {left_over(song2024)[0.5]:,.0f} |y|"
    )
    return theirs, ours


@item(
    "Algorithm 4",
    chapter="lstsq",
    corrected=("Steps that converge with any sketch of more than d rows."),
)
def algorithm_4():
    """Fast linear regression."""
    theirs = "as we read it, an embedding of distortion 0.1: a hundred rows a column"
    ours = "heavy ball or LSQR with four to twelve rows a column"
    return theirs, ours


@item(
    "Algorithm 5",
    chapter="powers",
    corrected=("The operator is applied once a step and not twice."),
)
def algorithm_5(song2024):
    """Fast PSD regression."""
    steps = found(song2024, "Algorithm 5")["steps, 100 rows a column"]
    ours = f"CG with twelve rows a column; unit steps take {steps:.0f} with a hundred"
    return "", ours


@item("Algorithm 6", chapter="powers")
def algorithm_6():
    """Three matrices."""
    ours = "as Algorithm 2 with j = 1"
    return "", ours


@item("Algorithm 7", chapter="powers")
def algorithm_7():
    """Four matrices."""
    ours = "as Algorithm 1 with j = 2"
    return "", ours


@item(
    "Algorithm 8",
    chapter="attention",
    corrected=("Nodes that draw their own signs are unbiased."),
)
def algorithm_8(song2024):
    """Sketch of a tensor power."""
    long = found(song2024, "Theorem H.4")["a shared tree, degree 8, length"]
    ours = (
        f"squared length {long:.2f} in place of 1 at degree 8, with "
        "512 features; with fewer features by more"
    )
    return "", ours


@item("Theorem 1.4", chapter="powers", partly=True)
def theorem_1_4():
    """Even powers, informal (Theorem G.2)."""


@item("Theorem 1.5", chapter="powers", partly=True)
def theorem_1_5():
    """Odd powers, informal (Theorem G.3)."""


@item("Theorem 1.6", chapter="attention")
def theorem_1_6():
    """Attention kernel, informal (Theorem H.7)."""


@item("Theorem 4.1", chapter="powers", partly=True)
def theorem_4_1():
    """Both powers."""


@item("Theorem 4.2", chapter="attention")
def theorem_4_2():
    """Attention-kernel regression."""


@item("Fact A.3", chapter="song")
def fact_a_3():
    """Norms."""


@item("Fact B.3", chapter="song")
def fact_b_3():
    """Entries of a PSD matrix."""


@item("Lemma B.4", chapter="song")
def lemma_b_4(song2024):
    """Exponential of a close Gram matrix."""
    least, largest = found(song2024, "Lemma B.4")
    ours = f"entries within {least:.3f} and {largest:.3f} for ε = 0.05"
    return "", ours


@item("Lemma C.4", chapter="lstsq", partly=True)
def lemma_c_4(song2024):
    """Two subspace embeddings."""
    worst = found(song2024, "Lemma C.4", "16 rows")
    ours = (
        f"distortion {worst.iloc[0]:.2f} and {worst.iloc[1]:.2f} with 16 rows a column "
        "(SRHT, sparse signs)"
    )
    return "", ours


@item("Fact D.1", chapter="song")
def fact_d_1():
    """Norms and the Gram matrix."""


@item("Lemma D.2", chapter="song")
def lemma_d_2(song2024):
    """Well-conditioned PSD regression."""
    [factor] = found(song2024, "Lemma D.2")
    ours = f"contraction {factor:.4f}"
    return "", ours


@item("Lemma D.3", chapter="lstsq")
def lemma_d_3():
    """Forward error of least squares."""


@item("Lemma D.4", chapter="song")
def lemma_d_4():
    """Forward error of PSD systems."""


@item("Lemma E.1", chapter="lstsq", partly=True)
def lemma_e_1():
    """Algorithm 4 converges."""


@item("Lemma E.2", chapter="powers", partly=True)
def lemma_e_2():
    """Algorithm 5 converges."""


@item("Lemma F.1", chapter="powers", partly=True)
def lemma_f_1():
    """Three matrices."""


@item("Lemma F.2", chapter="powers", partly=True)
def lemma_f_2():
    """Four matrices."""


@item("Lemma G.1", chapter="powers", partly=True)
def lemma_g_1():
    """The induction."""


@item("Theorem G.2", chapter="powers", partly=True)
def theorem_g_2():
    """Even powers."""


@item("Theorem G.3", chapter="powers", partly=True)
def theorem_g_3():
    """Odd powers."""


@item("Theorem H.1", chapter="attention", partly=True)
def theorem_h_1(song2024):
    """Embedding of tensors (of Ahle et al.)."""
    worst = found(song2024, "Theorem H.4", "own signs.*distortion")
    ours = (
        f"distortion {worst.iloc[0]:.2f} at degree 2 and {worst.iloc[-1]:.2f} at "
        "degree 8, 512 features, 24 tensors"
    )
    return "", ours


@item("Lemma H.2", chapter="lstsq")
def lemma_h_2():
    """SRHT (of Woodruff)."""


@item("Theorem H.4", chapter="attention")
def theorem_h_4(song2024):
    """Bound of the tree (of Song, Woodruff, Yu and Zhang)."""
    worst = found(song2024, "Theorem H.4")["a shared tree, degree 8, distortion"]
    ours = f"distortion {worst:.2f} at degree 8, far within the bound"
    return "", ours


@item("Theorem H.5", chapter="attention", partly=True)
def theorem_h_5(song2024):
    """Size of the sketch by the rank of the tensors."""
    general, plane = map(told, ranks(song2024))
    ours = (
        f"ranks {general} of degrees 1, 2 and 3 for 200 points in 8 dimensions, in a "
        f"plane {plane}"
    )
    return "", ours


@item("Theorem H.6", chapter="attention")
def theorem_h_6(song2024):
    """Spectral closeness to the attention kernel."""
    few, many = edge(song2024, 0.5), edge(song2024, 512)
    ours = (
        "eigenvalues of the sketch relative to the kernel between "
        f"{many[0]:.2f} and {many[1]:.2f} with "
        "512 times as many features as points, between "
        f"{few[0]:.1g} and {few[1]:.0f} with "
        "half as many"
    )
    return "", ours


@item("Theorem H.7", chapter="attention")
def theorem_h_7():
    """Attention-kernel regression."""
