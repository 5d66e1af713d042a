"""Interrupts at any line of some modules."""

import sys

import numpy as np


class Lines:
    """Writes down the lines that run, or stops before the one after `stop` of them."""

    def __init__(self, *modules, stop=None):
        self.files = {module.__file__ for module in modules}
        self.stop, self.seen = stop, []

    def __call__(self, frame, event, _):
        path = frame.f_code.co_filename
        if path not in self.files:
            return None
        if event == "line":
            if len(self.seen) == self.stop:
                sys.settrace(None)
                raise KeyboardInterrupt
            self.seen.append((path, frame.f_lineno))
        return self

    def __enter__(self):
        self.before, self.errors = sys.gettrace(), np.geterr()
        sys.settrace(self)
        return self

    def __exit__(self, *_):
        sys.settrace(self.before)
        np.seterr(**self.errors)  # NumPy's own block may have been cut off
