#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""
Stress of InnoDB's open files: many connections, many tables, next to no files
that may be open, and a buffer pool that is smaller than the tables.

So nearly each read and each write of a page opens a file and closes another one.
Beside that connections create, drop, rename, rebuild, truncate, export and import
tables, grow them, and change innodb_open_files. Errors that statements get from
each other (a table that is gone, a timeout, a deadlock) are expected, and counted.

At the end, with everybody at rest: the server is alive and has never been started
anew, every table is sound, no row of the tables that nobody drops is lost (each
connection counts what it has committed), no more files are open than
innodb_open_files, and files were closed to make room.

Give it a server of its own: it drops and creates the database "openfiles", and
changes global variables. It prints one JSON object. Exit status 0 means that all
was well. What a sanitizer finds is in the server's log.
"""

import json
import os
import random
import sys
import threading
import time

sys.dont_write_bytecode = True
from benchlib import stress                             # noqa: E402
from benchlib.stress import Client, Gone, status        # noqa: E402

DATABASE = "openfiles"
KEPT = 60                       # tables that keep rows
OTHERS = 12                     # tables that anything is done to
LIMITS = (12, 20, 20, 20, 40)
OPTIONS = ("", "", "ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=8",
           "PAGE_COMPRESSED=1", "ROW_FORMAT=REDUNDANT")
# 1712 index corrupt, 1030 got error from engine, 1034, 1194, 1195, 1877
BROKEN = {"126", "127", "1030", "1034", "1035", "1194", "1195", "1712", "1877"}


def definition(number):
    return ("(a INT NOT NULL AUTO_INCREMENT PRIMARY KEY, who INT NOT NULL, "
            "b VARCHAR(3000) NOT NULL, KEY (who)) ENGINE=InnoDB CHARSET=latin1 "
            "STATS_PERSISTENT=0 " + OPTIONS[number % len(OPTIONS)])


def create(client):
    client.run(f"DROP DATABASE IF EXISTS {DATABASE}")
    client.run(f"CREATE DATABASE {DATABASE}")
    client.run(f"USE {DATABASE}")
    for prefix, count in (("kept", KEPT), ("t", OTHERS)):
        for number in range(count):
            client.run(f"CREATE TABLE {prefix}{number} " + definition(number))
            client.run(f"INSERT INTO {prefix}{number} (who, b) VALUES "
                       + ",".join(["(-1, REPEAT('b', 2500))"] * 40))


class Worker(threading.Thread):
    def __init__(self, args, number, deadline, datadir):
        super().__init__()
        self.args, self.number, self.deadline = args, number, deadline
        self.datadir = datadir
        self.rng = random.Random(f"{args.seed}/{number}")
        self.done = {}
        self.errors = {}
        self.lost = False
        self.kept = [0] * KEPT          # Rows inserted without error

    def statements(self):
        rng = self.rng
        kept = f"kept{rng.randrange(KEPT)}"
        number = rng.randrange(OTHERS)
        table = f"t{number}"
        key = rng.randrange(1, 50)
        choice = rng.random()
        if choice < 0.40:
            return "read", [rng.choice([
                f"SELECT SUM(LENGTH(b)) FROM {kept}",
                f"SELECT b FROM {kept} WHERE a = {key}",
                f"SELECT COUNT(*) FROM {table} FORCE INDEX (who)"])]
        if choice < 0.55:
            return "write", [rng.choice([
                f"UPDATE {kept} SET b = REPEAT('u', {rng.randrange(3000)}) "
                f"WHERE a = {key}",
                f"INSERT INTO {table} (who, b) VALUES ({self.number}, "
                f"REPEAT('x', {rng.randrange(3000)}))",
                f"DELETE FROM {table} WHERE a = {key}"])]
        if choice < 0.85:
            return "keep", rng.randrange(KEPT)
        if choice < 0.86:
            return "limit", [f"SET GLOBAL innodb_open_files = "
                             f"{rng.choice(LIMITS)}"]
        if choice < 0.88:
            return "export", [f"FLUSH TABLES {kept} FOR EXPORT",
                              "UNLOCK TABLES"]
        if choice < 0.90:
            # MariaDB passes pages of a compressed file that is being imported to the
            # doublewrite buffer, which a debug build does not allow.
            return ("import", table) if "PAGE_C" not in definition(number) \
                else ("read", [f"SELECT COUNT(*) FROM {table}"])
        away = f"away{self.number}"
        return "ddl", rng.choice([
            [f"CREATE OR REPLACE TABLE {table} " + definition(number)],
            [f"DROP TABLE IF EXISTS {table}",
             f"CREATE TABLE IF NOT EXISTS {table} " + definition(number)],
            [f"RENAME TABLE {table} TO {away}, {away} TO {table}"],
            [f"RENAME TABLE {kept} TO {away}, {away} TO {kept}"],
            [f"TRUNCATE TABLE {table}"],
            [f"ALTER TABLE {rng.choice([table, kept])} FORCE"],
            [f"ALTER TABLE {table} FORCE, ALGORITHM=COPY"],
            [f"INSERT INTO {table} (who, b) SELECT who, b FROM {kept}"],
            [f"CHECK TABLE {kept}"], [f"FLUSH TABLES {kept}"],
            ["SELECT COUNT(*) FROM INFORMATION_SCHEMA.INNODB_SYS_TABLESPACES"]])

    def keep(self, client, number):
        """ROW_COUNT() tells whether the row was inserted."""
        rows = client.run(
            f"INSERT INTO kept{number} (who, b) VALUES ({self.number}, "
            f"REPEAT('k', {self.rng.randrange(500)}));\nSELECT ROW_COUNT()")
        self.kept[number] += rows == [["1"]]

    def import_copy(self, client, table):
        """Export a table, import its file under a name of this connection."""
        copy = f"copy{self.number}"
        directory = os.path.join(self.datadir, DATABASE)
        client.run(f"CREATE TABLE {copy} LIKE {table}")
        client.run(f"ALTER TABLE {copy} DISCARD TABLESPACE")
        client.run(f"FLUSH TABLES {table} FOR EXPORT")
        try:
            for suffix in (".ibd", ".cfg"):
                with open(f"{directory}/{table}{suffix}", "rb") as source:
                    content = source.read()
                with open(f"{directory}/{copy}{suffix}", "wb") as target:
                    target.write(content)
        except OSError:
            pass                        # Not exported: there is no table
        client.run("UNLOCK TABLES")
        client.run(f"ALTER TABLE {copy} IMPORT TABLESPACE")
        client.run(f"SELECT COUNT(*) FROM {copy}")
        client.run(f"DROP TABLE IF EXISTS {copy}")

    def run(self):
        client = Client(self.args, database=DATABASE)
        try:
            client.run("SET SESSION lock_wait_timeout = 5, "
                       "innodb_lock_wait_timeout = 5, max_statement_time = 60")
            while time.monotonic() < self.deadline:
                kind, what = self.statements()
                if kind == "keep":
                    self.keep(client, what)
                elif kind == "import":
                    self.import_copy(client, what)
                else:
                    for statement in what:
                        client.run(statement)
                self.done[kind] = self.done.get(kind, 0) + 1
        except Gone:
            self.lost = True
        finally:
            client.close()
            self.errors = client.errors


def check(client, workers, problems):
    """Everybody is at rest. Return the number of tables checked."""
    client.run("SET GLOBAL innodb_open_files = 20")
    if int(status(client, "Innodb_num_open_files")) > 20:
        problems.append("more files open than innodb_open_files")
    if int(status(client, "Innodb_files_closed")) < 100:
        problems.append("hardly a file was closed to make room")
    tables = [row[0] for row in client.run(
        "SELECT TABLE_NAME FROM INFORMATION_SCHEMA.TABLES "
        f"WHERE TABLE_SCHEMA = '{DATABASE}'")]
    for table in tables:
        rows = client.run(f"CHECK TABLE {DATABASE}.{table} EXTENDED")
        if table.startswith("copy"):    # it may have no file
            continue
        if not rows or rows[-1][-1] != "OK":
            problems.append(f"CHECK TABLE {table}: {rows}")
    for number in range(KEPT):
        rows = client.run(f"SELECT who, COUNT(*) FROM {DATABASE}.kept{number} "
                          "GROUP BY who")
        have = {int(row[0]): int(row[1]) for row in rows}
        for worker in workers:
            if have.get(worker.number, 0) != worker.kept[number]:
                problems.append(
                    f"kept{number}: {have.get(worker.number, 0)} rows of "
                    f"connection {worker.number}, {worker.kept[number]} were "
                    "inserted")
        if have.get(-1) != 40:
            problems.append(f"kept{number}: first rows are lost")
    return len(tables)


def main():
    parser = stress.parser(__doc__, connections=12)
    stress.add_client(parser)
    args = parser.parse_args()

    problems, workers, checked, counters = [], [], 0, []
    main_client = Client(args, database="information_schema")
    try:
        create(main_client)
        if main_client.errors:
            problems.append("errors when creating the tables: "
                            f"{main_client.errors}")
        before = int(status(main_client, "Uptime"))
        datadir = main_client.run("SELECT @@datadir")[0][0]
        started = time.monotonic()
        workers = [Worker(args, number, started + args.seconds, datadir)
                   for number in range(args.connections)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(args.seconds + 300)
            if worker.is_alive():
                problems.append(f"connection {worker.number} hangs")
        if any(worker.lost for worker in workers):
            problems.append("a connection was lost")
        if stress.was_restarted(main_client, before, started):
            problems.append("the server was started anew")
        if not problems:
            checked = check(main_client, workers, problems)
            counters = main_client.run("SHOW STATUS LIKE 'Innodb_files%'")
            main_client.run(f"DROP DATABASE {DATABASE}")
    except (Gone, IndexError, TypeError):
        problems.append("the server is gone")

    done = stress.total(worker.done for worker in workers)
    errors = stress.total(worker.errors for worker in workers)
    for number in sorted(BROKEN & set(errors)):
        problems.append(f"error {number} (a broken table) {errors[number]} "
                        "times")
    if workers and not any(map(any, (worker.kept for worker in workers))):
        problems.append("no connection kept a row")
    print(json.dumps({
        "program": "stress_open_files", "ok": not problems, "seed": args.seed,
        "seconds": args.seconds, "connections": args.connections,
        "done": done, "errors": errors,
        "kept_rows": sum(sum(worker.kept) for worker in workers),
        "tables_checked": checked, "counters": dict(counters),
        "problems": problems}))
    main_client.close()
    # A thread that hangs must not keep the program from ending
    sys.stdout.flush()
    os._exit(1 if problems else 0)


if __name__ == "__main__":
    main()
