#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""
Stress of loading InnoDB tables: many connections use tables that InnoDB does
not know (yet, or any more), while others change, rename and drop them.

More tables than table_definition_cache, and a table cache of ten. A debug server evicts
definitions at each commit (innodb_evict_tables_on_commit_debug); another one evicts them once a
second. Connections read, write in transactions across several tables, write rows that refer to
each other by FOREIGN KEY, and alter, truncate, rename, drop and create the same tables. Purge
removes what they delete. Rows that refer to one that is not there are shown at the end, and do
not count: see check(). benchlib/stress.py says what does.
"""

import sys

sys.path.insert(1, sys.path[0] + "/..")                 # of benchlib
sys.dont_write_bytecode = True
from benchlib import stress                             # noqa: E402
from benchlib.wire import Error                         # noqa: E402

DATABASE = "firsttouch"
FAMILIES = 20                   # of tables that refer to each other
KEPT = 30
COLUMNS = ("(a INT PRIMARY KEY AUTO_INCREMENT, who INT NOT NULL, b VARCHAR(40),"
           " v INT AS (who + 1) VIRTUAL, KEY (b), KEY (who, b), KEY (v)) ENGINE=InnoDB")
# Index corrupt, no or a discarded tablespace, not in the engine, a corrupt table
BROKEN = stress.BROKEN | {1712, 1812, 1814, 1932, 1877}


def create(session, args):
    # Let nearly every statement use tables that InnoDB does not know
    for variable in ("table_open_cache = 10", "table_definition_cache = 400",
                     "innodb_evict_tables_on_commit_debug = ON"):
        try:
            session.query("SET GLOBAL " + variable)
        except Error as error:
            if error.code != 1193:      # No such variable: no debug server
                raise
    stress.make_database(session, DATABASE)
    for number in range(args.tables):
        session.query(f"CREATE TABLE t{number} {COLUMNS}")
        session.query(f"INSERT INTO t{number} (who, b) VALUES (-1, 'first')")
    for number in range(KEPT):
        session.query(f"CREATE TABLE kept{number} {COLUMNS}")
    for number in range(FAMILIES):
        create_family(session, number)


def create_family(client, number):
    client.query(f"CREATE TABLE IF NOT EXISTS p{number} (a INT PRIMARY KEY) ENGINE=InnoDB")
    client.query(f"INSERT IGNORE INTO p{number} VALUES (1), (2), (3), (4), (5)")
    client.query(f"CREATE TABLE IF NOT EXISTS c{number} (a INT PRIMARY KEY,"
                 f" p INT, KEY (p), FOREIGN KEY (p) REFERENCES p{number} (a)) ENGINE=InnoDB")
    client.query(f"CREATE TABLE IF NOT EXISTS g{number} (a INT PRIMARY KEY,"
                 f" c INT, KEY (c), FOREIGN KEY (c) REFERENCES c{number} (a)"
                 " ON DELETE CASCADE) ENGINE=InnoDB")


class Worker(stress.Worker):
    SETTINGS = "lock_wait_timeout = 5, innodb_lock_wait_timeout = 3, max_statement_time = 120"

    def table(self):
        return f"t{self.rng.randrange(self.args.tables)}"

    def family(self):
        """Statements on a family, the kind of work and the statements"""
        rng = self.rng
        n, a = rng.randrange(FAMILIES), rng.randrange(1, 12)
        if rng.random() < 0.85:
            return "family", rng.choice([
                [f"INSERT INTO p{n} VALUES ({a})"],
                [f"INSERT INTO c{n} VALUES ({a}, {rng.randrange(12)})"],
                [f"INSERT INTO g{n} VALUES ({a}, {rng.randrange(12)})"],
                [f"DELETE FROM p{n} WHERE a = {a}"],
                [f"DELETE FROM c{n} WHERE a = {a}"],
                [f"SELECT * FROM p{n}"], [f"SELECT * FROM c{n}"]])
        away = f"fam{self.number}"
        return "family_ddl", rng.choice([
            [f"ALTER TABLE p{n} FORCE"], [f"ALTER TABLE c{n} FORCE"],
            [f"ALTER TABLE c{n} FORCE, ALGORITHM=COPY"],
            [f"TRUNCATE TABLE g{n}"],
            [f"RENAME TABLE c{n} TO {away}, {away} TO c{n}"],
            [f"RENAME TABLE p{n} TO {away}, {away} TO p{n}"],
            [f"DROP TABLE IF EXISTS g{n}"],
            [f"CREATE TABLE IF NOT EXISTS g{n} (a INT PRIMARY KEY, c INT,"
             f" KEY (c), FOREIGN KEY (c) REFERENCES c{n} (a) ON DELETE CASCADE) ENGINE=InnoDB"]])

    def statements(self):
        rng = self.rng
        table = self.table()
        choice = rng.random()
        if choice < 0.45:
            return "read", rng.choice([
                [f"SELECT COUNT(*) FROM {table}"],
                [f"SELECT * FROM {table} WHERE b = 'first'"],
                [f"SELECT COUNT(*) FROM {table} JOIN {self.table()} USING (b)"],
                [f"SELECT COUNT(*) FROM {table} x, kept{rng.randrange(KEPT)} WHERE x.v = 3"]])
        if choice < 0.60:
            some = [self.table() for _ in range(rng.randrange(1, 5))]
            return "write", (
                ["BEGIN"] +
                [rng.choice([
                    f"INSERT INTO {one} (who, b) VALUES ({self.number}, 'x')",
                    f"UPDATE {one} SET b = 'y' WHERE who = {self.number}",
                    f"DELETE FROM {one} WHERE who = {self.number}"]) for one in some] +
                [rng.choice(["COMMIT", "COMMIT", "ROLLBACK"])])
        if choice < 0.70:
            return "keep", self.keep_some
        if choice < 0.82:
            return self.family()
        if choice < 0.87:
            return "flush", rng.choice([
                ["FLUSH TABLES"], [f"FLUSH TABLES {table}"],
                [f"FLUSH TABLES kept{rng.randrange(KEPT)}"],
                [f"FLUSH TABLES {table} FOR EXPORT", "UNLOCK TABLES"]])
        if choice < 0.99:
            kept = f"kept{rng.randrange(KEPT)}"
            return "ddl", rng.choice([
                *self.ddl(table, kept, COLUMNS),
                [f"ALTER TABLE {kept} FORCE"],
                [f"ALTER TABLE {table} FORCE, ALGORITHM=COPY"],
                [f"ALTER TABLE {table} ADD COLUMN IF NOT EXISTS x INT DEFAULT 7 AFTER a"],
                [f"ALTER TABLE {table} DROP COLUMN IF EXISTS x"],
                [f"ALTER TABLE {table} ADD INDEX IF NOT EXISTS i (who)"],
                [f"ALTER TABLE {table} DROP INDEX IF EXISTS i"]])
        return "schema", rng.choice([
            ["SELECT COUNT(*) FROM INFORMATION_SCHEMA.INNODB_SYS_TABLES"],
            ["SELECT COUNT(*) FROM INFORMATION_SCHEMA.INNODB_SYS_TABLESTATS"],
            [f"ANALYZE TABLE {table}"], [f"CHECK TABLE {table}"],
            ["SELECT COUNT(*), SUM(DATA_LENGTH) FROM INFORMATION_SCHEMA.TABLES"
             f" WHERE TABLE_SCHEMA = '{DATABASE}'"]])

    def keep_some(self):
        """A transaction that inserts a row into three of the tables."""
        some = self.rng.sample(range(KEPT), 3)
        if any(self.execute(statement) is None for statement in [
                "BEGIN", *(f"INSERT INTO kept{number} (who, b) VALUES ({self.number}, "
                           "'kept')" for number in some)]):
            self.execute("ROLLBACK")
        elif self.execute("COMMIT") is not None:
            for number in some:
                self.kept[number] += 1


def check(session, workers, problems):
    """Rows that refer to one that is not there are printed, and are no problem: the
    unpatched server has some, too. With three families of tables and nothing but their
    statements, 12 connections make one in 20 to 40 s, patched or not."""
    tables, orphans = stress.tables_of(session, DATABASE), []
    stress.check_tables(session, DATABASE, tables, problems)
    stress.check_kept(session, DATABASE, workers, 0, problems)
    for number in range(FAMILIES):
        for child, column, parent in (("c", "p", "p"), ("g", "c", "c")):
            if f"{child}{number}" not in tables:
                continue
            rows = session.query(
                f"SELECT COUNT(*) FROM {DATABASE}.{child}{number} x LEFT JOIN "
                f"{DATABASE}.{parent}{number} y ON x.{column} = y.a "
                f"WHERE x.{column} IS NOT NULL AND y.a IS NULL")
            if int(rows[0][0]):
                orphans.append(f"{child}{number}")
    return {"tables_checked": len(tables), "rows_without_parents": orphans}


if __name__ == "__main__":
    stress.run(__doc__, DATABASE, create, Worker, check, tables=500, kept=KEPT, broken=BROKEN)
