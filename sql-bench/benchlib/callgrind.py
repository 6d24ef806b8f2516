# SPDX-License-Identifier: GPL-2.0-only
"""Count the instructions of a server's threads, by valgrind's callgrind."""

import pathlib
import re

from .servers import said

WARM = 200                      # statements before the counting
TOTALS = re.compile(r"^(?:totals|summary):\s*(\d+)", re.MULTILINE)


def instructions(text):
    """What a dump says that one thread has executed."""
    found = TOTALS.findall(text)
    return int(found[-1]) if found else 0


class Counted:
    """A server that runs under callgrind. Only the thread that has executed most
    counts: the connection's, if there is one connection and it has work."""

    def __init__(self, server):
        self.server = server
        server.wrapper = ["valgrind", "--tool=callgrind", "--quiet",
                          "--instr-atstart=no", "--separate-threads=yes",
                          "--fair-sched=yes",
                          f"--callgrind-out-file={server.datadir}/callgrind.out"]
        # valgrind 3.19 takes waiting in io_uring for running, and has no room for
        # a buffer pool that could grow to 8 TiB
        server.options += ["--innodb-use-native-aio=0",
                           "--loose-innodb-buffer-pool-size-max=1G"]
        self.dumps = 0

    def __enter__(self):
        for path in self.server.datadir.glob("callgrind.out*"):
            path.unlink()
        self.server.start()
        return self

    def __exit__(self, *_):
        self.server.stop()

    def control(self, *command):
        said("vgdb", f"--pid={self.server.process.pid}", *command)

    def once(self, work):
        """Instructions of what work() makes the server execute."""
        self.control("instrumentation", "on")
        work()
        self.control("instrumentation", "off")
        self.dumps += 1
        name = f"callgrind.out.{self.dumps}"
        self.control("dump", name)
        return max(instructions(path.read_text())
                   for path in pathlib.Path(self.server.datadir).glob(
                       f"{name}-*"))

    def each(self, count, execute):
        """Instructions of execute(number), on average of that many."""
        for number in range(WARM):
            execute(number)

        def all_of_them():
            for number in range(count):
                execute(WARM + number)
        return self.once(all_of_them) / count
