# SPDX-License-Identifier: GPL-2.0-only
"""An end of time that does not cut in two what has to be whole.

When a scenario's share of the time is used up, or a user wants the benchmark to
end, an exception interrupts the program.  In whole() it comes afterwards: then
the program knows a server that it has started, has waited for a server that it
has ended, and has written a file to its end.
"""

import contextlib
import signal
import threading

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class OutOfTime(Exception):
    """A scenario's share of the budget is used up."""


class _State:
    depth = 0                   # of whole()
    late = None                 # the exception that waits for its end


def _raise(exception):
    # A user who asks twice means it
    if _State.depth and not (_State.late is exception is KeyboardInterrupt):
        if _State.late is not KeyboardInterrupt:
            _State.late = exception
    else:
        _State.late = None
        raise exception


def obey_signals():
    """Let signals that end a program end this one cleanly, by
    KeyboardInterrupt."""
    for number in ENDING:
        if signal.getsignal(number) != signal.SIG_IGN:      # as by nohup
            signal.signal(number, lambda *_: _raise(KeyboardInterrupt))
    signal.signal(signal.SIGALRM, lambda *_: _raise(OutOfTime))


def set_limit(seconds):
    """Raise OutOfTime after that many seconds; 0: not any more."""
    signal.setitimer(signal.ITIMER_REAL, seconds)
    if not seconds and _State.late is OutOfTime:
        _State.late = None


@contextlib.contextmanager
def whole():
    """What is done inside is done to its end, unless it fails by itself."""
    if threading.current_thread() is not threading.main_thread():
        yield                           # signals interrupt the main thread
        return
    _State.depth += 1
    try:
        yield
    finally:
        _State.depth -= 1
    if not _State.depth and _State.late:
        exception, _State.late = _State.late, None
        raise exception
