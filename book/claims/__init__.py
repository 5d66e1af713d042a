"""Claims and numbered items of the three papers, a module for each.

`read_claims` and `read_items` return all, with verdicts computed from the records.
"""

from . import ray2022, song2024, turek2022  # in this order their claims are entered
from .verdicts import KINDS, Claim, Item, Records, read_claims, read_items, table

__all__ = ["KINDS", "PAPERS", "Claim", "Item", "Records", "table"]
__all__ += ["read_claims", "read_items"]

PAPERS = {
    "ray2022": ray2022.TITLE,
    "song2024": song2024.TITLE,
    "turek2022": turek2022.TITLE,
}
