"""Region: unions of blocks, against masks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simlib import Similarity
from simlib.similarity.price import Region

SIDE = st.none() | st.lists(st.integers(0, 5), max_size=5)
BLOCKS = st.lists(st.tuples(SIDE, SIDE), max_size=4)


def mask(blocks, shape, symmetric):
    result = np.zeros(shape, dtype=bool)
    for block in blocks:
        one = np.zeros(shape, dtype=bool)
        ends = zip(block, shape, strict=True)
        one[np.ix_(*(range(n) if side is None else side for side, n in ends))] = 1
        result |= one | one.T if symmetric else one
    return result


@given(BLOCKS, BLOCKS, st.booleans(), st.booleans(), st.sampled_from([6, (6, 9)]))
def test_against_masks(blocks, without, symmetric, diagonal, extent):
    """Of one collection, or of two, which have no symmetry and no diagonal."""
    two, shape = isinstance(extent, tuple), np.broadcast_to(extent, 2)
    symmetric, diagonal = symmetric and not two, diagonal or two
    options = {"symmetric": symmetric, "without": without, "diagonal": diagonal}
    region = Region(extent, blocks, **options)
    inside = mask(blocks, shape, symmetric) & ~mask(without, shape, symmetric)
    assert region.on_diagonal == (0 if two else np.diag(inside).sum())
    if not diagonal:
        np.fill_diagonal(inside, False)
    assert np.array_equal(region.covers(*np.indices(shape)), inside)
    assert len(region) == (np.triu(inside) if symmetric else inside).sum()


def test_too_many_blocks():
    with pytest.raises(ValueError, match=r"At most 29 blocks .* got 30"):
        Region(3, [(None, [0])] * 30, symmetric=True)


def test_what_is_known_makes_no_block_too_many():
    rng = np.random.default_rng(0)
    sim = Similarity.from_matrix(rng.standard_normal((300, 300)))
    blocks = [(np.arange(k, k + 9), np.arange(200)) for k in range(29)]
    before = sim.cost(*blocks)
    shared = sim.run()
    sim.columns([0])
    sim.rows([40])
    shared.columns([1])
    assert sim.cost(*blocks) == before - 2 * 37
    sim.read(*blocks)
    assert sim.cost(*blocks) == 0


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("named", [False, True])
def test_all_lines_by_name_cost_what_a_block_function_computes(side, named):
    sim = Similarity(np.eye(5), lambda X, Y: X @ Y.T, symmetric=False, batch="block")
    sim.read((3, None) if side == 0 else (None, 3))
    sim.pairs([1], [1])  # known, in the middle of a tile, and computed again
    block = [np.arange(5) if named else None] * 2
    block[1 - side] = None
    cost, calls = sim.cost(tuple(block)), sim.calls
    sim.read(tuple(block))
    assert sim.calls - calls == cost
