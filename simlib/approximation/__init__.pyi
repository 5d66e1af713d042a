# A name such as nystrom is the module here; the function is simlib.nystrom.
from .adaptive import AdaptiveResult as AdaptiveResult
from .adaptive import approximate_to as approximate_to
from .anchored import Anchored as Anchored
from .cur import sicur as sicur
from .cur import skeleton as skeleton
from .cur import stacur as stacur
from .error import relative_error as relative_error
from .error_estimate import ErrorEstimate as ErrorEstimate
from .error_estimate import estimate_error as estimate_error
from .estimators import SimilarityFeatures as SimilarityFeatures
from .methods import COMPANION_METHODS as COMPANION_METHODS
from .methods import METHODS as METHODS
from .methods import largest as largest
from .sms import sms_nystrom as sms_nystrom
from .spectrum import Spectrum as Spectrum
from .spectrum import estimate_spectrum as estimate_spectrum
from .spectrum import negative_mass as negative_mass
