from .budget import BudgetExceeded as BudgetExceeded
from .budget import SimilarityError as SimilarityError
from .similarity import Similarity as Similarity
from .source import Source as Source
from .store import StoreError as StoreError
from .store import StoreWarning as StoreWarning
from .store import digest as digest
from .views import SimilarityMatrix as SimilarityMatrix
