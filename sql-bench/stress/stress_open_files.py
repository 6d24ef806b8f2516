#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""
Stress of InnoDB's open files: many connections, many tables, next to no files
that may be open, and a buffer pool that is smaller than the tables.

So nearly each read and each write of a page opens a file and closes another one.
Beside that connections create, drop, rename, rebuild, truncate, export and import
tables, grow them, and change innodb_open_files. Beside what benchlib/stress.py checks, no
more files are open at the end than innodb_open_files, and files were closed to make room.
"""

import os
import shutil
import sys

sys.path.insert(1, sys.path[0] + "/..")                 # of benchlib
sys.dont_write_bytecode = True
from benchlib import stress                             # noqa: E402

DATABASE = "openfiles"
KEPT = 60                       # tables that keep rows
OTHERS = 12                     # tables that anything is done to
LIMITS = (12, 20, 20, 20, 40)
OPTIONS = ("", "", "ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=8",
           "PAGE_COMPRESSED=1", "ROW_FORMAT=REDUNDANT")
# An error from the engine, index corrupt, a corrupt table
BROKEN = stress.BROKEN | {1030, 1712, 1877}


def definition(number):
    return ("(a INT NOT NULL AUTO_INCREMENT PRIMARY KEY, who INT NOT NULL, "
            "b VARCHAR(3000) NOT NULL, KEY (who)) ENGINE=InnoDB CHARSET=latin1 "
            "STATS_PERSISTENT=0 " + OPTIONS[number % len(OPTIONS)])


def create(session, _):
    stress.make_database(session, DATABASE)
    for prefix, count in (("kept", KEPT), ("t", OTHERS)):
        for number in range(count):
            session.query(f"CREATE TABLE {prefix}{number} " + definition(number))
            session.query(f"INSERT INTO {prefix}{number} (who, b) VALUES "
                          + ",".join(["(-1, REPEAT('b', 2500))"] * 40))


class Worker(stress.Worker):
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
                f"UPDATE {kept} SET b = REPEAT('u', {rng.randrange(3000)}) WHERE a = {key}",
                f"INSERT INTO {table} (who, b) VALUES ({self.number}, "
                f"REPEAT('x', {rng.randrange(3000)}))",
                f"DELETE FROM {table} WHERE a = {key}"])]
        if choice < 0.85:
            return self.keep(rng.randrange(KEPT))
        if choice < 0.86:
            return "limit", [f"SET GLOBAL innodb_open_files = {rng.choice(LIMITS)}"]
        if choice < 0.88:
            return "export", [f"FLUSH TABLES {kept} FOR EXPORT",
                              "UNLOCK TABLES"]
        if choice < 0.90:
            # MariaDB passes pages of a compressed file that is being imported to the
            # doublewrite buffer, which a debug build does not allow.
            if "PAGE_C" in definition(number):
                return "read", [f"SELECT COUNT(*) FROM {table}"]
            return "import", lambda: self.import_copy(table)
        return "ddl", rng.choice([
            *self.ddl(table, kept, definition(number)),
            [f"ALTER TABLE {rng.choice([table, kept])} FORCE"],
            [f"ALTER TABLE {table} FORCE, ALGORITHM=COPY"],
            [f"INSERT INTO {table} (who, b) SELECT who, b FROM {kept}"],
            [f"CHECK TABLE {kept}"], [f"FLUSH TABLES {kept}"],
            ["SELECT COUNT(*) FROM INFORMATION_SCHEMA.INNODB_SYS_TABLESPACES"]])

    def kept_row(self):
        return f"(who, b) VALUES ({self.number}, REPEAT('k', {self.rng.randrange(500)}))"

    def import_copy(self, table):
        """Export a table, import its file under a name of this connection."""
        copy = f"copy{self.number}"
        (datadir,), = self.session.text("SELECT @@datadir")
        directory = os.path.join(datadir, DATABASE)
        if self.execute(f"CREATE TABLE {copy} LIKE {table}") is None:
            return                      # without a table nobody would remove the file
        self.execute(f"ALTER TABLE {copy} DISCARD TABLESPACE")
        self.execute(f"FLUSH TABLES {table} FOR EXPORT")
        try:
            for suffix in (".ibd", ".cfg"):
                shutil.copyfile(f"{directory}/{table}{suffix}", f"{directory}/{copy}{suffix}")
        except OSError:
            pass                        # not exported: there is no table
        for statement in ("UNLOCK TABLES", f"ALTER TABLE {copy} IMPORT TABLESPACE",
                          f"SELECT COUNT(*) FROM {copy}",
                          f"DROP TABLE IF EXISTS {copy}"):
            self.execute(statement)


def check(session, workers, problems):
    session.query("SET GLOBAL innodb_open_files = 20")
    counters = session.status("Innodb_%file%")
    if counters["Innodb_num_open_files"] > 20:
        problems.append("more files open than innodb_open_files")
    if counters.get("Innodb_files_closed", 100) < 100:
        problems.append("hardly a file was closed to make room")
    # A copy may have no file
    tables = [table for table in stress.tables_of(session, DATABASE)
              if not table.startswith("copy")]
    stress.check_tables(session, DATABASE, tables, problems, "EXTENDED")
    stress.check_kept(session, DATABASE, workers, 40, problems)
    session.query(f"DROP DATABASE {DATABASE}")
    return {"tables_checked": len(tables), "counters": counters}


if __name__ == "__main__":
    stress.run(__doc__, DATABASE, create, Worker, check, kept=KEPT, broken=BROKEN)
