#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""
Stress of the table cache: many connections, hundreds of tables, a tiny cache.

Connections do what comes by chance: read and write, change definitions, flush
in all forms, lock, use HANDLER, read the schema, dump and check, load and dump the
table cache (plugin table_cache_dump), kill each other, and change table_open_cache
and table_definition_cache, over tables of all engines that the server has, with
partitions, views, triggers, MERGE and sequences among them. Errors that such
statements get from each other (deadlocks, timeouts, a table that is gone, a
killed statement) are expected, and counted.

At the end, with everybody at rest: the server is alive and has never been
started anew, the number of open TABLEs is within the limit, the table cache's
own check finds nothing wrong (debug builds), and CHECK TABLE is content with
all tables.

Give it a server of its own: it drops and creates the database "stress", and
changes global variables. It prints one JSON object. Exit status 0 means that
all was well.
"""

import json
import random
import sys
import threading
import time

sys.path.insert(1, sys.path[0] + "/..")                 # of benchlib
sys.dont_write_bytecode = True
from benchlib import stress                             # noqa: E402
from benchlib.stress import Client, Gone, status        # noqa: E402

def create(client, engines, rng, tables):
    """Create the tables; return their names by kind."""
    names = {"base": [], "view": [], "merge": [], "sequence": [],
             "innodb": []}
    client.run("DROP DATABASE IF EXISTS stress")
    client.run("CREATE DATABASE stress")
    client.run("USE stress")
    plain = [e for e in ("MyISAM", "Aria", "InnoDB", "MEMORY", "CSV")
             if e in engines]
    for i in range(tables):
        name, engine = "t%d" % i, plain[i % len(plain)]
        if engine == "CSV":
            client.run("CREATE TABLE %s (a INT NOT NULL, b INT NOT NULL) "
                       "ENGINE=CSV" % name)
        else:
            partitions = ""
            if i % 7 == 0 and engine != "MEMORY":
                partitions = " PARTITION BY HASH (a) PARTITIONS 3"
            client.run("CREATE TABLE %s (a INT NOT NULL PRIMARY KEY, b INT) "
                       "ENGINE=%s%s" % (name, engine, partitions))
        client.run("INSERT INTO %s VALUES (1, 1), (2, 2), (3, 3)" % name)
        names["base"].append(name)
        if engine == "InnoDB":
            names["innodb"].append(name)
    if "MRG_MYISAM" in engines:
        for i in range(6):
            children = ["m%d_%d" % (i, j) for j in range(3)]
            for child in children:
                client.run("CREATE TABLE %s (a INT NOT NULL, b INT, KEY (a)) "
                           "ENGINE=MyISAM" % child)
            client.run("CREATE TABLE m%d (a INT NOT NULL, b INT, KEY (a)) "
                       "ENGINE=MERGE UNION=(%s) INSERT_METHOD=LAST"
                       % (i, ",".join(children)))
            names["merge"].append("m%d" % i)
            names["base"] += children
    for i in range(10):
        a, b = rng.sample(names["base"][:tables], 2)
        client.run("CREATE VIEW v%d AS SELECT x.a, y.b FROM %s x JOIN %s y "
                   "USING (a)" % (i, a, b))
        names["view"].append("v%d" % i)
    for i in range(4):
        client.run("CREATE SEQUENCE s%d" % i)
        names["sequence"].append("s%d" % i)
    for i in range(0, 60, 10):
        client.run("CREATE TRIGGER tr%d AFTER INSERT ON t%d FOR EACH ROW "
                   "UPDATE t%d SET b = b + 1 WHERE a = 1"
                   % (i, i, tables - 1 - i))
    return names


class Worker(threading.Thread):
    def __init__(self, args, number, names, deadline, shared):
        super().__init__()
        self.args, self.names, self.deadline = args, names, deadline
        self.shared = shared
        self.rng = random.Random("%d/%d" % (args.seed, number))
        self.done = {}
        self.errors = {}
        self.failure = None

    def table(self):
        kinds = self.names
        if self.rng.random() < 0.9:
            return self.rng.choice(kinds["base"])
        return self.rng.choice(kinds["view"] + kinds["merge"] +
                               kinds["base"])

    def base(self):
        return self.rng.choice(self.names["base"])

    def statements(self):
        """One thing to do: its kind, and a list of statements."""
        r, rng = self.rng.random(), self.rng
        a = rng.randrange(1, 50)
        if r < 0.30:
            return "read", ["SELECT COUNT(*) FROM %s" % self.table()
                            for _ in range(rng.randrange(1, 8))]
        if r < 0.36:
            tables = rng.sample(self.names["base"], rng.randrange(2, 12))
            return "join", ["SELECT COUNT(*) FROM " + ", ".join(tables) +
                            " WHERE " + " AND ".join(
                                "%s.a = %d" % (t, a) for t in tables)]
        if r < 0.56:
            t = self.table()
            return "write", rng.choice([
                ["INSERT IGNORE INTO %s VALUES (%d, %d)" % (t, a, a)],
                ["UPDATE %s SET b = b + 1 WHERE a = %d" % (t, a)],
                ["DELETE FROM %s WHERE a = %d AND a > 3" % (t, a)],
                ["BEGIN", "UPDATE %s SET b = 0 WHERE a = 1" % t,
                 "SELECT * FROM %s LIMIT 1" % self.table(),
                 rng.choice(["COMMIT", "ROLLBACK"])]])
        if r < 0.62:
            t = self.base()
            return "ddl", rng.choice([
                ["ALTER TABLE %s ADD COLUMN c INT NOT NULL" % t,
                 "ALTER TABLE %s DROP COLUMN c" % t],
                ["ALTER TABLE %s COMMENT '%d'" % (t, a)],
                ["RENAME TABLE %s TO x_%s" % (t, t),
                 "RENAME TABLE x_%s TO %s" % (t, t)],
                ["CREATE OR REPLACE TABLE c%d (a INT NOT NULL, b INT NOT NULL)"
                 " ENGINE=%s" % (a, rng.choice(["MyISAM", "Aria", "InnoDB"])),
                 "INSERT INTO c%d VALUES (1, 1)" % a,
                 "DROP TABLE c%d" % a],
                ["TRUNCATE TABLE %s" % t],
                ["CREATE OR REPLACE VIEW v%d AS SELECT a, b FROM %s"
                 % (rng.randrange(10), t)],
                ["CREATE OR REPLACE TRIGGER tr%d AFTER INSERT ON t%d FOR EACH "
                 "ROW SET @x = 1" % (a % 6 * 10, a % 6 * 10)],
                ["ANALYZE TABLE %s" % t]])
        if r < 0.68:
            t, u = self.base(), self.base()
            return "flush", rng.choice([
                ["FLUSH TABLES"], ["FLUSH TABLES %s, %s" % (t, u)],
                ["FLUSH TABLES %s WITH READ LOCK" % t,
                 "SELECT COUNT(*) FROM %s" % t, "UNLOCK TABLES"],
                ["FLUSH TABLES %s FOR EXPORT"
                 % rng.choice(self.names["innodb"] or [t]), "UNLOCK TABLES"],
                ["OPTIMIZE TABLE %s"
                 % rng.choice(self.names["innodb"] or [t])],
                ["FLUSH TABLES WITH READ LOCK",
                 "SELECT COUNT(*) FROM %s" % t, "UNLOCK TABLES"]])
        if r < 0.74:
            t, u = self.base(), self.base()
            return "lock", ["LOCK TABLES %s WRITE, %s AS u READ" % (t, u),
                            "SELECT COUNT(*) FROM %s" % t,
                            rng.choice(["UPDATE %s SET b = 5 WHERE a = 2" % t,
                                        "FLUSH TABLES",
                                        "SELECT COUNT(*) FROM %s AS u" % u]),
                            "UNLOCK TABLES"]
        if r < 0.80:
            t = self.base()
            return "handler", ["HANDLER %s OPEN AS h" % t, "HANDLER h READ FIRST",
                               "SELECT COUNT(*) FROM %s" % self.base(),
                               "HANDLER h READ NEXT", "HANDLER h CLOSE"]
        if r < 0.84:
            return "schema", [rng.choice([
                "SELECT COUNT(*), SUM(DATA_LENGTH) FROM "
                "INFORMATION_SCHEMA.TABLES WHERE TABLE_SCHEMA = 'stress'",
                "SHOW TABLE STATUS LIKE 't1%'", "SHOW OPEN TABLES",
                "SHOW COLUMNS FROM %s" % self.base(),
                "SELECT COUNT(*) FROM INFORMATION_SCHEMA.TRIGGERS",
                "SELECT SUM(HITS) FROM INFORMATION_SCHEMA.TABLE_CACHE",
                "SHOW GLOBAL STATUS LIKE '%open%'"])]
        if r < 0.88:
            t = self.table()
            return "prepared", ["PREPARE p FROM 'SELECT COUNT(*) FROM %s'" % t,
                                "EXECUTE p", "EXECUTE p",
                                "DEALLOCATE PREPARE p"]
        if r < 0.91:
            s = rng.choice(self.names["sequence"])
            return "sequence", [rng.choice(["SELECT NEXTVAL(%s)" % s,
                                            "ALTER SEQUENCE %s RESTART" % s])]
        if r < 0.94:
            t, u = self.base(), self.base()
            return "scan", rng.choice([
                ["SELECT SQL_NO_CACHE COUNT(*) FROM %s" % self.table()],
                ["LOCK TABLES %s READ LOCAL, %s AS u READ LOCAL" % (t, u),
                 "SHOW CREATE TABLE %s" % t,
                 "SELECT SQL_NO_CACHE COUNT(*) FROM %s" % t,
                 "SELECT COUNT(*) FROM %s AS u" % u, "UNLOCK TABLES"],
                ["CHECK TABLE %s" % t], ["CHECKSUM TABLE %s" % t],
                ["SHOW CREATE TABLE %s" % t, "SHOW INDEX FROM %s" % t]])
        if r < 0.95:
            return "warm", ["SET GLOBAL table_cache_%s_now = ON"
                            % rng.choice(["dump", "load"]),
                            rng.choice(["SHOW GLOBAL STATUS LIKE '%cache%'",
                                        "SET GLOBAL table_cache_load_abort=ON",
                                        "FLUSH TABLES"])]
        if r < 0.97:
            return "limit", ["SET GLOBAL table_open_cache = %d"
                             % rng.choice([10, 10, 12, 20, 50, 300]),
                             "SET GLOBAL table_definition_cache = %d"
                             % rng.choice([400, 400, 2000])]
        return "kill", None

    def kill(self, client):
        rows = client.run("SELECT ID FROM INFORMATION_SCHEMA.PROCESSLIST "
                          "WHERE USER = '%s' AND ID <> CONNECTION_ID()"
                          % self.args.user)
        ids = [r[0] for r in rows if r[0] not in self.shared["spared"]]
        if ids:
            client.run("KILL %s %s" % (self.rng.choice(["QUERY", "QUERY",
                                                        "CONNECTION"]),
                                       self.rng.choice(ids)))

    def work(self, client):
        settings = ("SET SESSION lock_wait_timeout = 2, "
                    "innodb_lock_wait_timeout = 2, max_statement_time = 20")
        client.run(settings)
        while time.monotonic() < self.deadline:
            kind, statements = self.statements()
            if statements is None:
                self.kill(client)
            else:
                for statement in statements:
                    client.run(statement)
            self.done[kind] = self.done.get(kind, 0) + 1

    def run(self):
        while time.monotonic() < self.deadline:
            client = Client(self.args)
            try:
                self.work(client)
            except Gone:
                self.done["client restarted"] = \
                    self.done.get("client restarted", 0) + 1
                time.sleep(0.1)
            finally:
                client.close()
                for number, count in client.errors.items():
                    self.errors[number] = self.errors.get(number, 0) + count


def check(client, problems):
    """Everybody is at rest."""
    client.run("UNLOCK TABLES")
    limit = int(client.run("SELECT @@GLOBAL.table_open_cache")[0][0])
    open_tables = int(status(client, "Open_tables"))
    if open_tables > limit:
        problems.append("%d TABLEs are open, the limit is %d"
                        % (open_tables, limit))
    invariants = status(client, "Table_cache_debug_check")
    if invariants not in (None, "OK"):
        problems.append("the table cache is wrong: " + invariants)
    client.run("SET GLOBAL table_open_cache = 10")
    checked = 0
    for (name,) in client.run("SELECT TABLE_NAME FROM "
                              "INFORMATION_SCHEMA.TABLES WHERE TABLE_SCHEMA = "
                              "'stress' AND TABLE_TYPE = 'BASE TABLE'"):
        rows = client.run("CHECK TABLE stress.`%s`" % name)
        checked += 1
        for row in rows:
            text = row[3] if len(row) > 3 else str(row)
            if row[2] == "note" or text == "OK":
                continue
            problems.append("CHECK TABLE %s: %s" % (name, text))
        if not rows:
            problems.append("CHECK TABLE %s says nothing" % name)
    client.run("FLUSH TABLES")
    left = int(status(client, "Open_tables"))
    if left > 10:
        problems.append("%d TABLEs are open after FLUSH TABLES" % left)
    invariants = status(client, "Table_cache_debug_check") or invariants
    return checked, invariants


def main():
    parser = stress.parser(__doc__, connections=32)
    parser.add_argument("--tables", type=int, default=240,
                        help="how many (default %(default)s); more than 400, and "
                        "definitions make room, too")
    stress.add_client(parser)
    args = parser.parse_args()

    problems = []
    main_client = Client(args, database="information_schema")
    try:
        me = main_client.run("SELECT CONNECTION_ID()")[0][0]
        engines = {r[0] for r in main_client.run(
            "SELECT ENGINE FROM INFORMATION_SCHEMA.ENGINES "
            "WHERE SUPPORT IN ('YES', 'DEFAULT')")}
        main_client.run("SET GLOBAL table_open_cache = 10")
        main_client.run("SET GLOBAL innodb_optimize_fulltext_only = ON")
        rng = random.Random(args.seed)
        names = create(main_client, engines, rng, args.tables)
        created = main_client.errors.copy()
        if created:
            problems.append("errors when creating the tables: %s" % created)
    except (Gone, IndexError):
        print(json.dumps({"ok": False, "problems": ["no server"]}))
        return 1

    before = int(status(main_client, "Uptime"))
    started = time.monotonic()
    shared = {"spared": {me}}
    workers = [Worker(args, i, names, started + args.seconds, shared)
               for i in range(args.connections)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(args.seconds + 300)
        if worker.is_alive():
            problems.append("a connection hangs")
            break

    result = {"program": "stress_table_cache", "seed": args.seed,
              "seconds": args.seconds, "connections": args.connections}
    result["done"] = stress.total(worker.done for worker in workers)
    result["errors"] = stress.total(worker.errors for worker in workers)
    try:
        if stress.was_restarted(main_client, before, started):
            problems.append("the server was started anew")
        for name in ("Opened_tables", "Table_open_cache_hits",
                     "Table_open_cache_misses", "Table_open_cache_evictions"):
            result[name] = status(main_client, name)
        if "a connection hangs" not in problems:
            result["tables_checked"], result["invariants"] = \
                check(main_client, problems)
    except (Gone, TypeError, ValueError):
        problems.append("the server is gone")
    main_client.close()
    result["ok"], result["problems"] = not problems, problems
    print(json.dumps(result, indent=1))
    return 0 if not problems else 1


if __name__ == "__main__":
    sys.exit(main())
