from .attention import AttentionKernelRegressor as AttentionKernelRegressor
from .features import ExponentialFeatures as ExponentialFeatures
from .powers import Solution as Solution
from .powers import even_power as even_power
from .powers import lstsq as lstsq
from .powers import odd_power as odd_power
from .powers import solve_gram as solve_gram
from .preconditioner import Preconditioner as Preconditioner
