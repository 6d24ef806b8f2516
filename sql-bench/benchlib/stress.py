# SPDX-License-Identifier: GPL-2.0-only
"""What the stress programs share: their options, clients, and counting.

A connection is a "mariadb" client that is fed through a pipe; nothing but
Python's standard library is needed.
"""

import argparse
import queue
import subprocess
import threading
import time


def parser(doc, connections, user="root"):
    """The options that all have; doc: the program's text, its first
    paragraph is for --help."""
    options = argparse.ArgumentParser(description=doc.split("\n\n")[0])
    options.add_argument("--socket", required=True)
    options.add_argument("--user", default=user)
    options.add_argument("--seconds", type=float, default=60)
    options.add_argument("--seed", type=int, default=int(time.time()),
                         help="of the random choices (default: the time)")
    options.add_argument("--connections", type=int, default=connections)
    return options


def add_client(options):
    """For programs that use Client."""
    options.add_argument("--client", default="mariadb")


class Gone(Exception):
    pass


class Client:
    """A mariadb client, to which statements are sent one at a time."""

    def __init__(self, args, database="stress"):
        self.errors = {}
        self.number = 0
        self.lost = False
        self.lines = queue.Queue()
        self.process = subprocess.Popen(
            [args.client, "--no-defaults", "--socket=" + args.socket,
             "--user=" + args.user, "--force", "--skip-reconnect", "--unbuffered",
             "--batch", "--raw", "--skip-column-names",
             "--database=" + database],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, bufsize=1)
        self.stderr = threading.Thread(target=self.read_errors, daemon=True)
        self.stderr.start()
        self.stdout = threading.Thread(target=self.read_lines, daemon=True)
        self.stdout.start()

    def read_lines(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def read_errors(self):
        for line in self.process.stderr:
            if line.startswith("ERROR "):
                number = line.split()[1]
                self.errors[number] = self.errors.get(number, 0) + 1
                if number in ("1927", "2006", "2013"):
                    # Somebody killed the connection: begin a new one.
                    self.lost = True
                    self.lines.put(None)

    def run(self, statement):
        """Run it, wait until it is done, return its rows."""
        self.number += 1
        end = "end of %d" % self.number
        try:
            self.process.stdin.write(statement + ";\n")
            rows = []
            while True:
                self.process.stdin.write("SELECT '" + end + "';\n")
                self.process.stdin.flush()
                try:
                    while True:
                        line = self.lines.get(timeout=3)
                        if line is None:
                            raise Gone()
                        if line == end:
                            return rows
                        if not line.startswith("end of "):
                            rows.append(line.split("\t"))
                except queue.Empty:
                    # It takes its time, or the SELECT was killed: send another.
                    pass
        except (OSError, ValueError):
            raise Gone()

    def close(self):
        try:
            if self.lost:
                self.process.kill()
            self.process.stdin.close()
            self.process.wait(timeout=60)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()


def status(client, name):
    rows = client.run("SHOW GLOBAL STATUS LIKE '%s'" % name)
    return rows[0][1] if rows else None


def total(counts):
    """Add up dictionaries of numbers."""
    result = {}
    for one in counts:
        for key, number in one.items():
            result[key] = result.get(key, 0) + number
    return result


def was_restarted(client, uptime, since):
    """Whether the server was started anew after it had the given uptime, at
    time.monotonic() == since.  Of uptimes, which are in whole seconds and
    follow a clock of their own, 5 seconds are allowed for."""
    return int(status(client, "Uptime")) < \
        uptime + int(time.monotonic() - since) - 5
