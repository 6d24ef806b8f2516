#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""In how many pieces a file system leaves files that grow at the same time.

No server: this program appends to files at random, as a server does to tables,
and keeps them open, or closes them after each write, as a table cache that is
too small does. Every so many writes the page cache is written back (sync).
Each case is tried with and without reserved space: the program then allocates
space after the end of a file (fallocate with FALLOC_FL_KEEP_SIZE), as much
again as the file has, 64 KiB to 1 MiB.

    file_growth.py DIRECTORY
"""

import argparse
import ctypes
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from benchlib.program import run_program                      # noqa: E402
from benchlib.servers import BenchError                       # noqa: E402

KEEP_SIZE = 1
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64,
                           ctypes.c_int64]


def grow(directory, options, closed, reserve, sync_every):
    """KiB a piece, and blocks on disk while open, of the files' length. The
    files are made in an empty directory."""
    paths = [os.path.join(directory, f"f{number}")
             for number in range(options.files)]
    files = [os.open(path, os.O_RDWR | os.O_CREAT) for path in paths]
    if closed:
        for file in files:
            os.close(file)
    length, reserved = [0] * options.files, [0] * options.files
    piece = b"x" * options.bytes
    choose = random.Random(1)
    writes = options.files * (options.kibibytes << 10) // options.bytes
    for number in range(1, writes + 1):
        chosen = choose.randrange(options.files)
        file = os.open(paths[chosen], os.O_RDWR) if closed else files[chosen]
        end = length[chosen] + options.bytes
        if reserve and end > max(reserved[chosen], 65536):
            begin = reserved[chosen] or length[chosen]
            reserved[chosen] = end + min(max(end, 65536), 1 << 20)
            if LIBC.fallocate(file, KEEP_SIZE, begin,
                              reserved[chosen] - begin):
                raise OSError(ctypes.get_errno(), "fallocate")
        os.pwrite(file, piece, length[chosen])
        length[chosen] = end
        if closed:
            os.close(file)
        if number % sync_every == 0:
            subprocess.run(["sync", "-f", directory], check=True)
    subprocess.run(["sync", "-f", directory], check=True)
    space = sum(os.stat(path).st_blocks * 512 for path in paths) / sum(length)
    for path, end in zip(paths, length):
        os.truncate(path, end)
    if not closed:
        for file in files:
            os.close(file)
    subprocess.run(["sync", "-f", directory], check=True)
    said = subprocess.run([options.filefrag, *paths], stdout=subprocess.PIPE,
                          text=True, check=True).stdout
    pieces = sum(map(int, re.findall(r": (\d+) extents? found", said)))
    return sum(length) / 1024 / pieces, space


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory",
                        help="on the file system that is to be tried")
    parser.add_argument("--files", type=int, default=200,
                        help="how many (default %(default)s)")
    parser.add_argument("--kibibytes", type=int, default=3072,
                        help="of a file at the end (default %(default)s)")
    parser.add_argument("--bytes", type=int, default=16384,
                        help="of a write (default %(default)s)")
    options = parser.parse_args()
    options.filefrag = shutil.which("filefrag",
                                    path=os.environ["PATH"] + ":/usr/sbin")
    if not options.filefrag:
        raise BenchError("filefrag is missing; apt-get install e2fsprogs")
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    print("| writes between syncs | files are | reserve | KiB a piece "
          "| space of length |\n|---:|---|---|---:|---:|")
    for sync_every in (4000, 400):
        for closed in (False, True):
            for reserve in (False, True):
                with tempfile.TemporaryDirectory(
                        prefix="file-growth-", dir=options.directory) as empty:
                    piece, space = grow(empty, options, closed, reserve,
                                        sync_every)
                print(f"| {sync_every} | {'closed' if closed else 'open'} "
                      f"| {'yes' if reserve else 'no'} | {piece:.0f} "
                      f"| {space:.2f} |", flush=True)


if __name__ == "__main__":
    run_program(main)
