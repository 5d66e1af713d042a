from .lowrank import LowRank as LowRank
