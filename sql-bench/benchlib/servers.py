# SPDX-License-Identifier: GPL-2.0-only
"""Start, ask and stop the servers that a benchmark compares.

One data directory serves the stock and the patched server in turn: their files are the same, so
neither has an advantage from how its files lie on disk.  All servers that were started are
stopped when Python ends, whatever ends it.
"""

import atexit
import os
import pathlib
import pwd
import shutil
import subprocess
import tempfile
import time

from .signals import whole
from .usage import cpu_time


class BenchError(Exception):
    """An error, in words for the user at the terminal."""


def said(*command, **more):
    """What a program prints; fail with that if it fails."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False,
                              stdin=subprocess.DEVNULL, **more)
    except FileNotFoundError:
        raise BenchError(f"the program {command[0]} is missing") from None
    if done.returncode:
        raise BenchError(f"{' '.join(map(str, command[:3]))} failed:\n"
                         + (done.stdout + done.stderr)[-2000:])
    return done.stdout


RUNNING = []
VERSIONS = {}                   # of each variant that was started
SHUTDOWN_SECONDS = 300
# Options of a server that makes data
NOT_DURABLE = ("--innodb-flush-log-at-trx-commit=0", "--skip-innodb-doublewrite",
               "--sync-frm=0", "--debug-no-sync")


def stop_all():
    errors = []
    for server in list(RUNNING):
        try:
            server.stop()
        except BenchError as error:
            errors.append(str(error))
    if errors:
        raise BenchError("; ".join(errors))


atexit.register(stop_all)


class Server:
    """One mariadbd, from one build tree, on one data directory."""

    def __init__(self, tree, datadir, options=(), variant=None, build="release"):
        """tree: directory with source/ and the build.

        The account that the data directory has is that of the user who runs
        this program: create_datadir.sh.
        """
        # mariadbd would look for relative paths in other directories
        tree, datadir = tree.absolute(), datadir.absolute()
        self.source = tree / "source"
        self.build = tree / build
        self.variant = variant or tree.name
        self.program = str(self.build / "sql" / "mariadbd")
        self.datadir = datadir
        self.options = list(options)
        self.environment = {}           # besides this program's own
        self.wrapper = []               # a program that runs the server, if any
        self.account = pwd.getpwuid(os.geteuid()).pw_name
        self.process = None
        # A short path: a socket's is limited to 107 characters
        self.run_directory = None

    @property
    def socket(self):
        return f"{self.run_directory}/s"

    def create_datadir(self, *options):
        """Create the data directory, complete or not at all. options: of the
        server that fills it."""
        if self.datadir.exists():
            return
        self.datadir.parent.mkdir(parents=True, exist_ok=True)
        new = pathlib.Path(tempfile.mkdtemp(prefix=".new-", dir=self.datadir.parent))
        script = (pathlib.Path(__file__).resolve().parents[2] / "BUILD/lib"
                  / "create_datadir.sh")
        done = subprocess.run([script, self.source, self.build, new, *options],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False)
        if done.returncode:
            shutil.rmtree(new)
            raise BenchError("mariadb-install-db failed:\n" + done.stdout)
        new.rename(self.datadir)

    def copy_datadir(self, other):
        """Take over the data of another server; neither of them runs."""
        shutil.rmtree(self.datadir, ignore_errors=True)
        new = pathlib.Path(tempfile.mkdtemp(prefix=".new-", dir=self.datadir.parent))
        try:
            shutil.copytree(other.datadir, new, dirs_exist_ok=True)
            new.rename(self.datadir)
        except (OSError, shutil.Error) as error:
            raise BenchError(f"copying {other.datadir} failed: {error}") from None
        finally:
            shutil.rmtree(new, ignore_errors=True)

    def start(self, *more_options):
        with whole():
            return self.start_and_wait(*more_options)

    def start_and_wait(self, *more_options):
        self.create_datadir()
        self.run_directory = tempfile.mkdtemp(prefix="tcbench-")
        log = open(f"{self.run_directory}/log", "wb")
        command = [
            # Should this program be killed, the server shuts down
            "setpriv", "--pdeathsig=TERM", *self.wrapper, self.program,
            "--no-defaults",
            f"--datadir={self.datadir}", f"--socket={self.socket}",
            f"--pid-file={self.run_directory}/pid", "--skip-networking",
            # A server that starts removes the temporary tables that it finds
            f"--tmpdir={self.run_directory}",
            f"--lc-messages-dir={self.build}/sql/share",
            f"--character-sets-dir={self.source}/sql/share/charsets",
            "--loose-skip-name-resolve", *self.options, *more_options]
        if os.geteuid() == 0:
            command.append("--user=root")
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL,
                                        stdout=log, stderr=log,
                                        env={**os.environ,
                                             **self.environment}, process_group=0)
        log.close()
        RUNNING.append(self)
        while not os.path.exists(f"{self.run_directory}/pid"):
            if self.process.poll() is not None:
                text = pathlib.Path(self.run_directory, "log").read_text(
                    errors="replace")
                self.forget()
                raise BenchError(f"the {self.variant} server did not start:\n" + text[-2000:])
            time.sleep(0.05)
        # Answered when the start is complete. A signal to end that comes before that may be lost
        VERSIONS[self.variant] = self.version()
        return self

    def forget(self):
        RUNNING.remove(self)
        shutil.rmtree(self.run_directory, ignore_errors=True)
        self.process = None

    def stop(self):
        """Shut down cleanly and wait for the end of it."""
        if not self.process:
            return
        with whole():
            self.process.terminate()
            try:
                status = self.process.wait(SHUTDOWN_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()
                raise BenchError(f"the {self.variant} server did not shut "
                                 f"down in {SHUTDOWN_SECONDS} seconds; it was killed") from None
            self.forget()
            if status:
                raise BenchError(f"the {self.variant} server ended with status {status}")

    def kill(self):
        """End it as a crash would."""
        with whole():
            self.process.kill()
            self.process.wait()
            self.forget()

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    def client(self, *options):
        return [str(self.build / "client" / "mariadb"), "--no-defaults",
                f"--socket={self.socket}", "--batch", "--skip-column-names",
                *options]

    def sql(self, text, database=None):
        """Run statements by one client; return the rows as lists of str."""
        done = subprocess.run(self.client(*([database] if database else [])),
                              input=text, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False)
        if done.returncode:
            raise BenchError(f"{done.stderr.strip()}\nin: {text[:300]}")
        return [line.split("\t") for line in done.stdout.splitlines()]

    def status(self, name):
        rows = self.sql(f"SHOW GLOBAL STATUS LIKE '{name}'")
        return int(rows[0][1]) if rows else None

    def version(self):
        """Its version, and the patch set's checksum if it has that."""
        revision = self.sql(
            "SHOW GLOBAL VARIABLES LIKE 'version_source_revision'")
        stamp = revision[0][1].partition("+")[2] if revision else ""
        return self.sql("SELECT VERSION()")[0][0] + (f" ({stamp})" if stamp else "")

    def cpu_seconds(self):
        """CPU time that the server has used."""
        return cpu_time(self.process.pid)


def make_once(made, fill, copies=(), progress=None):
    """Unless that was done, let a server run without durability, call fill(server) to make
    what it has, and stop it.

    copies: servers that get a copy each of its data, which is then removed. The data of
    all of them is in one directory, and nothing else.
    """
    place = made.datadir.parent if copies else made.datadir
    if (place / "ready").exists():
        return
    shutil.rmtree(place, ignore_errors=True)
    made.start(*NOT_DURABLE)
    fill(made)
    made.stop()
    for number, server in enumerate(copies):
        progress("copying the data", number, len(copies))
        server.copy_datadir(made)
    if copies:
        shutil.rmtree(made.datadir)
    os.sync()
    (place / "ready").touch()


def create_tables(server, database, engine, count, progress, columns="a INT", rows=""):
    """Make count tables t1..tcount, unless they are there. rows: what follows INSERT INTO tN"""
    have = server.sql("SELECT COUNT(*) FROM information_schema.tables "
                      f"WHERE table_schema='{database}'")
    if have == [[str(count)]]:
        return
    server.sql(f"DROP DATABASE IF EXISTS {database}; CREATE DATABASE {database}")
    step = 1000
    for first in range(1, count + 1, step):
        progress(f"creating {engine} tables", first - 1, count)
        server.sql("".join(
            f"CREATE TABLE t{number} ({columns}) ENGINE={engine};\n"
            + f"INSERT INTO t{number} {rows};\n" * bool(rows)
            for number in range(first, min(first + step, count + 1))), database)
    progress(f"creating {engine} tables", count, count)
