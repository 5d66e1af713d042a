"""Similarity functions in the three forms that `batch` tells."""

BATCHES = [None, "pairs", "block"]


def in_form(one, batch):
    """A function of two items as one of pairs, or of blocks."""
    if batch == "pairs":
        return lambda xs, ys: [one(x, y) for x, y in zip(xs, ys, strict=True)]
    if batch == "block":
        return lambda xs, ys: [[one(x, y) for y in ys] for x in xs]
    return one


def listed(sim):
    """The pairs and values that are known, (i, j, K[i, j])."""
    return [triple for part in sim.known() for triple in zip(*part, strict=True)]


def known_pairs(sim):
    return [(int(i), int(j)) for i, j, _ in listed(sim)]
