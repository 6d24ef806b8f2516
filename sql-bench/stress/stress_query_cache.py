#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""
Readers and writers storm the query cache; no reader may get an old row.

There are tables of several engines, a partitioned one, a MERGE table over two others, and a view
over a join. Every row has one writer, which counts its value up and notes in shared memory what
is committed, after the server has said so. A reader looks up what is noted for the rows that it
is going to read, reads them, through the cache more often than not, and compares: what it gets
may be newer than what it has looked up, never older. Some readers take their time with results
of many packets.

One more session disturbs them: it defragments, resets, resizes, disables and
enables the cache, alters tables, drops and creates databases.

At the end all memory of the cache must come back, and the server must never have been
started anew. benchlib/stress.py says what it needs and prints.
"""

import collections
import multiprocessing
import random
import sys
import time

sys.path.insert(1, sys.path[0] + "/..")                 # of benchlib
sys.dont_write_bytecode = True
from benchlib import stress, wire                       # noqa: E402

ROWS = 16
SLOW_READERS = 4                # that take long results slowly
PAUSE = 0.1                     # seconds at most between a writer's changes
TABLES = ("m", "i", "a", "p", "c1", "c2")
ENGINES = {"m": "MyISAM", "i": "InnoDB", "a": "Aria",
           "p": "InnoDB PARTITION BY HASH (k) PARTITIONS 3",
           "c1": "MyISAM", "c2": "MyISAM"}


# An error that ends a statement because of the others: the cache is disabled just now,
# a definition has changed, a deadlock, a timeout
DISABLED = {1924, 1925}
CONFLICT = {1213, 1205, 1412, 1020, 1615}


class Notes:
    """The committed value of each row, in memory that all processes share"""

    def __init__(self):
        self.values = multiprocessing.Array("q", len(TABLES) * ROWS, lock=False)

    def get(self, table, row):
        return self.values[TABLES.index(table) * ROWS + row]

    def set(self, table, row, value):
        self.values[TABLES.index(table) * ROWS + row] = value


DATABASE, OTHER = "stress_qc", "stress_qc_other"


def connect(args, database=DATABASE):
    session = wire.Connection(args.socket, database, args.user)
    session.query("SET lock_wait_timeout=2, innodb_lock_wait_timeout=2")
    return session


def enable(session):
    """The server refuses this while sessions that still use the cache keep it from being off"""
    for _ in range(1000):
        try:
            session.query("SET GLOBAL query_cache_type=1")
            return
        except wire.Error as error:
            if error.code != 1924:
                raise
            time.sleep(0.01)
    raise RuntimeError("the query cache does not become disabled")


def create(session, _):
    session.query("SET GLOBAL query_cache_size=4194304")
    enable(session)
    session.query(f"DROP DATABASE IF EXISTS {OTHER}")
    stress.make_database(session, DATABASE)
    for table in TABLES:
        session.query(f"CREATE TABLE {table} (k INT NOT NULL, v BIGINT NOT NULL, "
                      f"PRIMARY KEY (k)) ENGINE={ENGINES[table]}")
        session.query(f"INSERT INTO {table} VALUES " + ",".join(
            f"({key(table, row)},0)" for row in range(ROWS)))
    session.query("CREATE TABLE g (k INT NOT NULL, v BIGINT NOT NULL, KEY (k))"
                  " ENGINE=MERGE UNION=(c1,c2)")
    # A MERGE table wants children with the same keys
    for table in ("c1", "c2"):
        session.query(f"ALTER TABLE {table} DROP PRIMARY KEY, ADD KEY (k)")
    session.query("CREATE VIEW w AS SELECT m.k AS k, m.v AS mv, i.v AS iv "
                  "FROM m, i WHERE m.k = i.k")


def key(table, row):
    return row + 100 if table == "c2" else row


class Writer:
    """Has rows of its own and counts them up in every way there is"""

    def __init__(self, args, notes, number, writers):
        self.session = connect(args)
        self.notes = notes
        self.rows = [(table, row) for table in TABLES for row in range(ROWS)
                     if row % writers == number % ROWS]
        self.rnd = random.Random(f"{args.seed}/{number}")
        self.next = {row: 0 for row in self.rows}
        for table in TABLES:
            self.session.query(f"PREPARE {table} FROM 'UPDATE {table} SET v=? WHERE k=?'")
        self.done = 0

    def _value(self, row):
        self.next[row] += 1
        return self.next[row]

    def _update(self, row, value):
        self.session.query(f"UPDATE {row[0]} SET v={value} WHERE k={key(*row)}")

    def step(self):
        try:
            committed = self._change()
        except wire.Error as error:
            # Deadlock, lock wait timeout, definition changed: not noted
            if error.code not in CONFLICT:
                raise
            self.session.query("ROLLBACK")
            committed = {}
        for row, value in committed.items():
            self.notes.set(*row, value)
        self.done += 1
        # Changes without a pause would leave nothing to read from the cache
        time.sleep(self.rnd.random() * PAUSE)

    def _change(self):
        """Change rows in one of the ways; return the values that are committed now."""
        rnd, query = self.rnd, self.session.query
        row, what = rnd.choice(self.rows), rnd.randrange(8)
        if what == 1:
            # Of engines with transactions: others would keep their
            # metadata locks and wait for table locks in any order
            rows = rnd.sample([r for r in self.rows if r[0] in "ip"], 2)
            values = {r: self._value(r) for r in sorted(rows)}
            query("BEGIN")
            for r, value in values.items():
                self._update(r, value)
            query("COMMIT")
            return values
        if what == 2:
            row = (rnd.choice("ip"), row[1])
            query("BEGIN")
            self._update(row, self._value(row))
            query("ROLLBACK")
            return {}
        if what == 4:
            first = rnd.choice([r for r in self.rows if r[0] == "m"])
            second = ("i", first[1])
            values = {first: self._value(first), second: self._value(second)}
            query(f"UPDATE m, i SET m.v={values[first]}, i.v={values[second]} "
                  f"WHERE m.k={first[1]} AND i.k={first[1]}")
            return values
        value = self._value(row)
        if what == 0:
            query(f"SET @v={value}, @k={key(*row)}")
            query(f"EXECUTE {row[0]} USING @v, @k")
        elif what == 3:
            query(f"LOCK TABLES {row[0]} WRITE")
            try:
                self._update(row, value)
            finally:
                query("UNLOCK TABLES")
        elif what == 5 and row[0] in ("c1", "c2"):
            query(f"UPDATE g SET v={value} WHERE k={key(*row)}")
        else:
            self._update(row, value)
        return {row: value}


class Reader:
    ENABLE_EVERY = 100              # reads

    def __init__(self, args, notes, number):
        self.args, self.notes = args, notes
        self.session = connect(args)
        self.rnd = random.Random(f"{args.seed}/{type(self).__name__} {number}")
        self.done = 0

    def _read(self, sql, rows):
        """rows: what each value of the result belongs to, in its order"""
        known = [self.notes.get(*row) for row in rows]
        answer = self.session.query(sql)
        got = [int(value) for line in answer for value in line]
        if len(got) != len(known):
            return f"{sql}: {len(got)} values"
        for row, new, old in zip(rows, got, known):
            if new < old:
                return (f"{sql}: row {row[1]} of table {row[0]} has {new}, but {old} "
                        "was committed before")
        self.done += 1
        return None

    def step(self):
        try:
            if self.done % self.ENABLE_EVERY == 0:
                # Disabling the cache has disabled it for this session
                self.session.query("SET query_cache_type=1")
            return self.read()
        except wire.Error as error:
            # The cache may be disabled just now; tables may be altered
            if error.code not in DISABLED | CONFLICT:
                raise
            return None

    def read(self):
        """Return what is wrong, or None."""
        rnd = self.rnd
        table, row = rnd.choice(TABLES), rnd.randrange(ROWS)
        # Different texts make many results to be invalidated at a time
        text = "" if rnd.randrange(2) else f" AND {rnd.randrange(1, 300)}"
        what = rnd.randrange(10)
        if what < 4:
            return self._read(
                f"SELECT v FROM {table} WHERE k={key(table, row)}{text}", [(table, row)])
        if what < 6:
            return self._read(
                f"SELECT m.v, i.v, a.v FROM m, i, a WHERE m.k={row} AND i.k={row} AND "
                f"a.k={row}{text}", [("m", row), ("i", row), ("a", row)])
        if what == 6:
            return self._read(f"SELECT mv, iv FROM w WHERE k={row}{text}",
                              [("m", row), ("i", row)])
        if what == 7:
            return self._read(f"SELECT v FROM g WHERE 1{text} ORDER BY k",
                              [(child, r) for child in ("c1", "c2") for r in range(ROWS)])
        if what == 8:
            return self._read(f"SELECT v FROM p WHERE 1{text} ORDER BY k",
                              [("p", r) for r in range(ROWS)])
        # A transaction; after its first SELECT the snapshot stays. So it
        # has to end though the SELECT fails (a lock wait timeout ends the
        # statement only): the SELECTs to come would be in it
        self.session.query("BEGIN")
        try:
            return self._read(f"SELECT v FROM i WHERE k={row}{text}", [("i", row)])
        finally:
            self.session.query("COMMIT")


class SlowReader(Reader):
    """
    Reads results of many packets, and takes its time: the server waits in the middle of one, be
    it from the cache or on its way into it. Now and then it goes away without reading the rest.
    """

    PAD, ENABLE_EVERY = 20000, 20

    def read(self):
        rnd = self.rnd
        table = rnd.choice(("p", "m", "i"))
        sql = (f"SELECT k, v, REPEAT(CHAR(65+v%26),{self.PAD}) FROM {table} WHERE "
               f"{rnd.randrange(1, 6)} ORDER BY k")
        known = [self.notes.get(table, row) for row in range(ROWS)]
        self.session.send(sql)
        time.sleep(rnd.random() * 0.1)
        self.done += 1
        if rnd.randrange(10) == 0:
            self.session.close()
            self.session = connect(self.args)
            return None
        got = self.session.result()
        if len(got) != ROWS:
            return f"{sql}: {len(got)} rows"
        for row, (_, value, pad) in enumerate(got):
            value = int(value)
            if value < known[row]:
                return f"{sql}: row {row} has {value}, but {known[row]} was committed before"
            if pad != bytes((65 + value % 26,)) * self.PAD:
                return f"{sql}: row {row} is damaged"
        return None


class Disturber:
    def __init__(self, args):
        self.session = connect(args)
        self.rnd = random.Random(f"{args.seed}/disturber")
        self.done = 0

    def step(self):
        try:
            self._step()
        except wire.Error as error:
            if error.code not in (1205, 1924):
                raise
        self.done += 1
        time.sleep(self.rnd.random() * 0.2)

    def _step(self):
        what = self.rnd.randrange(10)
        query = self.session.query
        if what < 3:
            query("FLUSH QUERY CACHE")
        elif what == 3:
            query("RESET QUERY CACHE")
        elif what == 4:
            query("SET GLOBAL query_cache_size="
                  f"{self.rnd.choice((1 << 18, 1 << 20, 1 << 22, 1 << 24))}")
        elif what == 5:
            query("SET GLOBAL query_cache_type=0")
            enable(self.session)
        elif what == 6:
            query(f"ALTER TABLE {self.rnd.choice('mia')} COMMENT='{self.done}'")
        elif what == 7:
            query("SET query_cache_type=1")
            query("DROP DATABASE IF EXISTS " + OTHER)
            query("CREATE DATABASE " + OTHER)
            query(f"CREATE TABLE {OTHER}.t (a INT)")
            for i in range(100):
                query(f"SELECT a,{i} FROM {OTHER}.t")
            query("DROP DATABASE " + OTHER)
        elif what == 8:
            query("FLUSH TABLES")


def work(pipe, make, args, end):
    error = None
    worker = make(*args)
    try:
        while time.monotonic() < end and not error:
            error = worker.step()
    except (wire.Error, OSError, RuntimeError) as failure:
        error = repr(failure)
    pipe.send((worker.done, error))


class Process:
    """One of those who work, in a process: threads of Python wait for each other, so that
    the server would have less to do at a time."""

    kept, errors = (), collections.Counter()

    def __init__(self, deadline, make, *args):
        self.number, self.hangs = make.__name__, False
        self.done, self.lost = collections.Counter(), None
        self.pipe, self.theirs = multiprocessing.Pipe(False)
        self.job = multiprocessing.Process(
            target=work, daemon=True, args=(self.theirs, make, args, deadline))

    def start(self):
        self.job.start()
        self.theirs.close()

    def is_alive(self):
        return self.hangs

    def join(self, seconds):
        try:
            if self.pipe.poll(seconds):
                self.done[self.number], self.lost = self.pipe.recv()
            else:
                self.hangs = True
        except EOFError:
            self.lost = "the process ended"
        self.job.kill()


def crew(args, deadline):
    notes, half = Notes(), args.connections // 2
    found = [Process(deadline, make, args, notes, number, *more)
             for make, count, more in ((Writer, half, (half,)), (Reader, half, ()),
                                       (SlowReader, SLOW_READERS, ()))
             for number in range(count)]
    return [*found, Process(deadline, Disturber, args)]


def check(session, _, problems):
    status = session.status("Qcache%")
    if not status["Qcache_hits"]:
        problems.append("nothing was read from the cache")
    enable(session)
    session.query("RESET QUERY CACHE")
    for _ in range(300):
        left = session.status("Qcache%")
        if left["Qcache_total_blocks"] == 1:
            break
        time.sleep(0.1)
    else:
        problems.append(f"not all memory came back: {left}")
    return {"status": status}


def main():
    # Half of the connections read, half of them write
    parser = stress.parser(__doc__, connections=2 * ROWS)
    args = parser.parse_args()
    if not 2 <= args.connections <= 2 * ROWS:
        parser.error(f"--connections must be from 2 to {2 * ROWS}")
    stress.stress(args, create, lambda deadline, _: crew(args, deadline), check)


if __name__ == "__main__":
    main()
