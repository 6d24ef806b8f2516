# SPDX-License-Identifier: GPL-2.0-only
"""Signals that end the program do not cut in two what has to be whole.

In whole() a signal waits for the end: then the program knows a server that it has
started, has waited for a server that it has ended, and has written a file to its end.
"""

import contextlib
import signal
import threading

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _State:
    depth = 0                   # of whole()
    interrupted = False         # since whole() began


def _interrupt(*_):
    # A user who asks twice means it
    if _State.depth and not _State.interrupted:
        _State.interrupted = True
    else:
        _State.interrupted = False
        raise KeyboardInterrupt


def obey_signals():
    """Let signals that end a program end this one cleanly, by KeyboardInterrupt."""
    for number in ENDING:
        if signal.getsignal(number) != signal.SIG_IGN:      # as by nohup
            signal.signal(number, _interrupt)


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
    if not _State.depth and _State.interrupted:
        _State.interrupted = False
        raise KeyboardInterrupt
