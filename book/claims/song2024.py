"""Claims of Song, Yin and Zhang (2024), and what became of them."""

from math import sqrt

from .verdicts import claim, item, median

TITLE = "Song, Yin and Zhang (2024)"

# Sketches and lemmas


@claim("Fact A.3", kind="holds", chapter="powers")
def fact_a3(claims):
    """Norms and condition numbers of A, of its Gram matrix and of the powers of that
    are related as usual."""
    cases = [claims.facts[key] < 1e-8 for key in ("gram", "condition", "power")]
    return cases, (
        "As we read it. To "
        f"{max(claims.facts[key] for key in ('gram', 'condition', 'power')):.0e} on a "
        "matrix of condition 20."
    )


@claim("Fact B.3", kind="holds", chapter="attention")
def fact_b3(claims):
    """In a PSD matrix the square of an entry is at most the product of its diagonal
    entries."""
    cases = claims.facts.B3 <= 1 + 1e-12
    return cases, (
        f"As we read it. On an attention kernel, at most {claims.facts.B3:.2f} times "
        "it."
    )


@claim("Lemma B.4", kind="holds", chapter="claims")
def lemma_b4(claims):
    """If X Xᵀ is known to within a factor 1 ± ε, its exponential is, entry by entry, to
    within 1 ± O(ε r)."""
    ratio = claims.entries.ratio
    epsilon = claims.entries.epsilon
    cases = [ratio[0] > 1 - 3 * epsilon, ratio[1] < 1 + 3 * epsilon]
    return cases, (
        f"As we read it, for points on the unit sphere and ε = {epsilon:g}: the "
        f"entries are between {ratio[0]:.3f} and {ratio[1]:.3f} times the exact ones. "
        "It is a statement on entries, not on spectra, and the theorem needs the "
        "latter."
    )


@claim("Lemma C.4", "Lemma H.2", kind="holds", chapter="sketches")
def lemma_c4(claims):
    """An SRHT, or a sparse embedding, with about d/ε² rows, up to logarithms, is a
    subspace embedding of distortion ε."""
    cases = [
        claims.embedding[kind][rows] < 2 / sqrt(f)
        for kind in ("srht", "sparse_sign")
        for rows, f in (("4", 4), ("16", 16))
    ]
    return cases, (
        "As we read it. With 16 rows a column the largest distortion, on a matrix with "
        f"and one without preferred rows, was {claims.embedding.srht['16']:.2f} and "
        rf"{claims.embedding.sparse_sign['16']:.2f}; the law $\sqrt{{d/m}}$ says 0.25. "
        "One size cannot show a logarithm. The SRHT needs scattered rows, the sparse "
        "embedding more than one nonzero in a column."
    )


@claim("Section C.3", kind="holds", chapter="sketches")
def application_time():
    """An SRHT, and a sparse embedding, are applied in the times of Lemma C.4."""
    return (
        "Not tested. Both times are missing from our text; those in use are n d log n "
        "for an SRHT and the number of nonzeros for a sparse embedding."
    )


@claim("Fact D.1", kind="holds", chapter="lstsq")
def fact_d1(claims):
    """Norms within 1 ± ε of unit vectors and a Gram matrix within ε of the identity are
    the same."""
    cases = claims.facts.D1 < 1e-12
    return cases, (
        "Both say where the eigenvalues of the Gram matrix are; for squared norms. "
        f"Equal to {claims.facts.D1:.0e}."
    )


@claim("Lemma D.2", kind="holds", chapter="lstsq")
def lemma_d2(claims):
    """Gradient descent with unit steps on a PSD matrix with eigenvalues in [3/4, 5/4]
    contracts by a constant."""
    cases = claims.D2 < 0.57
    return cases, (
        f"As we read it. A step multiplies the error by {claims.D2:.3f}; 9/16 is the "
        "worst. The matrix is applied twice a step, where once would multiply it by "
        "1/4 at most."
    )


@claim("Lemma D.3", kind="holds", chapter="lstsq")
def lemma_d3(claims):
    """A cost within a factor 1 + ε of the least bounds the error of the solution by
    √(2ε + ε²) of the residual over σmin."""
    cases = abs(claims.facts.D3 - 1) < 0.001
    return cases, (
        "Attained along the weakest singular vector, to "
        f"{abs(claims.facts.D3 - 1):.0e}. The error falls only as the root of ε. (The "
        "constant is ours; the formula is missing from our text.)"
    )


@claim("Lemma D.4", kind="holds", chapter="lstsq")
def lemma_d4(claims):
    """For a PSD system the error is at most ε σmin⁻² of the right-hand side."""
    cases = claims.facts.D4 <= 1 + 1e-9
    return cases, (
        "As we read it. Attained along the weakest singular vector "
        f"({claims.facts.D4:.3f} of the bound). The proof's Pythagorean step is not "
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
def least_squares_steps(claims):
    """Sketch, precondition and descend, and the cost is within 1 + ε of the least."""
    cases = [
        [
            claims.guarantees[key] <= 1
            for key in (
                "Algorithm 4, 0.01",
                "Algorithm 4, 0.0001",
                "Algorithm 4, 1e-06",
            )
        ],
        median([claims.steps["Algorithm 4"]["100"]]) < 1000,
    ]
    return cases, (
        "As we read it. With the embedding of 0.1 that the paper asks, a hundred rows "
        f"a column, in {claims.steps['Algorithm 4']['100']:d} steps. That the constant "
        "matters is not said: unit steps diverge below 11.66 rows a column, and do at "
        "8. Heavy ball or LSQR take any number above one."
    )


@claim("Lemma E.2", "Algorithm 5", kind="holds", chapter="lstsq")
def psd_steps(claims):
    """The same for a PSD system, to a residual of ε."""
    cases = median([claims.steps["Algorithm 5"]["100"]]) < 1000
    return cases, (
        f"As we read it. In {claims.steps['Algorithm 5']['100']:d} steps with a "
        "hundred rows a column; with 20 it diverges, as it squares an operator that is "
        "positive definite already."
    )


@claim("Lemma F.1", "Algorithm 6", "Section 3.1", kind="holds", chapter="powers")
def three_matrices(claims):
    """One regression and one PSD solve give A AᵀA x a cost within (1 + ε) of the least
    plus ε of the right-hand side."""
    share = max(claims.guarantees.odd[key] for key in ("0.01 1", "0.0001 1", "1e-06 1"))
    cases = [
        claims.guarantees.odd[key] <= 1 for key in ("0.01 1", "0.0001 1", "1e-06 1")
    ]
    return cases, (
        "As we read it. At a condition number of 20: the extra cost is at most "
        f"{share:.1g} of what is allowed."
    )


@claim("Lemma F.2", "Algorithm 7", "Section 3.2", kind="holds", chapter="powers")
def four_matrices(claims):
    """Two PSD solves give (AᵀA)² x a residual of ε."""
    share = max(
        claims.guarantees.even[key] for key in ("0.01 2", "0.0001 2", "1e-06 2")
    )
    cases = [
        claims.guarantees.even[key] <= 1 for key in ("0.01 2", "0.0001 2", "1e-06 2")
    ]
    return cases, (
        "As we read it. At a condition number of 20: the residual is at most "
        f"{share:.1g} of what is allowed."
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
def even_powers(claims, powers):
    """j PSD solves give (AᵀA)^j x a residual of ε."""
    cases = [claims.guarantees.even[key] <= 1 for key in claims.guarantees.even]
    return cases, (
        "As we read it. At a condition of 20, for j up to 3. In floating point no "
        "generic right-hand side reaches it once κ^(2j) is beyond the rounding unit: "
        "at κ = 10⁶ and j = 4 the digits of the explicit product are gone "
        f"({powers.errors['explicit product']['4'][3]:.1g}), while the stages keep "
        f"them ({powers.errors['Algorithm 1, 100 d rows']['4'][3]:.0e})."
    )


@claim(
    "Theorem 1.5",
    "Theorem 4.1",
    "Theorem G.3",
    "Algorithm 2",
    kind="holds",
    chapter="powers",
)
def odd_powers(claims):
    """One regression and j PSD solves give A (AᵀA)^j x a cost within (1 + ε) of the
    least plus ε of b."""
    cases = [claims.guarantees.odd[key] <= 1 for key in claims.guarantees.odd]
    return cases, (
        "As we read it. At a condition number of 20, for j up to 3 and ε down to 10⁻⁶."
    )


@claim(
    "Theorem 1.4",
    "Theorem 1.5",
    "Theorem 4.1",
    "Section 5",
    "Theorem G.2",
    "Theorem G.3",
    kind="limit",
    chapter="powers",
)
def linear_in_j(claims):
    """The running time is linear in the number j of factors."""
    growth = claims.growth
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
    times = powers.times
    cases = (
        times["Algorithm 1, 100 d rows"]["4"]
        > 2 * times["Algorithm 1, 100 d rows"]["1"]
    )
    return cases, (
        "Of its stages, each of which passes over A many times. Stages that solve with "
        "one factor of it, made once, take d² operations each: by Cholesky-QR j = 4 "
        f"takes {times.cholesky_qr['4'] / times.cholesky_qr['1']:.1f} times as long as "
        "j = 1, with as many digits; making the factor takes n d²."
    )


@claim("Section 1.1", "Section 4", kind="remark", chapter="powers")
def squaring(powers):
    """What multiplying out takes, and with squaring."""
    ratio = (
        powers.times["explicit product"]["4"] / powers.times["explicit product"]["1"]
    )
    return (
        "Not tested, since both formulas are missing from our text. The Gram matrix is "
        "made once: squaring takes n d² + d³ log j, and Cholesky's decomposition needs "
        f"none. Measured, j = 4 takes {ratio:.2f} times as long as j = 1."
    )


@claim("Section 1.1", "Section 4", "Theorem 1.4", kind="limit", chapter="powers")
def faster(powers):
    """The method is a significant improvement over multiplying out as long as d is at
    most √n."""
    times = powers.times
    plain_even = times["Algorithm 1, 100 d rows"]["1"] / times["explicit product"]["1"]
    plain_high = times["Algorithm 1, 100 d rows"]["4"] / times["explicit product"]["4"]
    digits_even = (
        times["Algorithm 1, 100 d rows, to six digits"]["1"]
        / times["explicit product"]["1"]
    )
    digits_high = (
        times["Algorithm 1, 100 d rows, to six digits"]["4"]
        / times["explicit product"]["4"]
    )
    return (
        "As we read it, a statement on the growth of costs, up to constants and "
        "logarithms; one size cannot test it. At that size the constants decide: for a "
        f"matrix of {powers.sizes.large[0]:,} by {powers.sizes.large[1]:d} it takes "
        f"{plain_even:.0f} to {plain_high:.0f} times as long, to six digits still "
        f"{digits_even:.0f} to {digits_high:.0f} times. What it has are digits, which "
        "the paper does not claim."
    )


@claim("Abstract", "Section 1", kind="remark", chapter="powers")
def stand_in(claims):
    """Regressions with powers are sub-problems of one with the matrix exponential, term
    by term."""
    return (
        "How they are to be put together the paper does not say. Adding up their "
        "solutions, which it does not propose, would not do, as the inverse of a sum "
        "is not the sum of inverses: at an eigenvalue of 1 the solutions of the terms "
        f"add up to {claims.terms[2]:.0f} with three terms, where the solution is 0.37."
    )


@claim(
    "Section A.3", "Definition A.5", "Definition A.6", kind="error", chapter="powers"
)
def weight(claims):
    """With a weight W of full rank between, the problem is an odd power of degree 3."""
    cases = [claims.weight.apart < 1e-6, claims.weight.refused == 0]
    return cases, (
        "As we read it. For a symmetric positive definite W, where both agree to "
        f"{claims.weight.apart:.0e}. The product of two different weights is neither; "
        "full rank is enough to solve the problem, with one stage more, not to reduce "
        "it."
    )


@claim("Algorithm 1", "Algorithm 2", kind="remark", chapter="lstsq")
def one_sketch():
    """Each call sketches anew, and takes its share of the failure probability."""
    return (
        "R depends on A alone, so that one sketch serves all stages; the library's "
        "`paper` functions make one."
    )


# The attention kernel


@claim("Theorem H.4", "Algorithm 8", kind="holds", chapter="polynomial")
def tree(claims):
    """A tree of sketches keeps the lengths of tensors to within (1 ± ε)^(3p)."""
    tree = claims.tree
    cases = [
        tree[p].distortion < (1 + tree["2"].distortion) ** (3 * k) - 1
        for p, k in (("2", 2), ("4", 4), ("8", 8))
    ]
    return cases, (
        f"As we read it. Far within: {tree['8'].distortion:.2f} at degree 8 where a "
        f"node has {tree['2'].distortion:.2f}. A shared tree is too long on average, "
        f"with the 512 features of this test {tree['8'].length:.2f} times at degree 8, "
        "and trees with fewer features by more ({numref}`tab-bias`). It is not worth "
        "the products it saves."
    )


@claim("Theorem H.1", kind="holds", chapter="polynomial")
def tensor_embedding(claims):
    """Tensors of degree p have a subspace embedding whose size grows with p no faster
    than a power of it."""
    tensors = claims.tensors
    cases = [tensors["8"] < 8 * tensors["2"], tensors["8"] < 1]
    return cases, (
        "As we read it. With 512 features for 24 tensors and nodes that draw their own "
        f"signs the largest distortion grows from {tensors['2']:.2f} at degree 2 to "
        f"{tensors['8']:.2f} at degree 8; a size that grew like 2^p would be 8 times "
        "the distortion. Its time is missing from our text, and not tested."
    )


@claim("Section 1.1", "Theorem H.5", kind="limit", chapter="polynomial")
def tensor_rank(claims):
    """The sketch is shorter than n, and faster than the kernel, as long as the rank of
    the tensors is small (below d)."""
    tensor_rank = claims.tensor_rank
    cases = [
        [rank <= tensor_rank.d for rank in tensor_rank.subspace],
        [rank <= tensor_rank.d for rank in tensor_rank.general],
    ]
    return cases, (
        f"As we read it; the formulas are missing. Of 200 points in {tensor_rank.d:d} "
        "dimensions the tensors of degree 1, 2 and 3 have ranks "
        f"{tensor_rank.general[0]:d}, {tensor_rank.general[1]:d} and "
        f"{tensor_rank.general[2]:d} in general position, min(n, C(d + p − 1, p)), and "
        f"in a plane {tensor_rank.subspace[0]:d}, {tensor_rank.subspace[1]:d} and "
        f"{tensor_rank.subspace[2]:d}; in the coordinates of the plane d is less too."
    )


@claim("Theorem H.6", kind="holds", chapter="attention")
def taylor(claims):
    """The sketch is a spectral approximation of the kernel, within 1 ± ε."""
    sketched = claims.sketched
    cases = [sketched[k].edges[0] > 0.5 and sketched[k].edges[1] < 1.5 for k in (3, 4)]
    return cases, (
        "As we read it, with features enough, whose number Section 3.5 calls "
        "super-linear in n: on 256 points of full rank the eigenvalues relative to the "
        f"kernel lie between {sketched[3].edges[0]:.2f} and {sketched[3].edges[1]:.2f} "
        "with 128 times as many features as points, between "
        f"{sketched[4].edges[0]:.2f} and {sketched[4].edges[1]:.2f} with 512 times, "
        f"and between {sketched[2].edges[0]:.2f} and {sketched[2].edges[1]:.1f} with 8 "
        "times. With fewer features than points they begin at zero, which a rank below "
        "n makes unavoidable; with a ridge added to both few are enough. The proof "
        "treats the truncation of the series, an error that is added, as a factor."
    )


@claim(
    "Theorem 1.6",
    "Theorem 4.2",
    "Theorem H.7",
    "Algorithm 3",
    kind="error",
    chapter="attention",
)
def residual(attention_kernel, claims):
    """Solving with the sketch leaves a residual of at most ε |y| with the kernel."""
    lost = attention_kernel.lost
    cases = [
        [claims.sketched[k].residual < 0.5 for k in (3, 4)],
        [size[3] < 0.2 for size in lost],
    ]
    return cases, (
        "As we read it. For a random y on a sphere it is so: "
        f"{claims.sketched[3].residual:.2f} and {claims.sketched[4].residual:.2f} |y| "
        "with 128 and 512 times as many features as points (256 of them), against "
        f"{claims.sketched[2].residual:.1f} with 8 times. It does not follow from "
        "spectral closeness, which is all that the proof uses: closeness of 0.1 allows "
        f"a residual of {lost[3][3]:,.0f} |y| at a condition of 10⁸, a factor √κ(G), "
        f"and a random error of that size leaves {lost[3][1]:.0f} |y|. In the norm of "
        "G⁻¹ the statement is right."
    )


@claim("Section 3.5", "Algorithm 3", kind="holds", chapter="attention")
def preconditioner(attention_kernel, claims):
    """A sketch of the sketched kernel is a good preconditioner of it."""
    sketched = claims.sketched
    cases = [sketched[k].condition[1] < 4 for k in (1, 2)]
    return cases, (
        "As we read it. Of the sketched problem, which is what the paper solves with "
        "it: a sketch of the features, of four rows a point, lowers their condition "
        f"from {sketched[1].condition[0]:.0f} to {sketched[1].condition[1]:.1f} with "
        f"twice as many features as points, and from {sketched[2].condition[0]:.0f} to "
        f"{sketched[2].condition[1]:.1f} with 8 times. For the exact kernel, where it "
        "would be of more use, the sketch of Algorithm 8 does not converge in "
        f"{attention_kernel.most:d} steps in "
        f"{sum(s is None for s in attention_kernel.steps['Algorithm 8']):d} of 8 "
        "cases, where no preconditioner does; columns of the kernel converge in all "
        f"({max(s for s in attention_kernel.steps.RPCholesky):d} steps at most)."
    )


@claim("Algorithm 3", "Definition B.2", kind="remark", chapter="attention")
def algorithm_3_sizes():
    """The unknown has n entries, the preconditioner as many rows as the sketch; points
    are rows, and columns."""
    return (
        "As far as our text tells they do not fit together; the solution of least norm "
        "is the nearest problem for which they do. Definition B.2, of the attention "
        "kernel, calls it the Gaussian kernel, and Lemma E.2 is the formal version of "
        "a Lemma 4.2 that there is not: misprints."
    )


@claim(
    "Abstract",
    "Section 1",
    "Section 5",
    "Section A.3",
    kind="limit",
    chapter="attention",
)
def proxy(claims):
    """The problems are proxies of attention."""
    cases = [found < 0.2 for row in claims.proxies for found in row]
    return cases, (
        "A good proxy is taken as within a fifth of softmax attention, up to one "
        "factor, on 256 points of 16 dimensions with rows of length ½ to 4. The kernel "
        "without its division is at most at "
        f"{max(row[0] for row in claims.proxies):.2f}, where rows point in all "
        "directions; on digits it departs as rows grow ({numref}`tab-proxies`). The "
        r"matrix exponential of $X X^\top$ is at least at "
        f"{min(row[1] for row in claims.proxies):.2f}. The paper offers different "
        "objects that may serve in its place, not approximations of it."
    )


# What the paper numbers


@item("Algorithm 1", chapter="powers")
def algorithm_1(powers):
    """Even powers."""
    ours = (
        "κ = 10⁶, j = 4: error "
        f"{powers.errors['Algorithm 1, 100 d rows']['4'][3]:.0e}, QR "
        f"{powers.errors['Householder QR']['4'][3]:.0e}"
    )
    return "", ours


@item("Algorithm 2", chapter="powers")
def algorithm_2(claims):
    """Odd powers."""
    ours = (
        f"extra cost {max(claims.guarantees.odd.values()):.0e} of what is allowed, on "
        "a matrix of 4,096 by 40 and condition 20"
    )
    return "", ours


@item(
    "Algorithm 3",
    chapter="attention",
    corrected=(
        "The solution of least norm, for which the sizes fit, and a ridge. Better, the "
        "sketch as a preconditioner only."
    ),
)
def algorithm_3(claims):
    """Attention-kernel regression."""
    theirs = "a residual of at most ε |y|"
    ours = (
        f"with 256 points {claims.sketched[4].residual:.2f} |y| with 512 times as many "
        f"features as points, {claims.sketched[2].residual:.1f} with 8 times, "
        f"{claims.sketched[0].residual:,.0f} with half as many"
    )
    return theirs, ours


@item(
    "Algorithm 4",
    chapter="lstsq",
    corrected=("Steps that converge with any sketch of more than d rows."),
)
def algorithm_4():
    """Fast linear regression."""
    theirs = "a hundred rows a column, for its distortion of 0.1"
    ours = "heavy ball or LSQR with four to twelve rows a column"
    return theirs, ours


@item(
    "Algorithm 5",
    chapter="lstsq",
    corrected=("The operator is applied once a step and not twice."),
)
def algorithm_5(claims):
    """Fast PSD regression."""
    ours = (
        "CG with twelve rows a column; unit steps take "
        f"{claims.steps['Algorithm 5']['100']:d} with a hundred"
    )
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
    chapter="polynomial",
    corrected=("Nodes that draw their own signs are unbiased."),
)
def algorithm_8(claims):
    """Sketch of a tensor power."""
    ours = (
        f"squared length {claims.tree['8'].length:.2f} in place of 1 at degree 8, with "
        "512 features; with fewer features by more"
    )
    return "", ours


@item("Theorem 1.4", chapter="powers")
def theorem_1_4():
    """Even powers, informal (Theorem G.2)."""


@item("Theorem 1.5", chapter="powers")
def theorem_1_5():
    """Odd powers, informal (Theorem G.3)."""


@item("Theorem 1.6", chapter="attention")
def theorem_1_6():
    """Attention kernel, informal (Theorem H.7)."""


@item("Theorem 4.1", chapter="powers")
def theorem_4_1():
    """Both powers."""


@item("Theorem 4.2", chapter="attention")
def theorem_4_2():
    """Attention-kernel regression."""


@item("Fact A.3", chapter="claims")
def fact_a_3():
    """Norms."""


@item("Fact B.3", chapter="claims")
def fact_b_3():
    """Entries of a PSD matrix."""


@item("Lemma B.4", chapter="claims")
def lemma_b_4(claims):
    """Exponential of a close Gram matrix."""
    ours = (
        f"entries within {claims.entries.ratio[0]:.3f} and "
        f"{claims.entries.ratio[1]:.3f} for ε = {claims.entries.epsilon:g}"
    )
    return "", ours


@item("Lemma C.4", chapter="sketches")
def lemma_c_4(claims):
    """Two subspace embeddings."""
    ours = (
        f"distortion {claims.embedding.srht['16']:.2f} and "
        f"{claims.embedding.sparse_sign['16']:.2f} with 16 rows a column (SRHT, sparse "
        "signs)"
    )
    return "", ours


@item("Fact D.1", chapter="lstsq")
def fact_d_1():
    """Norms and the Gram matrix."""


@item("Lemma D.2", chapter="lstsq")
def lemma_d_2(claims):
    """Well-conditioned PSD regression."""
    ours = f"contraction {claims.D2:.4f}"
    return "", ours


@item("Lemma D.3", chapter="lstsq")
def lemma_d_3():
    """Forward error of least squares."""


@item("Lemma D.4", chapter="lstsq")
def lemma_d_4():
    """Forward error of PSD systems."""


@item("Lemma E.1", chapter="lstsq")
def lemma_e_1():
    """Algorithm 4 converges."""


@item("Lemma E.2", chapter="lstsq")
def lemma_e_2():
    """Algorithm 5 converges."""


@item("Lemma F.1", chapter="powers")
def lemma_f_1():
    """Three matrices."""


@item("Lemma F.2", chapter="powers")
def lemma_f_2():
    """Four matrices."""


@item("Lemma G.1", chapter="powers")
def lemma_g_1():
    """The induction."""


@item("Theorem G.2", chapter="powers")
def theorem_g_2():
    """Even powers."""


@item("Theorem G.3", chapter="powers")
def theorem_g_3():
    """Odd powers."""


@item("Theorem H.1", chapter="polynomial")
def theorem_h_1(claims):
    """Embedding of tensors (of Ahle et al.)."""
    ours = (
        f"distortion {claims.tensors['2']:.2f} at degree 2 and "
        f"{claims.tensors['8']:.2f} at degree 8, 512 features, 24 tensors"
    )
    return "", ours


@item("Lemma H.2", chapter="sketches")
def lemma_h_2():
    """SRHT (of Woodruff)."""


@item("Theorem H.4", chapter="polynomial")
def theorem_h_4(claims):
    """Bound of the tree (of Song, Woodruff, Yu and Zhang)."""
    ours = (
        f"distortion {claims.tree['8'].distortion:.2f} at degree 8, far within the "
        "bound"
    )
    return "", ours


@item("Theorem H.5", chapter="polynomial")
def theorem_h_5(claims):
    """Size of the sketch by the rank of the tensors."""
    general = claims.tensor_rank.general
    subspace = claims.tensor_rank.subspace
    ours = (
        f"ranks {general[0]:d}, {general[1]:d}, {general[2]:d} of degrees 1, 2, 3 for "
        f"200 points in 8 dimensions, in a plane {subspace[0]:d}, {subspace[1]:d}, "
        f"{subspace[2]:d}"
    )
    return "", ours


@item("Theorem H.6", chapter="attention")
def theorem_h_6(claims):
    """Spectral closeness to the attention kernel."""
    ours = (
        "eigenvalues of the sketch relative to the kernel between "
        f"{claims.sketched[4].edges[0]:.2f} and {claims.sketched[4].edges[1]:.2f} with "
        "512 times as many features as points, between "
        f"{claims.sketched[0].edges[0]:.1g} and {claims.sketched[0].edges[1]:.0f} with "
        "half as many"
    )
    return "", ours


@item("Theorem H.7", chapter="attention")
def theorem_h_7():
    """Attention-kernel regression."""
