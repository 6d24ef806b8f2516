#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""
Random DDL and DML, kill -9, recovery, and a comparison with what was acknowledged.

Some connections create, change, rename, swap, truncate and drop tables of all engines: with
partitions, FOREIGN KEYs, triggers, FULLTEXT and virtual columns. Each has databases of its own,
and keeps a ledger of what the server has answered. Others read, flush, check, optimize and take
the locks of a backup beside them. After some statements the server is killed, and recovers. Then

- each table has the rows of the ledger, and a table that a statement in flight touches
  has them as before or as after that statement;
- each table has its files and its row in INNODB_SYS_TABLES, and nothing else is left;
- each FOREIGN KEY has its parent;
- CHECK TABLE EXTENDED is content, and the error log has no error.

The next kill goes on with the same data directory, until it has had --kills of them. Then, if
the directory has a binary log, a replica that starts empty executes all of it, and has
to have the same tables and rows.

A directory's seed, a number, chooses its settings, each statement and the time of each kill. It
does not repeat how threads interleave: repeat a seed some times, on a machine as busy. With --keep
DIRECTORY a directory with a problem leaves what is needed to look into it: the problems, the
statements of each connection, the server's log, and the data of a server that does not start.
crash_ddl.py kills at each step of a statement.

What is known of MariaDB counts under its name: KNOWN. After a problem of any kind a new data
directory begins. Exit status 0 means that there were no other problems.
"""

import argparse
import collections
import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import sys
import tempfile
import threading
import time

sys.path.insert(1, sys.path[0] + "/..")                 # of benchlib
sys.dont_write_bytecode = True
from benchlib import wire                               # noqa: E402
from benchlib.program import resolved, run_program      # noqa: E402
from benchlib.servers import BenchError, Server         # noqa: E402
from benchlib.disk import Disk, add_server_arguments, build_layer  # noqa: E402

# Errors of MariaDB's, in docs/ERRORS.md: a name, and what the text of a problem has
KNOWN = (
    ("IMPORT TABLESPACE, killed", r"previously opened tablespace|Recovery cannot access"
     r"|Tablespace \d+ was not found.*imp\d"),
    ("index on a virtual column", r"CHECK .*(Clustered index record not found"
     r"|Index .* is marked as corrupted|has virtual column)"),
    ("partitions left", r"(left|orphan|no table|no file|not in SYS_TABLES|"
     r"in SYS_TABLESPACES).*(#[Pp]#|\.par)"),
    ("TRUNCATE that the binary log lacks", r"REPLICA .*in flight: .*TRUNCATE"),
    ("partition without .par file", r"\b1696\b"),
    ("CREATE TABLE, .frm file not written", r"log: .*(Incorrect information in file: \S+frm"
     r"|Got error 1033 .* of type 'create table')"),         # 11.8
    ("ALTER TABLE that a FOREIGN KEY refuses", r"log: .*not compatible with the new table"),
    ("CREATE DATABASE that the binary log lacks", r"REPLICA stops: .*Unknown database"),
    ("rows of Aria and MyISAM, TRUNCATE in flight",
     r"\((Aria|MyISAM)\).*in flight: TRUNCATE"),
    # The repair at the first use checks quickly
    ("MyISAM, which is not crash-safe",
     r"CHECK (\S+) \(MyISAM\): .*in flight: .*(?<!\S)\1(?!\S)"),
    ("File was not found, in the log", r"log: .*\[ERROR\] InnoDB: (File \S+\.ibd was not "
     r"found|Operating system error number 2 |Error number 2 means)"),
)
# What the error log may have after a kill: MyISAM repairs its tables
BENIGN = re.compile(
    r"marked as crashed|Got an error from (unknown )?thread|Incorrect key file|"
    r"Checking table|Recovering table|Couldn't repair table|Event Scheduler|"
    r"mariadbd: Table")
ENGINES = ("InnoDB",) * 7 + ("Aria",) * 2 + ("MyISAM",)
OURS = re.compile(r"w\d+[ab]|nz|aud")           # databases that are verified
MINE = "table_schema REGEXP '^(w[0-9]+[ab]|nz|aud)$'"
SECONDS, HANG_SECONDS = 30, 60                 # that a round takes at most, a statement
WORKERS, BYSTANDERS, TABLES = 4, 2, 30
STATEMENTS = 20, 200                            # before a kill
WORDS = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta")


def name(key):
    return ".".join(key)


class Table:
    """What the ledger has of a table."""

    def __init__(self, engine, features=()):
        self.engine = engine
        self.features = frozenset(features)
        self.rows = {}                  # id: (v, s), with a parent (v, s, parent's id)
        self.parent = None
        self.next_id = 1
        self.columns = self.indexes = 0         # that ALTER TABLE has added
        self.trigger = False

    def copy(self, **changes):
        new = Table(self.engine)
        new.__dict__.update(self.__dict__, rows=dict(self.rows))
        new.__dict__.update(changes)
        return new


class Statement:
    """One that a worker has sent. before and after: {table: Table or None}; each: the
    tables reach after one by one, so any may be as before."""

    def __init__(self, kind, text, before, after, each=False):
        self.kind, self.text = kind, text
        self.before, self.after, self.each = before, after, each

    def keys(self):
        return set(self.before) | set(self.after)


class Session(threading.Thread):
    """A connection that works until the server is killed."""

    def __init__(self, round_, number):
        super().__init__(daemon=True)
        self.round, self.number = round_, number
        self.problems, self.log = [], collections.deque(maxlen=400)
        self.done = collections.Counter()
        self.since, self.text = 0, ""           # of the statement that runs

    def query(self, text):
        self.since, self.text = time.monotonic(), text
        at = self.since - self.round.began
        try:
            rows = self.connection.query(text)
        except wire.Error as error:
            self.log.append(f"{at:.3f} {text[:900]} -- {error}")
            raise
        finally:
            self.since = 0
        self.log.append(f"{at:.3f} {text[:900]}")
        return rows

    def run(self):
        try:
            self.connection = wire.Connection(self.round.server.socket)
            self.work()
        except (OSError, IndexError) as error:
            if not self.round.killed:
                self.problems.append(f"connection lost before the kill: {error!r} in "
                                     f"{self.text[:300]}")


class Worker(Session):
    """Changes tables of its own, and knows what they have."""

    WEIGHTS = {"dml": 60, "transaction": 15, "create": 12, "replace": 2, "like": 3,
               "select": 2, "drop": 6, "drop_many": 3, "drop_database": 1, "truncate": 3,
               "rename": 4, "swap": 3, "alter": 14, "trigger": 1.5, "load": 1}

    def __init__(self, round_, number, ledger, choose):
        super().__init__(round_, number)
        self.ledger, self.random = ledger, choose       # these outlive a kill
        self.databases = (f"w{number}a", f"w{number}b")
        self.flying = None                              # the Statement in flight

    # ------------------------------------------------------------- ledger

    def tables(self, wanted=lambda table: True, most=1):
        keys = [key for key, table in self.ledger.items() if wanted(table)]
        return self.random.sample(keys, min(most, len(keys)))

    def new_key(self, database=None):
        there = sorted(self.round.databases[self.number])
        database = database or self.random.choice(there)
        while True:
            key = database, f"t{self.random.randrange(60)}"
            if key not in self.ledger:
                return key

    def children(self, key):
        return [child for child, table in self.ledger.items() if table.parent == key]

    def put(self, changes):
        for key, table in changes.items():
            if table:
                self.ledger[key] = table
            else:
                self.ledger.pop(key, None)

    def moved(self, old, new):
        """What else changes when a table gets another name: its children."""
        return {child: self.ledger[child].copy(parent=new) for child in self.children(old)}

    # ---------------------------------------------------------- execution

    def do(self, kind, text, after, each=False):
        before = {key: self.ledger.get(key) for key in after}
        statement = Statement(kind, text, before, after, each)
        self.flying = statement
        try:
            self.query(text)
        except wire.Error as error:
            self.failed(statement, error)
            return False
        self.put(after)
        self.done[kind] += 1
        self.flying = None
        return True

    def failed(self, statement, error):
        """After an error only the server knows which of its tables a statement has reached."""
        for key in statement.keys():
            table = self.ledger.get(key)
            rows = self.query("SELECT engine FROM information_schema.tables WHERE "
                              "table_schema='{}' AND table_name='{}'".format(*key))
            if not rows or rows[0][0] is None:
                self.ledger.pop(key, None)
            elif not table:
                # Such as the new name of a RENAME that was not taken back
                self.problems.append(f"after an error there is {name(key)}: "
                                     f"{statement.text[:200]}: {error}")
            else:
                self.ledger[key] = table.copy(
                    engine=rows[0][0].decode(), rows=read_rows(self.query, key, table.parent))
        self.flying = None

    # ---------------------------------------------------------------- DML

    def words(self):
        return " ".join(f"{self.random.choice(WORDS)}{self.random.randrange(30)}"
                        for _ in range(self.random.choice((1, 2, 4, 12))))

    def change(self, key, view):
        """A statement that changes rows, applied to view, {table: Table}."""
        def of(key):
            if key not in view:
                view[key] = self.ledger[key].copy()
            return view[key]

        table, choice = of(key), self.random.random()
        if choice < 0.55 or not table.rows:
            rows = {}
            count = self.random.choice((1, 1, 3, 20)) if table.engine == "InnoDB" else 1
            parents = list(of(table.parent).rows) if table.parent in self.ledger else ()
            for _ in range(count):
                row = self.random.randrange(100000), self.words()
                if table.parent:
                    row += (self.random.choice(parents) if parents and
                            self.random.random() < 0.8 else None,)
                rows[table.next_id] = row
                table.next_id += 1
            table.rows.update(rows)
            values = ",".join(
                "({},{},'{}'{})".format(number, *row[:2], "" if len(row) == 2 else
                                        f",{'NULL' if row[2] is None else row[2]}")
                for number, row in rows.items())
            columns = "id,v,s,pid" if table.parent else "id,v,s"
            return f"INSERT INTO {name(key)} ({columns}) VALUES {values}"
        number = self.random.choice(list(table.rows))
        if choice < 0.8:
            row = self.random.randrange(100000), self.words()
            table.rows[number] = row + table.rows[number][2:]
            return f"UPDATE {name(key)} SET v={row[0]}, s='{row[1]}' WHERE id={number}"
        del table.rows[number]
        for child in self.children(key):
            for gone in [i for i, row in of(child).rows.items() if row[2] == number]:
                del view[child].rows[gone]
        return f"DELETE FROM {name(key)} WHERE id={number}"

    def dml(self):
        for key in self.tables():
            view = {}
            self.do("dml", self.change(key, view), view)

    def transaction(self):
        keys = self.tables(lambda table: table.engine == "InnoDB", 5)
        if len(keys) < 2:
            return
        view = {}
        texts = [self.change(self.random.choice(keys), view)
                 for _ in range(self.random.randint(2, 7))]
        before = {key: self.ledger[key] for key in view}
        self.flying = Statement("transaction", "BEGIN", before, before)
        try:
            for text in ["BEGIN", *texts]:
                self.query(text)
        except wire.Error as error:
            self.query("ROLLBACK")
            self.failed(self.flying, error)
            return
        if self.random.random() < 0.15:
            self.query("ROLLBACK")
            self.flying = None
        else:
            self.do("transaction", "COMMIT", view)

    # ---------------------------------------------------------------- DDL

    def some_features(self, engine):
        found, choice = set(), self.random.random()
        if engine == "InnoDB":
            found |= ({"fulltext"} if choice < 0.1 else {"partitions"} if choice < 0.2
                      else {"compressed"} if choice < 0.26 else set())
            found |= {"stored"} if self.random.random() < 0.1 else set()
            if "fulltext" not in found and self.random.random() < 0.12:
                found.add("virtual")
        elif choice < 0.15:
            found.add("partitions")
        if self.random.random() < 0.4:
            found.add("indexes")
        return found if self.round.partitions else found - {"partitions"}

    @staticmethod
    def definition(table):
        has = table.features
        text = "id INT NOT NULL PRIMARY KEY, v INT, s " + (
            "TEXT" if "fulltext" in has else "VARCHAR(600)")
        if table.parent:
            text += (f", pid INT, KEY (pid), FOREIGN KEY (pid) REFERENCES "
                     f"{name(table.parent)} (id) ON DELETE CASCADE")
        for feature, more in (("virtual", ", g INT AS (v * 2) VIRTUAL, KEY (g)"),
                              ("stored", ", h INT AS (v + 1) STORED"),
                              ("indexes", ", KEY (v), KEY (s(20))"),
                              ("fulltext", ", FULLTEXT (s)")):
            text += more if feature in has else ""
        return (f"({text}) ENGINE={table.engine}" + " TRANSACTIONAL=1" * (table.engine == "Aria")
                + " ROW_FORMAT=COMPRESSED" * ("compressed" in has)
                + " PARTITION BY HASH (id) PARTITIONS 3" * ("partitions" in has))

    def create(self):
        self.make(self.new_key(), "CREATE")

    def replace(self):
        for key in self.tables(lambda table: not table.trigger):
            if not self.children(key):
                self.make(key, "CREATE OR REPLACE")

    def make(self, key, verb):
        engine = self.random.choice(self.round.engines)
        table = Table(engine, self.some_features(engine))
        if engine == "InnoDB" and "partitions" not in table.features and \
                self.random.random() < 0.25:
            for parent in self.tables(self.may_be_parent):
                table.parent = parent if parent != key else None
        self.do(verb.lower(), f"{verb} TABLE {name(key)} {self.definition(table)}", {key: table})

    @staticmethod
    def may_be_parent(table):
        return table.engine == "InnoDB" and "partitions" not in table.features and \
            not table.parent

    def like(self):
        for old in self.tables(lambda table: not table.parent):
            new = self.new_key()
            self.do("like", f"CREATE TABLE {name(new)} LIKE {name(old)}",
                    {new: self.ledger[old].copy(rows={}, trigger=False)})

    def select(self):
        for old in self.tables(lambda table: not table.parent):
            new = self.new_key()
            table = Table("InnoDB", {"indexes"})
            table.rows, table.next_id = (dict(self.ledger[old].rows),
                                         self.ledger[old].next_id)
            self.do("select", f"CREATE TABLE {name(new)} {self.definition(table)} SELECT "
                    f"id, v, s FROM {name(old)}", {new: table})

    def drop_all(self, keys, kind):
        keys = sorted(keys, key=lambda key: self.ledger[key].parent is None)
        keys = [key for key in keys if all(child in keys for child in self.children(key))]
        if keys:
            self.do(kind, f"DROP TABLE {', '.join(map(name, keys))}",
                    dict.fromkeys(keys), each=True)

    def drop(self):
        self.drop_all(self.tables(most=self.random.randint(1, 3)), "drop")

    def drop_many(self):
        self.drop_all(self.tables(most=self.random.choice((5, 8, 12))), "drop-many")

    def drop_database(self):
        database = self.random.choice(sorted(self.round.databases[self.number]))
        if any(table.parent and table.parent[0] == database != key[0]
               for key, table in self.ledger.items()):
            return
        keys = [key for key in self.ledger if key[0] == database]
        if self.do("drop-database", f"DROP DATABASE {database}", dict.fromkeys(keys), each=True):
            self.do("create-database", f"CREATE DATABASE {database}", {})

    def truncate(self):
        for key in self.tables():
            if not self.children(key):
                self.do("truncate", f"TRUNCATE TABLE {name(key)}",
                        {key: self.ledger[key].copy(rows={})})

    def rename(self):
        for old in self.tables():
            table = self.ledger[old]
            new = self.new_key(old[0] if table.trigger else None)
            self.do("rename", f"RENAME TABLE {name(old)} TO {name(new)}",
                    {**self.moved(old, new), old: None, new: table})

    def swap(self):
        keys = [key for key in self.tables(lambda t: not t.parent and not t.trigger, 9)
                if not self.children(key)]
        if len(keys) > 1:
            one, two = keys[:2]
            away = self.new_key(one[0])
            self.do("swap", f"RENAME TABLE {name(one)} TO {name(away)}, {name(two)} TO "
                    f"{name(one)}, {name(away)} TO {name(two)}",
                    {one: self.ledger[two], two: self.ledger[one], away: None})

    def alter(self):
        for key in self.tables():
            table, has = self.ledger[key], self.ledger[key].features
            number = table.columns
            choices = [
                (f"ADD COLUMN IF NOT EXISTS c{number} INT DEFAULT {number}" +
                 self.random.choice(("", " FIRST", " AFTER v")) * ("fulltext" not in has),
                 {"columns": number + 1}),
                (f"DROP COLUMN IF EXISTS c{number - 1}", {"columns": max(0, number - 1)}),
                (f"ADD INDEX IF NOT EXISTS i{table.indexes} (v, s(10))",
                 {"indexes": min(8, table.indexes + 1)}),
                (f"DROP INDEX IF EXISTS i{table.indexes - 1}",
                 {"indexes": max(0, table.indexes - 1)}),
                ("FORCE", {}), ("FORCE, ALGORITHM=COPY", {}),
                ("MODIFY v INT NOT NULL DEFAULT 7, ADD UNIQUE INDEX IF NOT EXISTS u1 (id, v)",
                 {})]
            if table.engine == "InnoDB" and not has & {"fulltext", "virtual",
                                                       "partitions"}:
                choices.append(("ADD FULLTEXT INDEX IF NOT EXISTS ft (s)",
                                {"features": has | {"fulltext"}}))
            if not table.parent and not self.children(key) and not has & {
                    "fulltext", "virtual", "compressed", "partitions"}:
                engine = self.random.choice(self.round.engines)
                choices += [(f"ENGINE={engine}", {"engine": engine})] * 2
            if "partitions" in has:
                choices += [(text, {}) for text in
                            ("ADD PARTITION PARTITIONS 1", "COALESCE PARTITION 1",
                             "REBUILD PARTITION p0", "OPTIMIZE PARTITION p0",
                             "PARTITION BY KEY (id) PARTITIONS 2")]
                choices += [("REMOVE PARTITIONING", {"features": has - {"partitions"}})]
            text, changes = self.random.choice(choices)
            after = {key: table.copy(**changes)}
            # With ALGORITHM=COPY it would lose the FOREIGN KEY: docs/ERRORS.md
            if self.random.random() < 0.1 and not table.trigger and not table.parent and \
                    not self.children(key) and not text.startswith(("REMOVE", "PARTITION")):
                new = self.new_key(key[0])
                text += f", RENAME TO {name(new)}"
                after = {key: None, new: after[key]}
            self.do("alter " + text.split(",")[0].partition(" IF ")[0].rstrip("0123456789"),
                    f"ALTER TABLE {name(key)} {text}", after)

    def trigger(self):
        for key in self.tables(lambda table: table.engine == "InnoDB" and not table.trigger):
            self.round.triggers += 1
            self.do("trigger", f"CREATE TRIGGER {key[0]}.g{self.round.triggers} AFTER INSERT "
                    f"ON {name(key)} FOR EACH ROW INSERT INTO aud.a{self.number} (x) VALUES "
                    "(NEW.id)", {key: self.ledger[key].copy(trigger=True)})

    def load(self):
        """Export a table and import it into another one, which nobody verifies."""
        data = self.round.server.datadir
        for key in self.tables(lambda table: table.engine == "InnoDB" and not table.parent
                               and not table.features) if self.round.imports else ():
            new = f"imp{self.number}.i"
            here = {key: self.ledger[key]}
            self.flying = Statement("import", "IMPORT TABLESPACE", here, here)
            try:
                for text in ("SET sql_log_bin=0", f"DROP TABLE IF EXISTS {new}",
                             f"CREATE TABLE {new} LIKE {name(key)}",
                             f"ALTER TABLE {new} DISCARD TABLESPACE",
                             f"FLUSH TABLES {name(key)} FOR EXPORT"):
                    self.query(text)
                for suffix in (".ibd", ".cfg"):
                    shutil.copy(data / key[0] / (key[1] + suffix),
                                data / f"imp{self.number}" / ("i" + suffix))
                for text in ("UNLOCK TABLES", f"ALTER TABLE {new} IMPORT TABLESPACE"):
                    self.query(text)
                self.done["import"] += 1
            except wire.Error:
                self.query("UNLOCK TABLES")
            self.query("SET sql_log_bin=1")
            self.flying = None

    def work(self):
        self.query("SET SESSION lock_wait_timeout=20, innodb_lock_wait_timeout=10")
        for database in self.databases:
            if database not in self.round.databases[self.number]:
                self.query(f"CREATE DATABASE IF NOT EXISTS {database}")
                self.round.databases[self.number].add(database)
        weights = dict(self.WEIGHTS)
        while not self.round.killed:
            few = len(self.ledger) < TABLES // WORKERS
            weights.update(create=30 if few else 4, drop_many=1 if few else 8)
            getattr(self, self.random.choices(list(weights), weights.values())[0])()


class Bystander(Session):
    """Executes what changes nothing that the workers know of."""

    def __init__(self, round_, number, workers, choose):
        super().__init__(round_, number)
        self.workers, self.random = workers, choose

    def some_table(self):
        try:
            return name(self.random.choice(list(self.random.choice(self.workers).ledger)))
        except (IndexError, RuntimeError):      # none, or it changes just now
            return "mysql.user"

    def statements(self):
        table, choose = self.some_table(), self.random.choice
        child = f"nz.c{self.number}_{self.random.randrange(4)}"
        return self.random.choices((
            [f"SELECT COUNT(*), MAX(v) FROM {table}"],
            [f"SELECT id FROM {table} ORDER BY v LIMIT 5"],
            ["SELECT COUNT(*), SUM(table_rows) FROM information_schema.tables WHERE "
             "table_schema LIKE 'w%'"],
            [f"CHECK TABLE {table}"], [f"ANALYZE TABLE {table}"],
            [f"OPTIMIZE TABLE {table}"], [f"FLUSH TABLES {table}"], ["FLUSH TABLES"],
            [f"FLUSH TABLES {table} FOR EXPORT", "UNLOCK TABLES"],
            [f"BACKUP STAGE {stage}" for stage in
             ("START", "FLUSH", "BLOCK_DDL", "BLOCK_COMMIT", "END")],
            ["FLUSH TABLES WITH READ LOCK", "UNLOCK TABLES"],
            [f"SET GLOBAL innodb_max_dirty_pages_pct={choose((0, 90))}"],
            [f"SET GLOBAL table_open_cache={choose((10, 64))}"],
            ["SELECT * FROM information_schema.innodb_sys_tablespaces"],
            ["START TRANSACTION WITH CONSISTENT SNAPSHOT", f"SELECT COUNT(*) FROM {table}",
             f"SELECT COUNT(*) FROM {self.some_table()}", "COMMIT"],
            [f"DROP TABLE IF EXISTS {child}",
             f"CREATE TABLE {child} (a INT PRIMARY KEY, b INT) ENGINE=InnoDB"],
            [f"SELECT * FROM {table} WHERE MATCH (s) AGAINST ('alpha1 beta2')"],
            [f"SHOW TABLE STATUS FROM {table.split('.')[0]}"], ["FLUSH LOGS"],
            *([[f"SET GLOBAL innodb_encrypt_tables={choose(('ON', 'OFF'))}"]]
              if self.round.encrypted else ())),
            (35, 10, 4, 4, 4, 2, 3, 2, 3, 3, 1, 2, 2, 2, 2, 5, 1, 1, 1)
            + (1,) * self.round.encrypted)[0]

    def work(self):
        self.query("SET SESSION lock_wait_timeout=5, innodb_lock_wait_timeout=5, sql_log_bin=0")
        while not self.round.killed:
            for text in self.statements():
                try:
                    self.query(text)
                    self.done["beside"] += 1
                except wire.Error:
                    if text.startswith("BACKUP"):
                        with contextlib.suppress(wire.Error):
                            self.query("BACKUP STAGE END")
                        break


def read_rows(query, key, parent):
    """{id: row} of a table, as a ledger has them."""
    found = {}
    for row in query(f"SELECT id, v, s{', pid' * bool(parent)} FROM {name(key)}"):
        found[int(row[0])] = (int(row[1]), row[2].decode()) + (
            (None if row[3] is None else int(row[3]),) if parent else ())
    return found


def difference(wanted, found):
    if wanted is None or found is None:
        return "{} wanted, {} found".format(*(
            "no table" if rows is None else f"{len(rows)} rows" for rows in (wanted, found)))
    return (f"lost {sorted(set(wanted) - set(found))[:5]} of {len(wanted)}, more "
            f"{sorted(set(found) - set(wanted))[:5]}, changed "
            f"{[i for i in wanted if i in found and wanted[i] != found[i]][:5]}")


class KilledServer(Server):
    """A start asks for the version: without a client process here, for speed."""

    def version(self):
        connection = wire.Connection(self.socket)
        rows = connection.query("SELECT VERSION()")
        connection.close()
        return rows[0][0].decode()


class Directory:
    """One data directory, and what happens to it: all of it from a seed."""

    def __init__(self, args, place, model, layer, seed):
        self.args, self.seed = args, seed
        choose = self.random = random.Random(seed)
        self.engines = choose.choice((ENGINES,) * 4 + (("InnoDB",), ("Aria", "InnoDB")))
        self.binary_log = choose.random() < 0.4
        self.encrypted = choose.random() < 0.1
        self.imports = not self.encrypted and choose.random() < 0.05
        self.power_loss = choose.random() < 0.1
        if self.power_loss:             # Aria and MyISAM do not sync their rows
            self.engines = ("InnoDB",)
        # Their files are left so often that little else would be seen
        self.partitions = not self.power_loss and choose.random() < 0.15
        # Few of InnoDB's files may be open; it loads pages of every table meanwhile; and
        # a debug build forgets each table at each commit
        opening = random.Random(f"{seed} opening")
        self.loads_pool = opening.random() < 0.3
        self.place, self.layer = place, layer
        self.problems, self.known = [], collections.Counter()
        self.kills, self.triggers, self.killed = 0, 0, False
        self.done = collections.Counter()
        self.unlogged = {}              # what was in flight at a kill: not on the replica
        self.history = []
        options = [
            "--innodb-buffer-pool-size=6M", "--innodb-log-file-size=8M",
            "--innodb-log-buffer-size=2M", "--innodb-use-native-aio=0",
            "--innodb-flush-log-at-trx-commit=1", "--innodb-read-io-threads=1",
            "--innodb-write-io-threads=1", "--innodb-buffer-pool-dump-at-shutdown=0",
            "--innodb-buffer-pool-load-at-startup=0", "--key-buffer-size=64K",
            "--aria-pagecache-buffer-size=1M", "--table-open-cache=64",
            "--table-definition-cache=400",
            f"--innodb-open-files={opening.choice((12, 20, 100))}",
            f"--loose-innodb-evict-tables-on-commit-debug={int(opening.random() < 0.3)}",
            "--max-connections=60", "--server-id=1", "--log-warnings=2",
            f"--innodb-max-dirty-pages-pct-lwm={choose.choice((0, 1))}"]
        if self.binary_log:
            options += ["--log-bin=binary-log", "--binlog-format=ROW", "--sync-binlog=1",
                        f"--secure-file-priv={place}"]
        if self.encrypted:
            keys = place / "keys"
            keys.write_text("1;" + "0123456789abcdef" * 2 + "\n", encoding="ascii")
            options += ["--plugin-load-add=file_key_management",
                        f"--plugin-dir={args.tree / args.type}/plugin/file_key_management",
                        f"--loose-file-key-management-filename={keys}",
                        "--innodb-encrypt-tables=ON", "--innodb-encrypt-log=ON",
                        "--innodb-encryption-threads=2",
                        "--innodb-encryption-rotate-key-age=1"]
        self.server = KilledServer(args.tree, place / "data", options, build=args.type)
        self.server.copy_datadir(model)
        self.ledgers = [{} for _ in range(WORKERS)]
        self.databases = [{f"w{n}a", f"w{n}b"} for n in range(WORKERS)]

    def settings(self):
        return " ".join(word for word, has in (
            ("binary-log", self.binary_log), ("encrypted", self.encrypted),
            ("import", self.imports), ("partitions", self.partitions),
            ("loads-pool", self.loads_pool),
            ("power-loss", self.power_loss),
            ("InnoDB", self.engines == ("InnoDB",))) if has) or "plain"

    # ------------------------------------------------------------- a kill

    def execute(self):
        """Until it has had its kills, or a problem."""
        while self.kills < self.args.kills and not self.problems and not self.known and \
                time.monotonic() < self.args.deadline:
            self.kill_once()
            if self.server.process and not self.problems:
                self.verify()
        # With a corrupt partition, purge fills log and memory, and SHUTDOWN waits for it
        if self.server.process and not self.problems and not self.known:
            if self.binary_log:
                self.replicate()
            try:
                self.server.stop()
            except BenchError as error:
                self.problem(f"SHUTDOWN: {error}")

    def problem(self, text):
        for title, pattern in KNOWN:
            if re.search(pattern, text):
                self.known[title] += 1
                self.history.append(f"known: {text}")
                return
        self.problems.append(text)

    def start(self, what):
        try:
            self.server.start()
            return True
        except BenchError as error:
            self.problem(f"DOES NOT START ({what}): {error}")
            return False

    def kill_once(self):
        disk = None
        if not self.server.process:
            if self.power_loss:
                shutil.rmtree(self.place / "disk", ignore_errors=True)
                disk = Disk(self.place / "disk")
                self.server.environment = disk.environment(self.layer, self.server.datadir)
            if not self.start("first"):
                return
        elif self.power_loss:
            # Unsynced writes are noted from a start to a kill
            self.server.stop()
            return self.kill_once()
        if self.loads_pool:
            self.load_pool()
        self.killed, self.began = False, time.monotonic()
        self.workers = [Worker(self, n, ledger, random.Random(f"{self.seed} {self.kills} {n}"))
                        for n, ledger in enumerate(self.ledgers)]
        beside = [Bystander(self, n, self.workers,
                            random.Random(f"{self.seed} {self.kills} beside {n}"))
                  for n in range(BYSTANDERS)]
        sessions = self.workers + beside
        for session in sessions:
            session.start()
        # The first time there is nothing to rename or drop yet
        statements = self.random.randint(*STATEMENTS) + 100 * (not self.kills)
        end = self.began + SECONDS
        while time.monotonic() < end and self.server.process.poll() is None and \
                sum(worker.done.total() for worker in self.workers) < statements:
            time.sleep(0.005)
            for session in sessions:
                if session.since and time.monotonic() - session.since > HANG_SECONDS:
                    self.problem(f"HANG: {session.text[:300]}")
                    self.diagnose()
                    end = 0
                    break
        time.sleep(self.random.uniform(0, 0.02))
        if self.server.process.poll() is not None:
            self.problem("the server ended before the kill")
            self.keep_log()
        self.killed = True
        self.server.process.kill()
        self.kills += 1
        self.keep_log()
        self.server.kill()
        for session in sessions:
            session.join(HANG_SECONDS)
            for text in session.problems:
                self.problem(text)
            self.done += session.done
            self.history += [f"kill {self.kills}, {type(session).__name__} {session.number}:",
                             *("  " + line for line in session.log)]
            if isinstance(session, Worker) and session.flying:
                self.history.append(f"  IN FLIGHT {session.flying.text[:900]}")
        self.server.environment = {}
        if disk:
            lost = disk.lose_unsynced()
            self.history.append(f"power loss takes back {lost[:50]}")
        if self.random.random() < 0.15:
            self.kill_recovery()
        self.start("recovery")

    def load_pool(self):
        """Let InnoDB begin to load a page of each tablespace that there may be."""
        connection = wire.Connection(self.server.socket)
        (last,), = connection.query(
            "SELECT MAX(space) FROM information_schema.innodb_sys_tables")
        (self.server.datadir / "ib_buffer_pool").write_text(
            "".join(f"{space},3\n" for space in range(1, int(last) + 100)), encoding="ascii")
        connection.query("SET GLOBAL innodb_buffer_pool_load_now=1")
        connection.close()

    def kill_recovery(self):
        """Kill a server that recovers, too."""
        def kill():
            if process := self.server.process:
                process.kill()
                self.done["kills of recovery"] += 1

        timer = threading.Timer(self.random.uniform(0.05, 0.8), kill)
        timer.start()
        try:
            self.server.start()
        except (BenchError, OSError, IndexError, wire.Error):
            pass                        # as it should be
        finally:
            timer.cancel()
            timer.join()
            if self.server.process:
                self.server.kill()

    def keep_log(self):
        log = pathlib.Path(self.server.run_directory, "log").read_text(errors="replace")
        self.history.append("server's log: " + (log if len(log) < 12000 else
                                                log[:6000] + "\n[...]\n" + log[-6000:]))
        # A kill tears pages
        repaired = re.findall(r"Recovered page (\[page id: [^]]*\])", log)
        for line in dict.fromkeys(log.splitlines()):
            if re.search(r"\[ERROR\]|\[FATAL\]|Assertion|got signal", line) and \
                    not BENIGN.search(line) and not (
                        "looks corrupted" in line and any(page in line for page in repaired)):
                self.problem(f"log: {line[:300]}")

    def diagnose(self):
        try:
            connection = wire.Connection(self.server.socket)
            for row in connection.text("SHOW FULL PROCESSLIST"):
                self.history.append("processlist: " + " ".join(map(str, row))[:300])
        except (OSError, wire.Error) as error:
            self.history.append(repr(error))

    # -------------------------------------------------------- verification

    def verify(self):
        connection = wire.Connection(self.server.socket)
        there = self.tables(connection)
        engines = {key: engine for key, (engine, _) in there.items()}
        existing = {row[0] for row in connection.text("SHOW DATABASES")}
        for key, engine in engines.items():
            try:
                connection.query(f"SELECT COUNT(*) FROM {name(key)}")
            except wire.Error as error:
                if engine != "MyISAM":          # that repairs itself now
                    self.problem(f"{name(key)} ({engine}): {error}")
        children = {tuple(row) for row in connection.text(
            "SELECT table_schema, table_name FROM information_schema.columns WHERE "
            f"column_name='pid' AND {MINE}")}
        for worker in self.workers:
            self.databases[worker.number] &= existing
            self.verify_ledger(connection, worker, there, children)
        self.verify_checks(connection, engines)
        for row in connection.text("SELECT for_name, ref_name FROM "
                                   "information_schema.innodb_sys_foreign"):
            if tuple(row[1].split("/")) not in engines:
                self.problem(f"FOREIGN KEY of {row[0]} has no parent {row[1]}; in flight: "
                             f"{self.in_flight()}")
        began = time.monotonic()
        connection.query(f"SET max_statement_time={HANG_SECONDS}")
        connection.query("SET GLOBAL innodb_max_purge_lag_wait=0")
        connection.query("SET max_statement_time=0")
        if time.monotonic() - began >= HANG_SECONDS:
            self.problem("purge does not end")
        self.verify_files(connection, engines)
        connection.close()
        self.keep_log()

    @staticmethod
    def tables(connection):
        return {(database, table): (engine, "partitioned" in (options or ""))
                for database, table, engine, options in connection.text(
                    "SELECT table_schema, table_name, engine, create_options "
                    f"FROM information_schema.tables WHERE table_type='BASE TABLE' AND {MINE}")}

    def in_flight(self, database=None):
        """The statements, or that of the worker whose database it is."""
        return "; ".join(worker.flying.text[:200] for worker in self.workers
                         if worker.flying and database in (None, *worker.databases)) \
            or "nothing"

    def verify_ledger(self, connection, worker, there, children):
        """Compare the rows, and let the ledger follow what was in flight. children: the
        tables with a parent"""
        flying, ledger = worker.flying, worker.ledger
        touched = flying.keys() if flying else set()
        mine = {key for key in there if key[0] in worker.databases}
        found = {}
        for key in mine | set(ledger) | touched:
            try:
                found[key] = read_rows(connection.query, key, key in children) \
                    if key in there else None
            except (wire.Error, AttributeError) as error:
                self.problem(f"reading {name(key)}: {error!r}")
                found[key] = None
        for key in sorted((mine | set(ledger)) - touched):
            wanted = ledger[key].rows if key in ledger else None
            if found[key] != wanted:
                self.problem(f"{name(key)} ({there.get(key)}): "
                             f"{difference(wanted, found[key])}; in flight: "
                             f"{flying and flying.text[:200]}")
        if not flying:
            return

        def has(key, table):
            return found[key] == (table.rows if table else None) and \
                (not table or bool(table.parent) == (key in children))

        if flying.each:
            state = {key: flying.after[key] if has(key, flying.after[key])
                     else flying.before[key] for key in touched}
        else:
            states = [flying.after, flying.before]
            if flying.kind == "create or replace":      # MariaDB's is not atomic
                states.append(dict.fromkeys(touched))
            state = next((state for state in states if all(
                has(key, table) for key, table in state.items())), None)
        if state is None or not all(has(key, state[key]) for key in touched):
            about = next((there[key][0] for key in touched if key in there), "gone")
            wrong = "; ".join(f"{name(key)}: " + " or ".join(
                difference(table.rows if table else None, found[key])
                for table in (flying.before[key], flying.after[key])) for key in sorted(touched))
            self.problem(f"neither before nor after ({about}): {wrong}; in flight: "
                         f"{flying.text[:300]}")
            return
        worker.put(state)
        for key in touched & set(there) & set(ledger):
            table = ledger[key]
            if there[key][1] != ("partitions" in table.features):
                table.features ^= {"partitions"}
            table.engine = there[key][0]
            table.next_id = max([table.next_id, *(i + 1 for i in table.rows)])
        for key in touched:
            self.unlogged[key] = "; ".join(
                filter(None, (self.unlogged.get(key), flying.text[:200])))

    def verify_checks(self, connection, engines):
        for key, engine in engines.items():
            try:
                for row in connection.text(f"CHECK TABLE {name(key)} EXTENDED"):
                    if row[2] == "error" or (row[2] == "status" and row[3] != "OK") or \
                            (row[2].lower() == "warning" and engine == "InnoDB"):
                        if not (engine == "MyISAM" and "clients are using" in row[3]):
                            self.problem(f"CHECK {name(key)} ({engine}): {row[3]}; in "
                                         f"flight: {self.in_flight(key[0])}")
            except wire.Error as error:
                self.problem(f"CHECK {name(key)} ({engine}): {error}")

    def verify_files(self, connection, engines):
        known = {row[0]: int(row[1]) for row in connection.text(
            "SELECT name, space FROM information_schema.innodb_sys_tables")}
        spaces = {row[0] for row in connection.text(
            "SELECT name FROM information_schema.innodb_sys_tablespaces")}
        data = self.server.datadir
        of_engine = {".ibd": "InnoDB", ".MYI": "MyISAM", ".MYD": "MyISAM", ".MAI": "Aria",
                     ".MAD": "Aria"}
        wrong = []
        for directory in sorted(data.iterdir()):
            database = directory.name
            if not OURS.fullmatch(database):
                continue
            files = {path.name for path in directory.iterdir()} - {"db.opt"}
            wrong += [f"no .frm of {name(key)}" for key in engines
                      if key[0] == database and key[1] + ".frm" not in files]
            for file in sorted(files):
                stem, suffix = os.path.splitext(file)
                engine = engines.get((database, stem.partition("#P#")[0]))
                if file.startswith("#sql"):
                    wrong.append(f"left: {database}/{file}")
                elif suffix == ".ibd" and f"{database}/{stem}" not in known:
                    wrong.append(f"orphan: {database}/{file}")
                elif suffix in of_engine and not stem.startswith("FTS_") and \
                        engine not in (of_engine[suffix], "partition") and \
                        not ("#P#" in stem and engine):
                    wrong.append(f"orphan: {database}/{file}, engine {engine}")
                elif suffix in (".frm", ".par", ".TRG") and (database, stem) not in engines:
                    wrong.append(f"orphan: {database}/{file}")
        for table, space in known.items():
            database, _, stem = table.partition("/")
            if not OURS.fullmatch(database):
                continue
            if space and not (data / f"{table}.ibd").exists():
                wrong.append(f"in SYS_TABLES, no file: {table}")
            elif stem.startswith("#sql") or not stem.startswith("FTS_") and \
                    (database, re.split("#P#", stem, flags=re.I)[0]) not in engines:
                wrong.append(f"in SYS_TABLES, no table: {table}")
        wrong += [f"in SYS_TABLESPACES, not in SYS_TABLES: {table}" for table in spaces
                  if OURS.match(table) and table not in known]
        wrong += [f"not in SYS_TABLES: {name(key)}" for key, engine in engines.items()
                  if engine == "InnoDB" and "/".join(key) not in known and
                  not any(table.lower().startswith("/".join(key).lower() + "#p#")
                          for table in known)]
        for text in wrong:
            self.problem(f"{text}; in flight: {self.in_flight()}")

    # ------------------------------------------------------------- replica

    def replicate(self):
        """Execute the whole binary log on an empty server, and compare."""
        replica = KilledServer(self.args.tree, self.place / "replica",
                               ["--innodb-log-file-size=8M", "--innodb-buffer-pool-size=6M",
                                "--server-id=2", "--innodb-use-native-aio=0",
                                "--innodb-flush-log-at-trx-commit=0", "--relay-log=relay",
                                "--skip-slave-start", "--relay-log-purge=0"],
                               build=self.args.type)
        replica.copy_datadir(self.args.model)
        source = wire.Connection(self.server.socket)
        logs = [self.server.datadir / row[0] for row in source.text("SHOW BINARY LOGS")]
        source.query("FLUSH BINARY LOGS")
        # It finds them in its relay log
        for number, log in enumerate(logs, 1):
            shutil.copy(log, replica.datadir / f"relay.{number:06}")
        (replica.datadir / "relay.index").write_text(
            "".join(f"./relay.{number:06}\n" for number in range(1, len(logs) + 1)))
        with replica:
            session = wire.Connection(replica.socket)
            session.query("CHANGE MASTER TO relay_log_file='relay.000001', relay_log_pos=4, "
                          "master_host='none'")
            session.query("START SLAVE SQL_THREAD")
            before, end = None, 0
            while before is None or time.monotonic() < end:
                status = session.text("SHOW SLAVE STATUS")[0]
                if status != before:
                    before, end = status, time.monotonic() + HANG_SECONDS
                if status[11] != "Yes":
                    self.problem(f"REPLICA stops: {status[19]}; in flight: "
                                 f"{self.guilty(status[19])}")
                    break
                # All events read: Exec_Master_Log_Pos is that of the end
                state = session.text("SELECT state FROM information_schema.processlist "
                                     "WHERE command='Slave_SQL'")
                if state and state[0][0] and state[0][0].startswith("Slave has read all"):
                    self.compare(source, session)
                    break
                time.sleep(0.1)
            else:
                self.problem(f"REPLICA does not go on: {status}")
            session.query("STOP SLAVE")
            session.close()
        source.close()
        self.done["replicas"] += 1

    def guilty(self, text):
        """The statements in flight whose tables a message names."""
        found = [statement for key, statement in self.unlogged.items()
                 if key[1] in text and key[0] in text]
        return "; ".join(found) or "; ".join(sorted(set(self.unlogged.values())))[:500]

    def compare(self, source, replica):
        ours, theirs = self.tables(source), self.tables(replica)
        for key in sorted(set(ours) | set(theirs)):
            if key[0] == "nz":
                continue
            flying = self.unlogged.get(key)
            engine = (ours.get(key) or theirs[key])[0]
            if flying and engine != "InnoDB":
                continue                # not atomic, so the binary log may be behind
            if (key in ours) != (key in theirs):
                self.problem(f"REPLICA {name(key)}: there {key in ours}, on the replica "
                             f"{key in theirs}; in flight: {flying}")
                continue
            columns = "n, x" if key[0] == "aud" else "id, v, s"
            here, there = (sorted(map(tuple, side.query(
                f"SELECT {columns} FROM {name(key)}"))) for side in (source, replica))
            if here != there:
                self.problem(f"REPLICA {name(key)} ({engine}) differs: {len(here)} and "
                             f"{len(there)} rows; in flight: {flying}")

    # -------------------------------------------------------------- report

    def keep(self, directory):
        place = directory / f"{self.server.variant}-{self.args.type}-{self.seed}"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        (place / "problems").write_text("\n".join(
            [f"crash_random.py {self.args.tree} --type {self.args.type} --seed {self.seed} "
             f"--directories 1 --kills {self.args.kills}; {self.settings()}; kill "
             f"{self.kills}", *self.problems, *map(str, self.known.items()), ""]))
        (place / "statements").write_text("\n".join(self.history) + "\n")
        if any(text.startswith("DOES NOT START") for text in self.problems):
            shutil.copytree(self.server.datadir, place / "data")


def make_model(args, place):
    """The data directory of which each seed gets a copy."""
    server = Server(args.tree, place / "model", ["--innodb-log-file-size=8M"], build=args.type)
    with server:
        server.sql("CREATE DATABASE nz; CREATE DATABASE aud;" + "".join(
            f"CREATE DATABASE w{n}a; CREATE DATABASE w{n}b; CREATE DATABASE imp{n}; CREATE "
            f"TABLE aud.a{n} (n INT AUTO_INCREMENT PRIMARY KEY, x INT) ENGINE=InnoDB;"
            for n in range(WORKERS)) + "SET GLOBAL innodb_fast_shutdown=0;")
    return server


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    add_server_arguments(parser)
    parser.add_argument("--seed", type=int, default=1, help="of the first data directory")
    parser.add_argument("--directories", type=int, default=10, metavar="N",
                        help="how many of them (default %(default)s)")
    parser.add_argument("--kills", type=int, default=10, metavar="N",
                        help="of the server, for each directory (default %(default)s)")
    parser.add_argument("--minutes", type=float, default=1e6, help="begin nothing after them")
    parser.add_argument("--keep", type=resolved, metavar="DIRECTORY",
                        help="for a directory of each seed with a problem")
    args = parser.parse_args()
    args.deadline = time.monotonic() + 60 * args.minutes
    kills, wrong = 0, 0
    done, known = collections.Counter(), collections.Counter()
    with tempfile.TemporaryDirectory(prefix="crash-random-") as place:
        place = pathlib.Path(place)
        layer = build_layer(place)
        args.model = make_model(args, place)
        for seed in range(args.seed, args.seed + args.directories):
            if time.monotonic() >= args.deadline:
                break
            here = place / str(seed)
            here.mkdir()
            began = time.monotonic()
            directory = Directory(args, here, args.model, layer, seed)
            try:
                directory.execute()
            finally:
                if directory.server.process:
                    directory.server.kill()
            kills += directory.kills
            wrong += bool(directory.problems)
            done += directory.done
            known += directory.known
            print(f"seed {seed}, {directory.settings()}: {directory.kills} kills, "
                  f"{sum(directory.done.values())} statements, {time.monotonic() - began:.0f} s"
                  + (f"; {len(directory.problems)} problems" if directory.problems else
                     f"; known: {', '.join(directory.known)}" if directory.known else "")
                  + "".join(f"\n  PROBLEM {text}" for text in directory.problems), flush=True)
            if args.keep and (directory.problems or directory.known):
                directory.keep(args.keep)
            shutil.rmtree(here)
    print(json.dumps({"kills": kills, "seeds_with_problems": wrong, "known": known,
                      "done": done}))
    return int(wrong > 0)


if __name__ == "__main__":
    run_program(main)
