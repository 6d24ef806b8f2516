# SPDX-License-Identifier: GPL-2.0-only
"""Which share of a server's CPU time some of its functions take, by perf.

A sample counts for a function that is on its stack, whatever the function
itself has called: locks, and the kernel's part of them.  A compiler turns a
call at a function's end into a jump, and then the function is not on the
stack any more: in the stock server the last unlocking in tc_release_table()
is such a jump.  So a sample counts as well if a frame on its stack returns
behind a call instruction to the function.
"""

import bisect
import collections
import functools
import os
import shutil
import struct
import subprocess

from .servers import BenchError

SAMPLES_A_SECOND = 499          # each CPU; not in step with the clock tick
STACK_BYTES = 8192              # copied for each sample, unwound afterwards
CALL = 0xE8                     # x86: call, with a 32 bit distance


def require():
    if not shutil.which("perf"):
        raise BenchError("perf is missing; apt-get install linux-perf, or "
                         "name the scenarios that you want")
    done = subprocess.run(["perf", "record", "--quiet", "--output=/dev/null",
                           "--", "true"], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise BenchError(
            "perf cannot record here; run this as root or set "
            "/proc/sys/kernel/perf_event_paranoid to 1, or name the "
            "scenarios that you want. It said:\n" + done.stdout.strip())


class Program:
    """Where the functions of a running program are, and their callers."""

    def __init__(self, pid, path, functions):
        """functions: names without arguments."""
        with open(f"/proc/{pid}/maps", encoding="ascii") as maps:
            self.maps = sorted(self.mappings(maps, os.path.realpath(path)))
        self.file = open(path, "rb")
        # Addresses of an executable of type ET_DYN count from its start
        moves = struct.unpack_from("<H", self.file.read(18), 16)[0] == 3
        base = self.maps[0][0] if moves else 0
        done = subprocess.run(["nm", "-C", "--defined-only", path],
                              stdout=subprocess.PIPE, text=True, check=True)
        self.functions = {}
        for line in done.stdout.splitlines():
            address, _, name = line.split(" ", 2)
            name = name.partition("(")[0]
            if name in functions and "[clone" not in line:
                self.functions[base + int(address, 16)] = name

    def close(self):
        self.file.close()

    @staticmethod
    def mappings(lines, path):
        """(start, end, offset in the file) of each mapping of a file."""
        for line in lines:
            words = line.split(None, 5)
            if len(words) == 6 and words[5].strip() == path:
                start, end = (int(word, 16) for word in words[0].split("-"))
                yield start, end, int(words[2], 16)

    def called(self, address):
        """The function that the call instruction before an address calls."""
        at = bisect.bisect(self.maps, (address, 2 ** 64, 0)) - 1
        if at < 0 or address > self.maps[at][1]:
            return None
        start, _, offset = self.maps[at]
        self.file.seek(address - start + offset - 5)
        code = self.file.read(5)
        if len(code) < 5 or code[0] != CALL:
            return None
        distance, = struct.unpack_from("<i", code, 1)
        return self.functions.get(address + distance)


@functools.cache
def may_sample_all():
    return subprocess.run(
        ["perf", "record", "--quiet", "--all-cpus", "--output=/dev/null",
         "--", "true"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        check=False).returncode == 0


def record(pid, seconds, file):
    """Sample a process.  If this may sample all processes, it does so, and
    leaves the other ones out later.

    perf opens an event for each thread and CPU of a process, and takes so long
    over thousands of threads that no sample is left in a few seconds.
    """
    whom = "--all-cpus" if may_sample_all() else f"--pid={pid}"
    done = subprocess.run(
        ["perf", "record", "--quiet", f"--freq={SAMPLES_A_SECOND}",
         f"--call-graph=dwarf,{STACK_BYTES}", whom,
         f"--output={file}", "--", "sleep", str(seconds)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        check=False)
    if done.returncode:
        raise BenchError("perf record failed:\n" + done.stdout[-2000:])


def stacks(file, pid):
    """The samples of a process: lists of (address, function), the innermost
    first."""
    with subprocess.Popen(
            ["perf", "script", "--input", file, "--fields", "ip,sym",
             f"--pid={pid}", "--no-inline"], stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True) as script:
        stack = []
        for line in script.stdout:
            words = line.split()
            if words:
                stack.append((int(words[0], 16),
                              words[1] if len(words) > 1 else ""))
            elif stack:
                yield stack
                stack = []
        if stack:
            yield stack


def shares(samples, functions, called):
    """Per cent of the samples that count for any of the functions, and for
    the outermost of them on each stack: (share, {function: share}).

    called(address): what is called there, or None."""
    total = 0
    found = collections.Counter()
    known = {}
    for stack in samples:
        total += 1
        for depth, (address, symbol) in reversed(list(enumerate(stack))):
            name = symbol.partition("(")[0]
            if depth and address not in known:
                known[address] = called(address)
            if name not in functions:
                name = known[address] if depth else None
            if name:
                found[name] += 1
                break
    if total < 100:
        raise BenchError(f"perf took {total} samples only")
    return (100.0 * sum(found.values()) / total,
            {name: 100.0 * count / total for name, count in found.items()})
