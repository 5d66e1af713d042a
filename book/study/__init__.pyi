from . import datasets as datasets
from . import gallery as gallery
from .kept import Kept as Kept
from .sweeps import sweep as sweep
