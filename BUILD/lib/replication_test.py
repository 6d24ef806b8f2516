#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Replicate between the patched and the stock server, under load.

Three pairs of primary and replica: patched and stock, stock and patched, both
patched.  Each pair, with GTIDs and a parallel replica, goes through this:

  1. sysbench writes to InnoDB, MyISAM and Aria tables, while one client makes,
     alters, renames, truncates and drops tables, one flushes tables on the
     primary, and one on the replica.  Then both hold the same.
  2. The same with the replica restarted in the middle of the load.
  3. The primary is restarted; the replica reconnects; the same load again.
  4. Failover: the primary is shut down, the replica takes its place and gets
     the load, the former primary comes back as its replica.

With --from-trees the primary is of an older release series, which has its builds
there: stock and patched in turn, each with a patched replica of this series.
Step 4 is left out, as an older server need not follow a newer one.

The table caches hold 40 tables, fewer than are used, so that tables are
evicted and opened all the time on both sides.

Prints a line that begins with PASS or FAIL for each check.
Exit status: 0 all passed, 1 something failed, 2 wrong usage.
"""

import pathlib
import time

import outcome
import topology
from topology import Statements, Topology, say, until

PAIRS = (("patched", "stock"), ("stock", "patched"), ("patched", "patched"))
PAIRS_FROM_OLDER = (("stock", "patched"), ("patched", "patched"))
ENGINES = ("InnoDB", "MyISAM", "Aria")
TABLES = 20
# A table changed its definition, a lock conflict: the client tries again
RETRY = "1213,1205,1020,1412"


def ddl(number):
    """Statements of one round of the client that changes tables."""
    engine = ENGINES[number % len(ENGINES)]
    victim = f"load_{ENGINES[number // 3 % 3].lower()}.sbtest{number % TABLES + 1}"
    return f"""
CREATE DATABASE IF NOT EXISTS ddl; USE ddl;
CREATE OR REPLACE TABLE a{number % 7} (i INT PRIMARY KEY, t TEXT) ENGINE={engine};
INSERT INTO a{number % 7} SELECT seq, REPEAT('x', seq) FROM seq_1_to_50;
CREATE OR REPLACE TABLE b LIKE a{number % 7};
DROP TABLE IF EXISTS c{number % 5};
INSERT INTO b SELECT * FROM a{number % 7};
ALTER TABLE b ADD COLUMN j INT DEFAULT {number}, ADD KEY (j);
CREATE OR REPLACE TRIGGER log{number % 5} AFTER UPDATE ON b FOR EACH ROW
  DELETE FROM a{number % 7} WHERE i = NEW.i;
UPDATE b SET t = 'y' WHERE i < 10;
CREATE OR REPLACE VIEW v AS SELECT b.i, b.j FROM b;
RENAME TABLE b TO c{number % 5};
TRUNCATE TABLE a{number % 7};
DROP VIEW v;
ALTER TABLE {victim} ADD COLUMN extra INT DEFAULT {number};
ALTER TABLE {victim} DROP COLUMN extra;
ANALYZE TABLE {victim};
{f"OPTIMIZE TABLE {victim};" if number % 5 == 0 else ""}
"""


def flushes(number):
    victim = f"load_{ENGINES[number % 3].lower()}.sbtest{number % TABLES + 1}"
    return "SET lock_wait_timeout = 5;" + (
            f"FLUSH LOCAL TABLES {victim};",
            "FLUSH LOCAL TABLES;",
            "FLUSH TABLES WITH READ LOCK; DO SLEEP(0.1); UNLOCK TABLES;",
            f"FLUSH TABLES {victim} WITH READ LOCK; UNLOCK TABLES;",
            "SET GLOBAL table_open_cache = 10; DO SLEEP(0.1); "
            "SET GLOBAL table_open_cache = 40;")[number % 5]


def replica_flushes(number):
    """Without explicit locks on tables: appliers that wait for one in another
    order than they commit are a deadlock on any server."""
    return flushes((0, 1, 4)[number % 3] + 5 * number)


class Pair:
    def __init__(self, test, primary, replica, from_trees=None):
        """from_trees: the builds of the primary, if of another series."""
        self.test = test
        self.same_series = not from_trees
        series = f"{from_trees.name} " if from_trees else ""
        self.title = f"{series}{primary} primary, {replica} replica"
        common = ["--log-bin=binlog", "--log-slave-updates",
                  "--gtid-strict-mode=ON", "--slave-parallel-threads=4",
                  "--slave-parallel-mode=optimistic", "--slave-net-timeout=10",
                  "--gtid-pos-auto-engines=InnoDB"]
        self.nodes = []
        for number, variant, trees in ((1, primary, from_trees),
                                       (2, replica, None)):
            node = test.node(f"node{number}",
                             [*common, f"--server-id={number}",
                              f"--relay-log=relay{number}"], trees)
            node.use(variant)
            # The other one is being restarted
            node.expected = [r"Slave I/O: error (re)?connecting to master",
                             r"Error reading packet from server",
                             r"Slave I/O: Got fatal error 1236",
                             r"Slave.*[Cc]onnection was killed", r"Slave.*Lost connection"]
            self.nodes.append(node)
        self.primary, self.replica = self.nodes

    def follow(self, replica, primary):
        # A replica of 11.8 asks for TLS, which a primary of 10.11 has only
        # with a certificate
        plain = "" if self.same_series else ", MASTER_SSL=0, MASTER_SSL_VERIFY_SERVER_CERT=0"
        replica.sql(
            f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={primary.port}, "
            "MASTER_USER='replica', MASTER_PASSWORD='replica', MASTER_USE_GTID=slave_pos, "
            f"MASTER_CONNECT_RETRY=1{plain}; START SLAVE")

    def setup(self):
        for node in self.nodes:
            node.start()
            node.sql("SET SESSION sql_log_bin=0; "
                     "CREATE USER replica@'127.0.0.1' IDENTIFIED BY 'replica'; "
                     "GRANT REPLICATION SLAVE ON *.* TO replica@'127.0.0.1'")
            node.sql("RESET MASTER; SET GLOBAL gtid_slave_pos=''")
        self.follow(self.replica, self.primary)
        for engine in ENGINES:
            self.test.prepare(self.primary, f"load_{engine.lower()}",
                              tables=TABLES, table_size=200, mysql_storage_engine=engine)

    def phase(self, name, seconds, in_the_middle=None):
        """Load, wait for the replica, compare."""
        primary, replica = self.primary, self.replica
        say(f"{self.title}: {name}")
        title = f"{self.title}, {name}"
        opened = {node.name: int(node.value("Opened_tables")) for node in self.nodes}
        loads = [self.test.load(
            primary, "oltp_write_only", f"load_{engine.lower()}",
            self.test.work, 3, seconds, tables=TABLES, table_size=200,
            # Two clients may insert the same key: there is no transaction
            ignore=RETRY if engine == "InnoDB" else RETRY + ",1062",
            skip_trx="on" if engine != "InnoDB" else "off") for engine in ENGINES]
        clients = [Statements(primary, "DDL", ddl, ignore=(1213, 1205)),
                   Statements(primary, "FLUSH", flushes, ignore=(1205,), pause=0.5)]
        if not in_the_middle:
            clients.append(Statements(replica, "FLUSH", replica_flushes,
                                      ignore=(1205,), pause=0.5))
        for client in clients:
            client.start()
        if in_the_middle:
            time.sleep(seconds / 3)
            in_the_middle()
        problems = [load.finish(seconds + 120) for load in loads]
        problems += [client.finish() for client in clients]
        self.test.check(f"{title}: load, DDL and FLUSH end without an error",
                        "; ".join(filter(None, problems)))
        transactions = sum(load.count("transactions") for load in loads)
        rounds = clients[0].rounds
        self.caught_up(title)
        self.test.check(f"{title}: the replica has no error", self.replica_error())
        if not in_the_middle:
            few = [f"{node.name} opened only {now - opened[node.name]} tables"
                   for node in self.nodes
                   for now in [int(node.value("Opened_tables"))]
                   if now - opened[node.name] < 100]
            self.test.check(f"{title}: tables were evicted and opened again", "; ".join(few))
        self.test.compare(title, [primary, replica])
        say(f"{transactions} transactions, {rounds} rounds of DDL")

    def caught_up(self, title):
        position = self.primary.sql("SELECT @@GLOBAL.gtid_binlog_pos")[0][0]
        reached = self.replica.sql(f"SELECT MASTER_GTID_WAIT('{position}', 180)")[0][0]
        self.test.check(f"{title}: the replica reaches {position}",
                        None if reached == "0" else "not in 180 seconds")

    def replica_error(self):
        """What SHOW SLAVE STATUS says is wrong, or ''."""
        rows = self.replica.answers("SHOW SLAVE STATUS")
        if not rows:
            return "it is no replica"
        reads, applies, error = rows[0][10], rows[0][11], rows[0][19]
        if (reads, applies) == ("Yes", "Yes"):
            return ""
        return f"Slave_IO_Running={reads}, Slave_SQL_Running={applies} " + error

    def restart_replica(self):
        say("restarting the replica")
        self.replica.stop()
        self.replica.start()

    def restart_primary(self):
        say("restarting the primary")
        self.primary.stop()
        self.primary.start()
        until("the replica to reconnect", 60, lambda: not self.replica_error())

    def failover(self):
        say("failover")
        former, new = self.primary, self.replica
        former.stop()
        new.sql("STOP SLAVE; RESET SLAVE ALL")
        former.start()
        # As a replica it continues after its own last write as a primary
        former.sql("SET GLOBAL gtid_slave_pos=@@GLOBAL.gtid_binlog_pos")
        self.primary, self.replica = new, former
        self.follow(former, new)

    def run(self, seconds):
        self.setup()
        self.phase("load", seconds)
        self.phase("replica restarted under load", seconds, self.restart_replica)
        self.restart_primary()
        self.phase("after a restart of the primary", seconds)
        if self.same_series:
            self.failover()
            self.phase("after failover", seconds)
        for node in self.nodes:
            node.stop()
        self.test.check(f"{self.title}: no error in the logs",
                        "; ".join(f"{node.name}: {line}" for node in self.nodes
                                  for line in node.alarms()[:3]))


def main():
    arguments = topology.parse_arguments(
        "Test replication between patched and stock servers",
        ("--seconds", int, 20, "length of each of four loads of a pair"),
        ("--from-trees", pathlib.Path, None, "builds of an older series, for the primary"))
    topology.require("sysbench")
    failures = 0
    older = arguments.from_trees
    for primary, replica in PAIRS_FROM_OLDER if older else PAIRS:
        with Topology(arguments.trees) as test:
            Pair(test, primary, replica, older).run(arguments.seconds)
        failures += test.failures
    return 1 if failures else 0


if __name__ == "__main__":
    outcome.run(main, "replication")
