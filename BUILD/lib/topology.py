# SPDX-License-Identifier: GPL-2.0-only
"""The common part of the tests of replication and of Galera: nodes, the load
that runs on them, and the comparison of their data in the end.

All files are below one work directory.  Leaving `Topology` stops every
load and every server that was started, whatever ended the test.
"""

import argparse
import contextlib
import ctypes
import os
import pathlib
import pwd
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

from common import Problem, run
from outcome import Outcome

ALARM = re.compile(r"(?m)^.*(Assertion |got signal|\[ERROR\]|AddressSanitizer"
                   r"|ThreadSanitizer|runtime error:).*$")
SYSTEM_SCHEMAS = "('mysql','information_schema','performance_schema','sys')"


def say(text):
    print(f"-- {time.strftime('%H:%M:%S')} {text}", flush=True)


@contextlib.contextmanager
def timed(title):
    """Say how long something took."""
    begin = time.monotonic()
    yield
    say(f"{title}: {time.monotonic() - begin:.1f} s")


def free_ports(count):
    """Ports on which no process listens, outside the range from which the
    system gives ports to clients."""
    found = []
    while len(found) < count:
        port = random.randrange(20000, 30000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in found:
            found.append(port)
    return found


def until(what, seconds, question):
    """Ask until the answer is true; return it."""
    end = time.monotonic() + seconds
    while True:
        answer = question()
        if answer:
            return answer
        if time.monotonic() > end:
            raise Problem(f"waited {seconds} seconds in vain for: {what}")
        time.sleep(0.2)


def end_with_parent(number=signal.SIGTERM):
    """Should the test be killed, the process gets this signal."""
    ctypes.CDLL(None).prctl(1, number)       # PR_SET_PDEATHSIG


class SqlError(Problem):
    """A statement failed, or no server answers."""


class Node:
    """A server, which may be another build after each restart."""

    def __init__(self, name, trees, work, options):
        self.name = name
        self.trees = trees
        self.datadir = work / name
        self.log = work / f"{name}.err"
        self.pid_file = work / f"{name}.pid"
        self.socket = str(work / f"{name}.sock")
        if len(self.socket) > 107:
            raise Problem(f"the path of the socket {self.socket} is too "
                          "long; set TMPDIR to a shorter directory")
        self.port, = free_ports(1)
        self.process = None
        self.expected = []              # patterns of errors that are in order
        self.use("stock")
        self.options = [
            "--bind-address=127.0.0.1", f"--port={self.port}", "--skip-name-resolve",
            # Small caches: tables are evicted and opened all the time
            "--table-open-cache=40", "--table-definition-cache=400",
            "--innodb-log-file-size=32M",
            "--innodb-flush-log-at-trx-commit=2", "--max-connections=100",
            # A statement that waits for a row whose owner waits for the end
            # of FLUSH TABLES WITH READ LOCK holds that up: no server sees
            # this deadlock, only the timeout ends it
            "--innodb-lock-wait-timeout=2", "--performance-schema=OFF",
            *options]

    def use(self, variant):
        """The build to start the next time."""
        self.variant = variant
        self.source = self.trees / variant / "source"
        self.build = self.trees / variant / "release"

    def create_datadir(self, datadir=None):
        datadir = datadir or self.datadir
        script = pathlib.Path(__file__).resolve().parent / "create_datadir.sh"
        datadir.mkdir()
        run([script, self.source, self.build, datadir], "mariadb-install-db")

    def command(self, log, *more_options):
        command = [
            str(self.build / "sql" / "mariadbd"), "--no-defaults",
            f"--datadir={self.datadir}", f"--socket={self.socket}",
            f"--pid-file={self.pid_file}", f"--log-error={log}",
            f"--lc-messages-dir={self.build}/sql/share",
            f"--character-sets-dir={self.source}/sql/share/charsets",
            *self.options, *more_options]
        if os.geteuid() == 0:
            command.append("--user=root")
        return command

    def start(self, *more_options):
        """Start, and wait until it takes connections."""
        if not self.datadir.exists():
            self.create_datadir()
        self.pid_file.unlink(missing_ok=True)
        pathlib.Path(self.socket).unlink(missing_ok=True)
        self.process = subprocess.Popen(
            self.command(self.log, *more_options), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True, preexec_fn=end_with_parent)
        while not (self.pid_file.exists() and os.path.exists(self.socket)):
            self.lives()
            time.sleep(0.05)

    def lives(self):
        """Raise an error if the server has ended."""
        if self.process.poll() is not None:
            tail = self.log.read_text(errors="replace")[-3000:] if self.log.exists() else ""
            status, self.process = self.process.returncode, None
            raise Problem(f"{self.name} ({self.variant}) ended with status {status}:\n{tail}")

    def sql(self, text):
        """Run statements by one client; return the rows as lists of str."""
        done = subprocess.run(
            [str(self.build / "client" / "mariadb"), "--no-defaults",
             f"--socket={self.socket}", "--batch", "--skip-column-names"],
            input=text, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if done.returncode:
            raise SqlError(f"{done.stderr.strip()}\nin: {text[:300]}")
        return [line.split("\t") for line in done.stdout.splitlines()]

    def end(self, seconds=120):
        """Shut down, or kill what does not; return what went wrong."""
        self.process.terminate()
        try:
            status = self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return f"did not shut down in {seconds} seconds"
        self.process = None
        return f"ended with status {status}" if status else None

    def stop(self):
        problem = self.end() if self.process else None
        if problem:
            raise Problem(f"{self.name} ({self.variant}) {problem}")

    def kill(self):
        """End at once, as by a power cut to the process."""
        self.process.kill()
        self.process.wait()
        self.process = None

    def answers(self, text):
        """Rows, or None while the server does not serve."""
        try:
            return self.sql(text)
        except SqlError:
            return None

    def value(self, name):
        rows = self.answers(f"SHOW GLOBAL STATUS LIKE '{name}'")
        return rows[0][1] if rows else None

    def alarms(self):
        """The errors that the log reports."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return [match[0] for match in ALARM.finditer(text)
                if not any(re.search(pattern, match[0]) for pattern in self.expected)]


def sysbench(script, node, database, options):
    return ["sysbench", script, "--db-driver=mysql",
            f"--mysql-user={pwd.getpwuid(os.geteuid()).pw_name}",
            f"--mysql-socket={node.socket}", f"--mysql-db={database}",
            *(f"--{name.replace('_', '-')}={value}" for name, value in options.items())]


class Load:
    """A sysbench that runs beside the test."""

    def __init__(self, node, script, database, work, threads, seconds, ignore="", **options):
        self.node = node
        self.title = f"{script.rsplit('/', 1)[-1]} on {node.name}"
        self.output = work / f"load-{node.name}-{database}.txt"
        command = [
            *sysbench(script, node, database, options),
            f"--mysql-ignore-errors={ignore or 'none'}",
            f"--threads={threads}", "--events=0", f"--time={seconds}", "run"]
        with open(self.output, "wb") as stream:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stream,
                                            stderr=subprocess.STDOUT, start_new_session=True)

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait()

    def finish(self, seconds=180):
        """Wait for its end; return what went wrong, or None."""
        try:
            status = self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return f"{self.title} hangs, {seconds} seconds after its time"
        text = self.output.read_text(errors="replace")
        if status:
            fatal = re.findall(r"(?m)^.*(?:FATAL|ALERT).*$", text)
            return f"{self.title} failed: " + "; ".join(fatal[:3] or [text[-300:]])
        return None

    def count(self, label):
        """A number from sysbench's report."""
        match = re.search(rf"{label}:\s+(\d+)", self.output.read_text(errors="replace"))
        return int(match[1]) if match else 0


class Statements(threading.Thread):
    """A client that runs a list of statements over and over."""

    def __init__(self, node, title, make, ignore=(), pause=0.05):
        """make(round): SQL text of one round."""
        super().__init__(daemon=True)
        self.node = node
        self.title = title
        self.make = make
        self.ignore = ignore
        self.pause = pause
        self.rounds = 0
        self.error = None
        self.leave = threading.Event()

    def run(self):
        number = 0
        while not self.leave.wait(self.pause):
            number += 1
            try:
                self.node.sql(self.make(number))
                self.rounds += 1
            except SqlError as error:
                if any(f"ERROR {code} " in str(error) for code in self.ignore):
                    continue
                self.error = f"{self.title} on {self.node.name}: {error}"
                return

    def finish(self):
        """End; return what went wrong, or None."""
        self.leave.set()
        self.join(timeout=120)
        if self.is_alive():
            return f"{self.title} on {self.node.name} hangs"
        if not self.error and not self.rounds:
            return f"{self.title} on {self.node.name} never ran"
        return self.error


class Topology(Outcome):
    """The nodes of a test, its work directory and its outcome."""

    def __init__(self, trees):
        self.trees = trees
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="topology-"))
        self.nodes = []
        self.loads = []

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        # A second Ctrl-C must not leave servers behind
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            self.end(kind)
        finally:
            shutil.rmtree(self.work, ignore_errors=True)

    def end(self, kind):
        for load in self.loads:
            load.stop()
        for node in self.nodes:
            if node.process:
                problem = node.end(30)
                if problem:
                    self.check(f"{node.name} shuts down", problem)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if self.failures or kind not in (None, KeyboardInterrupt):
            for node in self.nodes:
                if node.log.exists():
                    tail = node.log.read_text(errors="replace")
                    print(f"--- end of {node.name}'s log\n"
                          + "\n".join(tail.splitlines()[-25:]), flush=True)

    def node(self, name, options, trees=None):
        node = Node(name, trees or self.trees, self.work, options)
        self.nodes.append(node)
        return node

    def load(self, *words, **options):
        load = Load(*words, **options)
        self.loads.append(load)
        return load

    @staticmethod
    def prepare(node, database, **options):
        """sysbench's own tables, filled."""
        node.sql(f"CREATE DATABASE {database}")
        run([*sysbench("oltp_write_only", node, database, options), "prepare"],
            "sysbench prepare")

    def compare(self, name, nodes):
        """All nodes hold the same tables, and all tables are sound."""
        contents = [contents_of(node) for node in nodes]
        sound = [problem for node in nodes for problem in unsound(node)]
        self.check(f"{name}: CHECK TABLE", "; ".join(sound[:5]))
        first = contents[0]
        rows = nodes[0].sql(
            "SELECT COALESCE(SUM(table_rows), 0) FROM information_schema.tables"
            f" WHERE table_schema NOT IN {SYSTEM_SCHEMAS}")[0][0]
        different = []
        if not int(rows):
            different.append("there are no rows to compare")
        for node, content in zip(nodes[1:], contents[1:]):
            for table in sorted(set(first) | set(content)):
                if first.get(table) != content.get(table):
                    different.append(
                        f"{table}: {nodes[0].name} has {str(first.get(table))[:200]}, "
                        f"{node.name} {str(content.get(table))[:200]}")
        self.check(f"{name}: {len(first)} tables equal on "
                   + ", ".join(f"{node.name} ({node.variant})" for node in nodes),
                   "; ".join(different[:5]))


def contents_of(node):
    """{table: (checksum, definition)} of all tables but the system's."""
    tables = node.sql(
        "SELECT CONCAT('`', table_schema, '`.`', table_name, '`'), table_type "
        f"FROM information_schema.tables WHERE table_schema NOT IN {SYSTEM_SCHEMAS} ORDER BY 1")
    result = {}
    for table, kind in tables:
        definition = node.sql(f"SHOW CREATE TABLE {table}")[0][1]
        # The counter may run ahead of the rows on the node that wrote them
        definition = re.sub(r" AUTO_INCREMENT=\d+", "", definition)
        checksum = (node.sql(f"CHECKSUM TABLE {table} EXTENDED")[0][1]
                    if kind == "BASE TABLE" else "")
        result[table] = (checksum, definition)
    return result


def unsound(node):
    tables = [row[0] for row in node.sql(
        "SELECT CONCAT('`', table_schema, '`.`', table_name, '`') "
        "FROM information_schema.tables WHERE table_type = 'BASE TABLE' "
        f"AND table_schema NOT IN {SYSTEM_SCHEMAS}")]
    problems = []
    if tables:
        for row in node.sql(f"CHECK TABLE {', '.join(tables)} EXTENDED"):
            if row[2] == "error" or (row[2] == "status" and row[3] != "OK"):
                problems.append(f"{node.name}: {' '.join(row)}")
    return problems


def parse_arguments(description, *options):
    """The command line of a test of several servers; options of its own are
    (name, int or pathlib.Path, default, what it is)."""
    parser = argparse.ArgumentParser(description=f"{description} (called by BUILD/test).")
    parser.add_argument("--trees", required=True,
                        type=lambda name: pathlib.Path(name).resolve())
    for name, kind, default, meaning in options:
        parser.add_argument(name, type=kind, default=default, help=meaning)
    return parser.parse_args()


def require(*programs):
    for program in programs:
        if not shutil.which(program):
            raise Problem(f"'{program}' is missing")
