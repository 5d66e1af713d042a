from .attention import AttentionKernelRegressor as AttentionKernelRegressor
from .features import ExponentialFeatures as ExponentialFeatures
from .least_squares import lstsq as lstsq
from .least_squares import solve_gram as solve_gram
from .powers import even_power as even_power
from .powers import odd_power as odd_power
from .preconditioner import Preconditioner as Preconditioner
from .systems import Solution as Solution
