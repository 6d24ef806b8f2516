# SPDX-License-Identifier: GPL-2.0-only
"""Servers with a database for each of 100,000 customers: lists and accounts."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import threading
import time
from statistics import median

from benchlib import wire
from benchlib.scenario import Option, OwnServers, integers, tree_of
from benchlib.servers import BenchError, Server

FIVE = " of an account with five grants"
LISTS = {
    "SHOW DATABASES": "SHOW DATABASES",
    "TABLES with IN": "SELECT table_schema, table_name FROM "
                      "information_schema.tables WHERE table_schema IN "
                      "('site_000001', 'site_000003')"}
ROOT = "names/s, SHOW DATABASES of root"
ROOT_TABLES = "names/s, all names of TABLES, root"
ACCOUNTS = ("CREATE USER", "GRANT")
FLUSH = "ms, the longest login beside FLUSH PRIVILEGES"
GRANTS_OF_ONE = 5
LINKS = 50000                   # to one file each; ext4 has 65,000 at most


def site(number):
    return f"site_{number:06}"


def milliseconds(session, statement, repeat):
    """The median time until the whole answer is read."""
    times = []
    for _ in range(repeat):
        begin = time.monotonic()
        session.discard(statement)
        times.append(1000 * (time.monotonic() - begin))
    return median(times)


class Catalog(OwnServers):
    name = "catalog"
    question = (
        "How long does an account wait for the names of its own databases and "
        "tables? How long does an administrator wait for all names, and for "
        "changes of accounts? Does it take longer, the more databases there are?")
    method = (
        "Each database is a directory with a db.opt and the .frm file of a table. "
        "Each has an account with a grant on it.\n\n"
        "- ms of an account's statement: the time beyond that of SELECT 1.\n"
        "- CREATE USER, GRANT: the median of 20.\n"
        "- Logins: without the time for which their two threads waited for a CPU.")
    caveat = (
        "One statement runs at a time. The server's own tables of accounts are "
        "Aria tables in the page cache.")
    unit = "as named"
    pairs = 3

    numbers = Option("catalog-databases", "numbers of databases",
                     "1000,10000,100000,300000", "1000,5000", integers)

    @classmethod
    def check(cls, options):
        if min(cls.numbers(options)) < 10:
            raise BenchError("--catalog-databases: at least 10 each")

    @classmethod
    def disk(cls, options):
        # A directory, and rows of accounts
        return sum(cls.numbers(options)) * (6 << 10)

    @classmethod
    def labels(cls, options):
        return dict.fromkeys(
            (f"{number} databases: " for number in cls.numbers(options)),
            [*(f"ms, {name}{FIVE}" for name in LISTS), ROOT, ROOT_TABLES,
             *(f"ms, {name}" for name in ACCOUNTS), FLUSH])

    @staticmethod
    def server(trees, variant, options, part):
        return Server(tree_of(trees, variant),
                      options.data / f"catalog-{part.split()[0]}", [], variant)

    @classmethod
    def fill(cls, server, options, part, progress):
        number = int(part.split()[0])
        progress("creating accounts", 0, number)
        cls.create_accounts(server, number)
        server.sql("CREATE DATABASE model; CREATE TABLE model.t (a INT) ENGINE=MyISAM")
        for i in range(1, number + 1):
            if i % 10000 == 1:
                progress("creating databases", i, number)
            path = server.datadir / site(i)
            path.mkdir()
            if i % LINKS == 1:
                model = path
                (path / "db.opt").write_text(
                    "default-character-set=utf8mb4\ndefault-collation=utf8mb4_general_ci\n")
                shutil.copy(server.datadir / "model" / "t.frm", path)
            else:
                for name in ("db.opt", "t.frm"):
                    os.link(model / name, path / name)

    @staticmethod
    def create_accounts(server, number):
        server.sql(f"""
            INSERT INTO mysql.global_priv
              SELECT 'localhost', CONCAT('u', LPAD(seq, 6, '0')), '{{"access":0}}'
              FROM seq_1_to_{number};
            INSERT INTO mysql.db (Host, Db, User, Select_priv, Insert_priv)
              SELECT 'localhost', CONCAT('site\\\\_', LPAD(seq, 6, '0')),
                     CONCAT('u', LPAD(seq, 6, '0')), 'Y', 'Y'
              FROM seq_1_to_{number};
            INSERT INTO mysql.global_priv VALUES
              ('localhost', 'five', '{{"access":0}}');
            INSERT INTO mysql.db (Host, Db, User, Select_priv)
              SELECT 'localhost', CONCAT('site\\\\_', LPAD(seq, 6, '0')), 'five',
                     'Y' FROM seq_1_to_{GRANTS_OF_ONE};""", "mysql")

    @classmethod
    def measure_server(cls, server, options, part):
        with server:
            return cls.waits(server, int(part.split()[0]))

    @classmethod
    def waits(cls, server, number):
        found = {}
        all_tables = "SELECT table_schema, table_name FROM information_schema.tables"
        # Both servers find all directories in the page cache
        cls.client_ms(server, all_tables, 1)
        cls.client_ms(server, "SHOW DATABASES", 1)
        with contextlib.closing(wire.Connection(server.socket, user="five")) as session:
            repeat = 9 if number <= 10000 else 3
            for name, statement in LISTS.items():
                found[f"ms, {name}{FIVE}"] = max(
                    0.001, milliseconds(session, statement, repeat) -
                    milliseconds(session, "SELECT 1", 25))
        found[ROOT] = 1000 * number / cls.client_ms(server, "SHOW DATABASES")
        found[ROOT_TABLES] = 1000 * number / cls.client_ms(server, all_tables)
        found.update(cls.change_accounts(server))
        return found

    @staticmethod
    def client_ms(server, statement, repeat=3):
        """The median time of the command-line client for a long answer, beyond
        that for SELECT 1: it reads faster than Python does."""
        def once(text):
            begin = time.monotonic()
            subprocess.run([*server.client("--quick"), "-e", text],
                           stdout=subprocess.DEVNULL, check=True)
            return 1000 * (time.monotonic() - begin)

        return max(0.001, median([once(statement) for _ in range(repeat)]) -
                   median([once("SELECT 1") for _ in range(5)]))

    @classmethod
    def change_accounts(cls, server):
        found = {}
        with contextlib.closing(wire.Connection(server.socket)) as session:
            nothing = milliseconds(session, "SELECT 1", 25)
            times = {name: [] for name in ACCOUNTS}
            for i in range(20):
                user = f"'new{i * 7919 % 100:02}x'@'localhost'"
                for name, statement in zip(ACCOUNTS, (
                        f"CREATE USER {user}", f"GRANT SELECT ON `new\\_{i}`.* TO {user}")):
                    times[name].append(milliseconds(session, statement, 1))
                session.query(f"DROP USER {user}")
            for name, values in times.items():
                found[f"ms, {name}"] = max(0.001, median(values) - nothing)
            found[FLUSH] = cls.longest_login(server, session)
        return found

    @classmethod
    def longest_login(cls, server, session):
        """How long logins take, at most, while the grants are read again, beyond
        the time for which their threads waited for a CPU."""
        longest, stop = [0.0], threading.Event()

        def log_in():
            own = threading.get_native_id()
            while not stop.is_set():
                waits = cls.waits_for_cpu(server)
                own_wait = cls.wait_for_cpu("self", own)
                begin = time.monotonic()
                connection = wire.Connection(server.socket, user="five")
                taken = time.monotonic() - begin
                taken -= cls.wait_for_cpu("self", own) - own_wait
                waits_after = cls.waits_for_cpu(server)
                serving = connection.query(
                    "SELECT tid FROM information_schema.processlist WHERE id = "
                    "CONNECTION_ID()")[0][0].decode()
                connection.close()
                taken -= waits_after[serving] - waits.get(serving, 0)
                longest[0] = max(longest[0], 1000 * taken)

        thread = threading.Thread(target=log_in)
        thread.start()
        try:
            for _ in range(3):
                session.query("FLUSH PRIVILEGES")
        finally:
            stop.set()
            thread.join()
        return longest[0]

    @classmethod
    def waits_for_cpu(cls, server):
        """wait_for_cpu() of each thread of the server."""
        process = server.process.pid
        return {thread: cls.wait_for_cpu(process, thread)
                for thread in os.listdir(f"/proc/{process}/task")}

    @staticmethod
    def wait_for_cpu(process, thread):
        """The seconds for which a thread has been ready to run, and not running."""
        path = pathlib.Path(f"/proc/{process}/task/{thread}/schedstat")
        try:
            return int(path.read_text().split()[1]) / 1e9
        except OSError:         # the thread has ended, or the kernel has no such file
            return 0.0
