#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""
Stress of the table cache: many connections, hundreds of tables, a tiny cache.

Connections read and write, change definitions, flush in all forms, lock, use HANDLER, read the
schema, dump and check, load and dump the table cache (plugin table_cache_dump), kill each other,
and change table_open_cache and table_definition_cache, over tables of all engines that the
server has, with partitions, views, triggers, MERGE and sequences among them. Beside what
benchlib/stress.py checks, the number of open TABLEs is within the limit at the end, and the
table cache's own check finds nothing wrong (debug builds).
"""

import random
import sys
import time

sys.path.insert(1, sys.path[0] + "/..")                 # of benchlib
sys.dont_write_bytecode = True
from benchlib import stress                             # noqa: E402

DATABASE = "stress"


def create(session, args):
    """Create the tables; return their names by kind, and the connection that makes them."""
    rng, tables = random.Random(args.seed), args.tables
    engines = {name for name, in session.text(
        "SELECT ENGINE FROM INFORMATION_SCHEMA.ENGINES WHERE SUPPORT IN ('YES', 'DEFAULT')")}
    session.query("SET GLOBAL table_open_cache = 10")
    session.query("SET GLOBAL innodb_optimize_fulltext_only = ON")
    stress.make_database(session, DATABASE)
    names = {"base": [], "view": [], "merge": [], "sequence": [], "innodb": []}
    plain = [engine for engine in ("MyISAM", "Aria", "InnoDB", "MEMORY", "CSV")
             if engine in engines]
    for i in range(tables):
        name, engine = f"t{i}", plain[i % len(plain)]
        key = "" if engine == "CSV" else " PRIMARY KEY"
        partitions = (" PARTITION BY HASH (a) PARTITIONS 3"
                      if i % 7 == 0 and engine not in ("CSV", "MEMORY") else "")
        session.query(f"CREATE TABLE {name} (a INT NOT NULL{key}, b INT NOT NULL) "
                      f"ENGINE={engine}{partitions}")
        session.query(f"INSERT INTO {name} VALUES (1, 1), (2, 2), (3, 3)")
        names["base"].append(name)
        if engine == "InnoDB":
            names["innodb"].append(name)
    if "MRG_MYISAM" in engines:
        for i in range(6):
            children = [f"m{i}_{j}" for j in range(3)]
            for child in children:
                session.query(f"CREATE TABLE {child} (a INT NOT NULL, b INT, KEY (a)) "
                              "ENGINE=MyISAM")
            session.query(f"CREATE TABLE m{i} (a INT NOT NULL, b INT, KEY (a)) "
                          f"ENGINE=MERGE UNION=({','.join(children)}) INSERT_METHOD=LAST")
            names["merge"].append(f"m{i}")
            names["base"] += children
    for i in range(10):
        a, b = rng.sample(names["base"][:tables], 2)
        session.query(f"CREATE VIEW v{i} AS SELECT x.a, y.b FROM {a} x JOIN {b} y USING (a)")
        names["view"].append(f"v{i}")
    for i in range(4):
        session.query(f"CREATE SEQUENCE s{i}")
        names["sequence"].append(f"s{i}")
    for i in range(0, 60, 10):
        session.query(f"CREATE TRIGGER tr{i} AFTER INSERT ON t{i} FOR EACH ROW "
                      f"UPDATE t{tables - 1 - i} SET b = b + 1 WHERE a = 1")
    return names, int(session.query("SELECT CONNECTION_ID()")[0][0])


class Worker(stress.Worker):
    SETTINGS = "lock_wait_timeout = 2, innodb_lock_wait_timeout = 2, max_statement_time = 20"

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.names, self.spared = self.made

    def table(self):
        names = self.names
        if self.rng.random() < 0.9:
            return self.base()
        return self.rng.choice(names["view"] + names["merge"] + names["base"])

    def base(self):
        return self.rng.choice(self.names["base"])

    def innodb(self):
        return self.rng.choice(self.names["innodb"] or self.names["base"])

    def statements(self):
        r, rng = self.rng.random(), self.rng
        a, t, u = rng.randrange(1, 50), self.base(), self.base()
        if r < 0.30:
            return "read", [f"SELECT COUNT(*) FROM {self.table()}"
                            for _ in range(rng.randrange(1, 8))]
        if r < 0.36:
            tables = rng.sample(self.names["base"], rng.randrange(2, 12))
            return "join", [f"SELECT COUNT(*) FROM {', '.join(tables)} WHERE "
                            + " AND ".join(f"{one}.a = {a}" for one in tables)]
        if r < 0.56:
            t = self.table()
            return "write", rng.choice([
                [f"INSERT IGNORE INTO {t} VALUES ({a}, {a})"],
                [f"UPDATE {t} SET b = b + 1 WHERE a = {a}"],
                [f"DELETE FROM {t} WHERE a = {a} AND a > 3"],
                ["BEGIN", f"UPDATE {t} SET b = 0 WHERE a = 1",
                 f"SELECT * FROM {self.table()} LIMIT 1",
                 rng.choice(["COMMIT", "ROLLBACK"])]])
        if r < 0.62:
            return "ddl", rng.choice([
                [f"ALTER TABLE {t} ADD COLUMN c INT NOT NULL",
                 f"ALTER TABLE {t} DROP COLUMN c"],
                [f"ALTER TABLE {t} COMMENT '{a}'"],
                [f"RENAME TABLE {t} TO x_{t}", f"RENAME TABLE x_{t} TO {t}"],
                [f"CREATE OR REPLACE TABLE c{a} (a INT NOT NULL, b INT NOT NULL)"
                 f" ENGINE={rng.choice(['MyISAM', 'Aria', 'InnoDB'])}",
                 f"INSERT INTO c{a} VALUES (1, 1)", f"DROP TABLE c{a}"],
                [f"TRUNCATE TABLE {t}"],
                [f"CREATE OR REPLACE VIEW v{rng.randrange(10)} AS SELECT a, b FROM {t}"],
                [f"CREATE OR REPLACE TRIGGER tr{a % 6 * 10} AFTER INSERT ON "
                 f"t{a % 6 * 10} FOR EACH ROW SET @x = 1"],
                [f"ANALYZE TABLE {t}"]])
        if r < 0.68:
            return "flush", rng.choice([
                ["FLUSH TABLES"], [f"FLUSH TABLES {t}, {u}"],
                [f"FLUSH TABLES {t} WITH READ LOCK", f"SELECT COUNT(*) FROM {t}",
                 "UNLOCK TABLES"],
                [f"FLUSH TABLES {self.innodb()} FOR EXPORT", "UNLOCK TABLES"],
                [f"OPTIMIZE TABLE {self.innodb()}"],
                ["FLUSH TABLES WITH READ LOCK", f"SELECT COUNT(*) FROM {t}",
                 "UNLOCK TABLES"]])
        if r < 0.74:
            return "lock", [f"LOCK TABLES {t} WRITE, {u} AS u READ",
                            f"SELECT COUNT(*) FROM {t}",
                            rng.choice([f"UPDATE {t} SET b = 5 WHERE a = 2",
                                        "FLUSH TABLES",
                                        f"SELECT COUNT(*) FROM {u} AS u"]),
                            "UNLOCK TABLES"]
        if r < 0.80:
            return "handler", [f"HANDLER {t} OPEN AS h", "HANDLER h READ FIRST",
                               f"SELECT COUNT(*) FROM {u}",
                               "HANDLER h READ NEXT", "HANDLER h CLOSE"]
        if r < 0.84:
            return "schema", [rng.choice([
                "SELECT COUNT(*), SUM(DATA_LENGTH) FROM INFORMATION_SCHEMA.TABLES "
                f"WHERE TABLE_SCHEMA = '{DATABASE}'",
                "SHOW TABLE STATUS LIKE 't1%'", "SHOW OPEN TABLES",
                f"SHOW COLUMNS FROM {t}",
                "SELECT COUNT(*) FROM INFORMATION_SCHEMA.TRIGGERS",
                "SELECT SUM(HITS) FROM INFORMATION_SCHEMA.TABLE_CACHE",
                "SHOW GLOBAL STATUS LIKE '%open%'"])]
        if r < 0.88:
            return "prepared", [f"PREPARE p FROM 'SELECT COUNT(*) FROM {self.table()}'",
                                "EXECUTE p", "EXECUTE p", "DEALLOCATE PREPARE p"]
        if r < 0.91:
            s = rng.choice(self.names["sequence"])
            return "sequence", [rng.choice([f"SELECT NEXTVAL({s})",
                                            f"ALTER SEQUENCE {s} RESTART"])]
        if r < 0.94:
            return "scan", rng.choice([
                [f"SELECT SQL_NO_CACHE COUNT(*) FROM {self.table()}"],
                [f"LOCK TABLES {t} READ LOCAL, {u} AS u READ LOCAL",
                 f"SHOW CREATE TABLE {t}", f"SELECT SQL_NO_CACHE COUNT(*) FROM {t}",
                 f"SELECT COUNT(*) FROM {u} AS u", "UNLOCK TABLES"],
                [f"CHECK TABLE {t}"], [f"CHECKSUM TABLE {t}"],
                [f"SHOW CREATE TABLE {t}", f"SHOW INDEX FROM {t}"]])
        if r < 0.95:
            return "warm", [f"SET GLOBAL table_cache_{rng.choice(['dump', 'load'])}_now = ON",
                            rng.choice(["SHOW GLOBAL STATUS LIKE '%cache%'",
                                        "SET GLOBAL table_cache_load_abort=ON",
                                        "FLUSH TABLES"])]
        if r < 0.97:
            return "limit", ["SET GLOBAL table_open_cache = "
                             f"{rng.choice([10, 10, 12, 20, 50, 300])}",
                             "SET GLOBAL table_definition_cache = "
                             f"{rng.choice([400, 400, 2000])}"]
        return "kill", self.kill

    def kill(self):
        rows = self.execute("SELECT ID FROM INFORMATION_SCHEMA.PROCESSLIST WHERE "
                            f"USER = '{self.args.user}' AND ID NOT IN "
                            f"(CONNECTION_ID(), {self.spared})")
        if rows:
            how = self.rng.choice(["QUERY", "QUERY", "CONNECTION"])
            self.execute(f"KILL {how} {int(self.rng.choice(rows)[0])}")

    def run(self):
        """Somebody kills it now and then."""
        while time.monotonic() < self.deadline:
            super().run()
            if self.lost:
                self.done["connected again"] += 1
                self.lost = None
                time.sleep(0.1)


def check(session, _, problems):
    session.query("UNLOCK TABLES")
    counters = session.status("Table_open_cache%")

    def check_cache(limit, when):
        number = session.status("Open_tables")["Open_tables"]
        if number > limit:
            problems.append(f"{number} TABLEs are open {when}, the limit is {limit}")
        # A debug build says more
        for _, said in session.text("SHOW GLOBAL STATUS LIKE 'Table_cache_debug_check'"):
            if said != "OK":
                problems.append(f"the table cache is wrong {when}: {said}")

    check_cache(int(session.query("SELECT @@GLOBAL.table_open_cache")[0][0]), "at rest")
    session.query("SET GLOBAL table_open_cache = 10")
    tables = stress.tables_of(session, DATABASE)
    stress.check_tables(session, DATABASE, tables, problems)
    session.query("FLUSH TABLES")
    check_cache(10, "after FLUSH TABLES")
    return {"tables_checked": len(tables), "counters": counters}


if __name__ == "__main__":
    stress.run(__doc__, DATABASE, create, Worker, check, connections=32, tables=240)
