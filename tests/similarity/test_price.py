"""Region: unions of blocks, against masks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simlib import Similarity
from simlib.similarity.price import Region

SIDE = st.none() | st.lists(st.integers(0, 5), max_size=5)
BLOCKS = st.lists(st.tuples(SIDE, SIDE), max_size=4)


def mask(blocks, symmetric):
    result = np.zeros((6, 6), dtype=bool)
    for rows, columns in blocks:
        one = np.zeros((6, 6), dtype=bool)
        one[
            np.ix_(*(range(6) if side is None else side for side in (rows, columns)))
        ] = 1
        result |= one | one.T if symmetric else one
    return result


def test_by_hand():
    blocks = [(None, [0, 1]), ([0, 1, 2], [0, 1, 2])]
    assert len(Region(5, blocks, symmetric=True)) == 5 + 4 + 1
    assert len(Region(5, blocks, symmetric=False)) == 10 + 3
    assert len(Region(5, blocks, symmetric=True, diagonal=False)) == 4 + 3
    assert len(Region(5, [], symmetric=False)) == 0


@settings(deadline=None)
@given(BLOCKS, BLOCKS, st.booleans(), st.booleans())
def test_against_masks(blocks, without, symmetric, diagonal):
    region = Region(6, blocks, symmetric=symmetric, without=without, diagonal=diagonal)
    inside = mask(blocks, symmetric) & ~mask(without, symmetric)
    if not diagonal:
        np.fill_diagonal(inside, False)
    i, j = np.indices((6, 6))
    assert np.array_equal(region.covers(i, j), inside)
    assert len(region) == (np.triu(inside) if symmetric else inside).sum()


def test_too_many_blocks():
    with pytest.raises(ValueError, match="At most 31 blocks"):
        Region(3, [(None, [0])] * 32, symmetric=True)


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
