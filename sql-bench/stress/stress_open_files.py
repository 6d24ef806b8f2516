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

import os
import sys
import time

sys.path.insert(1, sys.path[0] + "/..")                 # of benchlib
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


class Worker(stress.KeepingWorker):
    SETTINGS = ("lock_wait_timeout = 5, innodb_lock_wait_timeout = 5, "
                "max_statement_time = 60")

    def __init__(self, args, number, deadline, datadir):
        super().__init__(args, number, deadline, DATABASE, KEPT)
        self.datadir = datadir

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
            return self.keep(rng.randrange(KEPT))
        if choice < 0.86:
            return "limit", [f"SET GLOBAL innodb_open_files = "
                             f"{rng.choice(LIMITS)}"]
        if choice < 0.88:
            return "export", [f"FLUSH TABLES {kept} FOR EXPORT",
                              "UNLOCK TABLES"]
        if choice < 0.90:
            # MariaDB passes pages of a compressed file that is being imported to the
            # doublewrite buffer, which a debug build does not allow.
            if "PAGE_C" in definition(number):
                return "read", [f"SELECT COUNT(*) FROM {table}"]
            return "import", lambda client: self.import_copy(client, table)
        return "ddl", rng.choice([
            *self.ddl(table, kept, definition(number)),
            [f"ALTER TABLE {rng.choice([table, kept])} FORCE"],
            [f"ALTER TABLE {table} FORCE, ALGORITHM=COPY"],
            [f"INSERT INTO {table} (who, b) SELECT who, b FROM {kept}"],
            [f"CHECK TABLE {kept}"], [f"FLUSH TABLES {kept}"],
            ["SELECT COUNT(*) FROM INFORMATION_SCHEMA.INNODB_SYS_TABLESPACES"]])

    def kept_row(self, _):
        return (f"(who, b) VALUES ({self.number}, "
                f"REPEAT('k', {self.rng.randrange(500)}))")

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
    stress.check_kept(client, workers,
                      [f"kept{number}" for number in range(KEPT)], 40, problems)
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
        stress.work(workers, started, problems)
        if stress.was_restarted(main_client, before, started):
            problems.append("the server was started anew")
        if not problems:
            checked = check(main_client, workers, problems)
            counters = main_client.run("SHOW STATUS LIKE 'Innodb_files%'")
            main_client.run(f"DROP DATABASE {DATABASE}")
    except (Gone, IndexError, TypeError):
        problems.append("the server is gone")

    main_client.close()
    stress.report("stress_open_files", args, workers, BROKEN, problems,
                  tables_checked=checked, counters=dict(counters))


if __name__ == "__main__":
    main()
