from . import bounds as bounds
from . import wmd as wmd
