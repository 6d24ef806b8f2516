#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""
Readers and writers storm the query cache; no reader may get an old row.

There are tables of several engines, a partitioned one, a MERGE table over two
others, and a view over a join. Every row has one writer, which counts its
value up and notes in shared memory what is committed, after the server has
said so. A reader looks up what is noted for the rows that it is going to
read, reads them, through the cache more often than not, and compares: what it
gets may be newer than what it has looked up, never older. Some readers take
their time with results of many packets.

One more session disturbs them: it defragments, resets, resizes, disables and
enables the cache, alters tables, drops and creates databases.

At the end all memory of the cache must come back, and the server must never
have been started anew.

Give it a server of its own: it drops and creates the databases "stress_qc" and
"stress_qc_other", and changes global variables. It prints one JSON object.
Exit status 0 means that all was well. Nothing but Python's standard library is
needed.
"""

import json
import mmap
import multiprocessing
import random
import struct
import sys
import time

sys.path.insert(1, sys.path[0] + "/..")                 # of benchlib
sys.dont_write_bytecode = True
from benchlib import stress, wire                       # noqa: E402

ROWS = 16
TABLES = ("m", "i", "a", "p", "c1", "c2")
ENGINES = {"m": "MyISAM", "i": "InnoDB", "a": "Aria",
           "p": "InnoDB PARTITION BY HASH (k) PARTITIONS 3",
           "c1": "MyISAM", "c2": "MyISAM"}


class Notes:
    """The committed value of each row, in memory that all processes share"""

    def __init__(self):
        self.memory = mmap.mmap(-1, 8 * len(TABLES) * ROWS)

    def _at(self, table, row):
        return 8 * (TABLES.index(table) * ROWS + row)

    def get(self, table, row):
        return struct.unpack_from("q", self.memory, self._at(table, row))[0]

    def set(self, table, row, value):
        struct.pack_into("q", self.memory, self._at(table, row), value)


DATABASE, OTHER = "stress_qc", "stress_qc_other"


def connect(args, database=DATABASE):
    session = wire.Connection(args.socket, database, args.user)
    session.query("SET lock_wait_timeout=2, innodb_lock_wait_timeout=2")
    return session


def enable(session):
    """The server refuses this while sessions that still use the cache keep it
    from being off"""
    for _ in range(1000):
        try:
            session.query("SET GLOBAL query_cache_type=1")
            return
        except wire.Error as error:
            if error.code != 1924:
                raise
            time.sleep(0.01)
    raise RuntimeError("the query cache does not become disabled")


def create(session):
    for table in TABLES:
        session.query("CREATE TABLE %s (k INT NOT NULL, v BIGINT NOT NULL, "
                      "PRIMARY KEY (k)) ENGINE=%s" % (table, ENGINES[table]))
        low = 100 if table == "c2" else 0
        session.query("INSERT INTO %s VALUES " % table + ",".join(
            "(%d,0)" % (low + i) for i in range(ROWS)))
    session.query("CREATE TABLE g (k INT NOT NULL, v BIGINT NOT NULL, KEY (k))"
                  " ENGINE=MERGE UNION=(c1,c2)")
    # A MERGE table wants children with the same keys
    for table in ("c1", "c2"):
        session.query("ALTER TABLE %s DROP PRIMARY KEY, ADD KEY (k)" % table)
    session.query("CREATE VIEW w AS SELECT m.k AS k, m.v AS mv, i.v AS iv "
                  "FROM m, i WHERE m.k = i.k")


def key(table, row):
    return row + 100 if table == "c2" else row


class Writer:
    """Has rows of its own and counts them up in every way there is"""

    def __init__(self, args, notes, number, writers):
        self.pause = args.pause
        self.session = connect(args)
        self.notes = notes
        self.rows = [(table, row) for table in TABLES for row in range(ROWS)
                     if row % writers == number % ROWS]
        self.rnd = random.Random("%d/%d" % (args.seed, number))
        self.next = {row: 0 for row in self.rows}
        for table in TABLES:
            self.session.query("PREPARE %s FROM 'UPDATE %s SET v=? WHERE k=?'"
                               % (table, table))
        self.done = 0

    def _value(self, row):
        self.next[row] += 1
        return self.next[row]

    def _update(self, row, value):
        self.session.query("UPDATE %s SET v=%d WHERE k=%d" %
                           (row[0], value, key(*row)))

    def step(self):
        rnd = self.rnd
        row = rnd.choice(self.rows)
        what = rnd.randrange(8)
        try:
            if what == 0:
                value = self._value(row)
                self.session.query("SET @v=%d, @k=%d" % (value, key(*row)))
                self.session.query("EXECUTE %s USING @v, @k" % row[0])
                self._note({row: value})
            elif what == 1:
                # Of engines with transactions: others would keep their
                # metadata locks and wait for table locks in any order
                rows = rnd.sample([r for r in self.rows if r[0] in "ip"], 2)
                values = {r: self._value(r) for r in sorted(rows)}
                self.session.query("BEGIN")
                for r, value in values.items():
                    self._update(r, value)
                self.session.query("COMMIT")
                self._note(values)
            elif what == 2:
                row = (rnd.choice("ip"), row[1])
                self.session.query("BEGIN")
                self._update(row, self._value(row))
                self.session.query("ROLLBACK")
            elif what == 3:
                value = self._value(row)
                self.session.query("LOCK TABLES %s WRITE" % row[0])
                try:
                    self._update(row, value)
                finally:
                    self.session.query("UNLOCK TABLES")
                self._note({row: value})
            elif what == 4:
                first = rnd.choice([r for r in self.rows if r[0] == "m"])
                second = ("i", first[1])
                values = {first: self._value(first),
                          second: self._value(second)}
                self.session.query(
                    "UPDATE m, i SET m.v=%d, i.v=%d WHERE m.k=%d AND i.k=%d" %
                    (values[first], values[second], first[1], first[1]))
                self._note(values)
            elif what == 5 and row[0] in ("c1", "c2"):
                value = self._value(row)
                self.session.query("UPDATE g SET v=%d WHERE k=%d" %
                                   (value, key(*row)))
                self._note({row: value})
            else:
                value = self._value(row)
                self._update(row, value)
                self._note({row: value})
        except wire.Error as error:
            # Deadlock, lock wait timeout, definition changed: not noted
            if error.code not in (1213, 1205, 1412, 1020, 1615):
                raise
            self.session.query("ROLLBACK")
        self.done += 1
        # Changes without a pause would leave nothing to read from the cache
        time.sleep(rnd.random() * self.pause)

    def _note(self, values):
        for row, value in values.items():
            self.notes.set(row[0], row[1], value)


class Reader:
    def __init__(self, args, notes, number):
        self.session = connect(args)
        self.notes = notes
        self.rnd = random.Random("%d/reader %d" % (args.seed, number))
        self.done = 0

    def _read(self, sql, rows):
        """rows: what each value of the result belongs to, in its order"""
        known = [self.notes.get(*row) for row in rows]
        answer = self.session.query(sql)
        got = [int(value) for line in answer for value in line]
        if len(got) != len(known):
            return "%s: %d values" % (sql, len(got))
        for row, new, old in zip(rows, got, known):
            if new < old:
                return ("%s: row %s of table %s has %d, but %d was committed "
                        "before" % (sql, row[1], row[0], new, old))
        self.done += 1
        return None

    def step(self):
        rnd = self.rnd
        table, row = rnd.choice(TABLES), rnd.randrange(ROWS)
        # Different texts make many results to be invalidated at a time
        text = "" if rnd.randrange(2) else " AND %d" % rnd.randrange(1, 300)
        what = rnd.randrange(10)
        try:
            if self.done % 100 == 0:
                # Disabling the cache has disabled it for this session
                self.session.query("SET query_cache_type=1")
            if what < 4:
                return self._read("SELECT v FROM %s WHERE k=%d%s" %
                                  (table, key(table, row), text),
                                  [(table, row)])
            if what < 6:
                return self._read(
                    "SELECT m.v, i.v, a.v FROM m, i, a WHERE m.k=%d AND "
                    "i.k=%d AND a.k=%d%s" % (row, row, row, text),
                    [("m", row), ("i", row), ("a", row)])
            if what == 6:
                return self._read("SELECT mv, iv FROM w WHERE k=%d%s" %
                                  (row, text), [("m", row), ("i", row)])
            if what == 7:
                return self._read(
                    "SELECT v FROM g WHERE 1%s ORDER BY k" % text,
                    [("c1", r) for r in range(ROWS)] +
                    [("c2", r) for r in range(ROWS)])
            if what == 8:
                return self._read(
                    "SELECT v FROM p WHERE 1%s ORDER BY k" % text,
                    [("p", r) for r in range(ROWS)])
            # A transaction; after its first SELECT the snapshot stays. So it
            # has to end though the SELECT fails (a lock wait timeout ends the
            # statement only): the SELECTs to come would be in it
            self.session.query("BEGIN")
            try:
                return self._read("SELECT v FROM i WHERE k=%d%s" % (row, text),
                                  [("i", row)])
            finally:
                self.session.query("COMMIT")
        except wire.Error as error:
            # The cache may be disabled just now; tables may be altered
            if error.code not in (1924, 1925, 1412, 1615, 1213, 1205):
                raise
            return None


class SlowReader:
    """
    Reads results of many packets, and takes its time: the server waits in the
    middle of one, be it from the cache or on its way into it. Now and then it
    goes away without reading the rest.
    """

    PAD = 20000

    def __init__(self, args, notes, number):
        self.args, self.notes = args, notes
        self.session = connect(args)
        self.rnd = random.Random("%d/slow reader %d" % (args.seed, number))
        self.done = 0

    def step(self):
        rnd = self.rnd
        table = rnd.choice(("p", "m", "i"))
        sql = ("SELECT k, v, REPEAT(CHAR(65+v%%26),%d) FROM %s WHERE %d "
               "ORDER BY k" % (self.PAD, table, rnd.randrange(1, 6)))
        known = [self.notes.get(table, row) for row in range(ROWS)]
        try:
            if self.done % 20 == 0:
                self.session.query("SET query_cache_type=1")
            self.session.send(sql)
            time.sleep(rnd.random() * 0.1)
            self.done += 1
            if rnd.randrange(10) == 0:
                self.session.close()
                self.session = connect(self.args)
                return None
            got = self.session.result()
        except wire.Error as error:
            if error.code not in (1924, 1925, 1412, 1615, 1213, 1205):
                raise
            return None
        if len(got) != ROWS:
            return "%s: %d rows" % (sql, len(got))
        for row, (_, value, pad) in enumerate(got):
            value = int(value)
            if value < known[row]:
                return ("%s: row %d has %d, but %d was committed before" %
                        (sql, row, value, known[row]))
            if pad != bytes((65 + value % 26,)) * self.PAD:
                return "%s: row %d is damaged" % (sql, row)
        return None


class Disturber:
    def __init__(self, args):
        self.session = connect(args)
        self.rnd = random.Random("%d/disturber" % args.seed)
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
            query("SET GLOBAL query_cache_size=%d" %
                  self.rnd.choice((1 << 18, 1 << 20, 1 << 22, 1 << 24)))
        elif what == 5:
            query("SET GLOBAL query_cache_type=0")
            enable(self.session)
        elif what == 6:
            query("ALTER TABLE %s COMMENT='%d'" %
                  (self.rnd.choice(("m", "i", "a")), self.done))
        elif what == 7:
            query("SET query_cache_type=1")
            query("DROP DATABASE IF EXISTS " + OTHER)
            query("CREATE DATABASE " + OTHER)
            query("CREATE TABLE %s.t (a INT)" % OTHER)
            for i in range(100):
                query("SELECT a,%d FROM %s.t" % (i, OTHER))
            query("DROP DATABASE " + OTHER)
        elif what == 8:
            query("FLUSH TABLES")


def work(pipe, make, args, end):
    error = None
    worker = make(*args)
    try:
        while time.monotonic() < end and not error:
            error = worker.step()
    except (wire.Error, OSError, ConnectionError, RuntimeError) as failure:
        error = "%s: %r" % (make.__name__, failure)
    pipe.send((make.__name__, worker.done, error))


def run(args, session, result, problems):
    """All sessions at once, until the time is up."""
    notes = Notes()
    create(session)
    end = time.monotonic() + args.seconds
    half = args.connections // 2
    crew = [(Writer, (args, notes, i, half)) for i in range(half)]
    crew += [(Reader, (args, notes, i)) for i in range(half)]
    crew += [(SlowReader, (args, notes, i)) for i in range(args.slow)]
    if not args.calm:
        crew.append((Disturber, (args,)))
    jobs = []
    for make, words in crew:
        mine, theirs = multiprocessing.Pipe(False)
        job = multiprocessing.Process(target=work, daemon=True,
                                      args=(theirs, make, words, end))
        job.start()
        theirs.close()
        jobs.append((job, mine))
    for job, pipe in jobs:
        try:
            if not pipe.poll(args.seconds + 300):
                problems.append("a connection hangs")
                break
            name, count, error = pipe.recv()
        except EOFError:
            name, count, error = "?", 0, "a process ended early"
        job.join()
        result["done"][name] = result["done"].get(name, 0) + count
        if error:
            problems.append(error)


def check(session, result, problems):
    """Everybody is at rest."""
    status = session.status("Qcache%")
    result["status"] = status
    if not status["Qcache_hits"]:
        problems.append("nothing was read from the cache")
    enable(session)
    session.query("RESET QUERY CACHE")
    for _ in range(300):
        status = session.status("Qcache%")
        if status["Qcache_total_blocks"] == 1:
            return
        time.sleep(0.1)
    problems.append("not all memory came back: %r" % status)


def main():
    # Half of the connections read, half of them write
    parser = stress.parser(__doc__, connections=2 * ROWS)
    parser.add_argument("--pause", type=float, default=0.1,
                        help="seconds at most between a writer's changes "
                        "(default %(default)s)")
    parser.add_argument("--slow", type=int, default=4,
                        help="number of readers that take long results slowly "
                        "(default %(default)s)")
    parser.add_argument("--calm", action="store_true",
                        help="without the disturbing session")
    args = parser.parse_args()
    if not 2 <= args.connections <= 2 * ROWS:
        parser.error("--connections must be from 2 to %d" % (2 * ROWS))

    problems = []
    result = {"program": "stress_query_cache", "seed": args.seed,
              "seconds": args.seconds, "connections": args.connections,
              "done": {}}
    try:
        session = connect(args, None)
        session.query("SET GLOBAL query_cache_size=4194304")
        enable(session)
        for name in (DATABASE, OTHER):
            session.query("DROP DATABASE IF EXISTS " + name)
        session.query("CREATE DATABASE " + DATABASE)
        session.query("USE " + DATABASE)
        before = session.status("Uptime")["Uptime"]
        started = time.monotonic()
        run(args, session, result, problems)
        passed = int(time.monotonic() - started)
        if session.status("Uptime")["Uptime"] < before + passed - 5:
            problems.append("the server was started anew")
        if "a connection hangs" not in problems:
            check(session, result, problems)
    except (OSError, ConnectionError):
        problems.append("the server is gone")
    except (wire.Error, RuntimeError) as failure:
        problems.append(repr(failure))
    result["ok"], result["problems"] = not problems, problems
    print(json.dumps(result, indent=1))
    return 0 if not problems else 1


if __name__ == "__main__":
    sys.exit(main())
