"""What is raised where similarities are evaluated."""

__all__ = ["AsymmetryError", "BudgetExceeded", "SimilarityError"]


class SimilarityError(ValueError):
    """The similarity function failed, or answered with something that is no number."""


class AsymmetryError(SimilarityError):
    """A function declared symmetric gave two values for one pair."""


class BudgetExceeded(RuntimeError):
    """A request needs more evaluations than the limit leaves; none was made."""
