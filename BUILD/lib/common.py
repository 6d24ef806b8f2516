# SPDX-License-Identifier: GPL-2.0-only
"""What the programs in BUILD/lib have in common: errors, commands that they run, and
how they end."""

import pathlib
import signal
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]


class Problem(Exception):
    """An error, in words for the user at the terminal."""


def answer(command, **options):
    """The exit status of a command, and all that it prints; with stderr=None the terminal
    gets what is said of errors."""
    if "input" not in options:
        options["stdin"] = subprocess.DEVNULL
    options.setdefault("stderr", subprocess.STDOUT)
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True,
                          errors="replace", check=False, **options)
    return done.returncode, done.stdout


def run(command, failure=None, **options):
    """What a command prints.  If it fails, that is a Problem."""
    status, output = answer(command, **options)
    if status:
        raise Problem(f"{failure or ' '.join(map(str, command))} failed:\n" + output[-3000:])
    return output


def catch_signals():
    """Let what should end this program interrupt it.

    SIGINT, too: a shell starts background jobs with it ignored, and so would be all
    programs that are started here.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)


def end(name, main):
    """Exit with what main() returns; say a Problem as this program's."""
    catch_signals()
    try:
        sys.exit(main())
    except Problem as error:
        for line in str(error).splitlines():
            print(f"-- {name}: error: {line}", file=sys.stderr)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
    sys.exit(1)
