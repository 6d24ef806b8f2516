# SPDX-License-Identifier: GPL-2.0-only
"""Visitors who ask a server for pages: the load generator, visitors.c."""

import functools
import json
import shutil

from .preload import compile_file
from .servers import BenchError, said
from .usage import ahead_of_others

MOST_CPU = 0.25                 # of the server's CPU time, without a remark
# Higher ones take more CPU time: the program runs more often, for less work
PRIORITY = -10


def require():
    if not shutil.which("mariadb_config"):
        raise BenchError("MariaDB's client library is missing; apt-get install libmariadb-dev")


@functools.cache
def compile_visitors(directory):
    """Compile the generator to a directory; return its path."""
    require()
    flags = said("mariadb_config", "--cflags", "--libs").split()
    return compile_file("visitors", directory / "visitors", "-Wall", *flags, "-lm")


def write_pages(file, pages):
    """Write pages, {kind: (weight, statements)}, as the generator reads them."""
    def line(statement):
        text = statement.replace("\\", r"\\").replace("\n", r"\n")
        return "\\" * (text[0] == "=") + text

    file.write_text("".join(
        f"={kind} {weight}\n" + "".join(f"{line(statement)}\n" for statement in statements)
        for kind, (weight, statements) in pages.items()))


def ask(program, server, pages, **options):
    """Let visitors ask a server, and wait for the end; return what the generator
    says of them. pages: a file. options: the generator's; None leaves one out.

    One thread serves all visitors. So it comes first, if this user may do that: else it would
    have to wait for its turn among the server's threads that are ready to run, and fewer pages
    would be in the server at once than visitors ask for."""
    words = ["setpriv", "--pdeathsig=KILL", str(program),
             f"--socket={server.socket}", f"--pages={pages}",
             f"--server-pid={server.process.pid}",
             *(f"--{name.replace('_', '-')}={value}"
               for name, value in options.items() if value is not None)]
    with ahead_of_others(PRIORITY):
        return json.loads(said(*words))


def read_visits(file):
    """Of each page, when it arrived, in seconds, and how many ms it took."""
    return [tuple(map(float, line.split("\t")[:2])) for line in file.read_text().splitlines()]
