"""Interrupts at any line of a module."""

import sys


class Lines:
    """Counts the lines of a module that run, or stops before the `number`-th."""

    def __init__(self, module, number=None):
        self.file, self.number, self.seen = module.__file__, number, 0

    def __call__(self, frame, event, _):
        if frame.f_code.co_filename != self.file:
            return None
        if event == "line":
            if self.seen == self.number:
                sys.settrace(None)
                raise KeyboardInterrupt
            self.seen += 1
        return self

    def __enter__(self):
        self.before = sys.gettrace()
        sys.settrace(self)
        return self

    def __exit__(self, *_):
        sys.settrace(self.before)
