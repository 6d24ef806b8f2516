#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""A Galera cluster of three nodes on this machine, stock and patched mixed.

  1. Three stock nodes; two get their data from the first by rsync.
  2. Rolling replacement under load: each node in turn is shut down and comes
     back as the patched server.  The last one has lost its data, and gets all
     by mariadb-backup.
  3. A patched node is killed and comes back.
  4. One node goes back to the stock server, then to the patched one again,
     the second time with its data lost, by rsync.

The load: on each node, sysbench's read-write transactions on tables that all
nodes write to, where only conflicts between nodes are repeated; and a ledger
of its own, in which no error at all is allowed, and which notes each
transaction whose COMMIT was acknowledged.  The load of a node that is being
restarted fails, and is started again; the others' must not.  One client on a
node that stays makes, alters and drops tables, and flushes others.

In the end all nodes are equal, and each acknowledged transaction is there.

Prints a line that begins with PASS or FAIL for each check.
Exit status: 0 all passed, 1 something failed, 2 wrong usage.
"""

import os
import pathlib
import pwd
import re
import shutil
import subprocess
import time

import outcome
import topology
from common import Problem
from topology import Statements, Topology, say, until

PROVIDERS = ("/usr/lib/galera/libgalera_smm.so", "/usr/lib64/galera-4/libgalera_smm.so",
             "/usr/lib64/galera/libgalera_smm.so")
SHARED_TABLES = 60
LEDGER = str(pathlib.Path(__file__).resolve().parent / "ledger.lua")


def ddl(number):
    """One round of a client that changes and flushes tables of its own.
    Galera carries each statement out on all nodes at the same point.

    Tables under load are not flushed: FLUSH of one of them, LOCAL or not, may
    wait for a transaction that waits for an applier that waits for the FLUSH,
    for ever.  The stock server does so, too.
    """
    return f"""
CREATE DATABASE IF NOT EXISTS ddl; USE ddl;
CREATE OR REPLACE TABLE a{number % 7} (i INT PRIMARY KEY, t TEXT);
INSERT INTO a{number % 7} SELECT seq, REPEAT('x', seq) FROM seq_1_to_50;
DROP TABLE IF EXISTS b;
CREATE TABLE b LIKE a{number % 7};
ALTER TABLE b ADD COLUMN j INT DEFAULT {number}, ADD KEY (j);
INSERT INTO b (i, t) VALUES (1, 'x');
DROP TABLE IF EXISTS c{number % 5};
RENAME TABLE b TO c{number % 5};
TRUNCATE TABLE a{number % 7};
FLUSH TABLES a{number % 7};
FLUSH LOCAL TABLES c{number % 5};
SET GLOBAL table_open_cache = 10;
SET GLOBAL table_open_cache = 40;
"""


class Member:
    """A node of the cluster, and the load that runs on it."""

    def __init__(self, cluster, number):
        self.cluster = cluster
        self.number = number
        self.runs = 0
        self.loads = []
        self.node = cluster.test.node(f"node{number}", [])
        self.group, self.ist, self.sst = topology.free_ports(3)
        self.node.expected = [
            # A member logs that others come and go
            r"\[ERROR\] WSREP: (gcs|Failed to (get|open)|.*[Cc]onnection)",
        ]

    def configure(self):
        members = self.cluster.members
        addresses = ",".join(f"127.0.0.1:{member.group}" for member in members)
        self.node.options += [
            "--wsrep-on=ON", f"--wsrep-provider={self.cluster.provider}",
            "--wsrep-cluster-name=table_cache",
            f"--wsrep-cluster-address=gcomm://{addresses}",
            f"--wsrep-node-name=node{self.number}",
            "--wsrep-node-address=127.0.0.1",
            f"--wsrep-node-incoming-address=127.0.0.1:{self.node.port}",
            f"--wsrep-sst-receive-address=127.0.0.1:{self.sst}",
            f"--wsrep-sst-auth={self.cluster.sst_auth}",
            "--wsrep-slave-threads=2",
            f"--wsrep-provider-options=base_host=127.0.0.1;base_port={self.group};"
            f"gmcast.listen_addr=tcp://127.0.0.1:{self.group};"
            f"ist.recv_addr=127.0.0.1:{self.ist};gcache.size=256M;"
            # Three servers and their load share a machine, which may keep
            # one waiting for longer than a network does
            "evs.suspect_timeout=PT15S;evs.inactive_timeout=PT30S;evs.install_timeout=PT30S",
            "--binlog-format=ROW", "--innodb-autoinc-lock-mode=2"]

    def start(self, variant, *options):
        """Start this build, and wait until the node has all data."""
        self.node.use(variant)
        # State transfers run the build's own programs
        os.environ["PATH"] = os.pathsep.join([
            *(str(self.node.build / name) for name in
              ("scripts", "extra/mariabackup", "extra", "client")), self.cluster.path])
        self.node.start(*options)
        until(f"node{self.number} to be synced", 180, self.synced)

    def synced(self):
        self.node.lives()
        return (self.node.value("wsrep_local_state_comment") == "Synced"
                and self.node.value("wsrep_ready") == "ON")

    def recovered_position(self):
        """Where the data of a node that was killed ends, as mariadbd-safe
        finds it out."""
        node = self.node
        log = self.cluster.test.work / f"recover{self.number}.err"
        log.unlink(missing_ok=True)
        subprocess.run(node.command(log, "--wsrep-recover", "--skip-networking"),
                       check=False, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        found = re.findall(r"Recovered position:\s*(\S+)", log.read_text())
        if not found:
            raise Problem(f"node{self.number}: --wsrep-recover found no "
                          "position:\n" + log.read_text()[-2000:])
        return found[-1]

    def empty_data(self):
        """A data directory as it is after the installation."""
        datadir = self.node.datadir
        shutil.rmtree(datadir, ignore_errors=True)
        shutil.copytree(self.cluster.empty, datadir)
        self.let_rsync_write()

    def let_rsync_write(self):
        """Run by root, its daemon writes as nobody."""
        if os.geteuid() == 0:
            self.cluster.test.work.chmod(0o755)
            nobody = pwd.getpwnam("nobody")
            datadir = self.node.datadir
            for path in (datadir, *datadir.rglob("*")):
                os.chown(path, nobody.pw_uid, nobody.pw_gid)

    # ----------------------------------------------------------------- load

    def start_load(self):
        self.runs += 1
        test = self.cluster.test
        self.loads = [
            test.load(self.node, "oltp_read_write", "shared", test.work, 2,
                      7200, ignore="1213,1205,1020", tables=SHARED_TABLES, table_size=200),
            test.load(self.node, LEDGER, f"ledger{self.number}", test.work, 2,
                      7200, run=self.runs, account=test.work / f"account{self.number}")]

    def load_problem(self):
        """What went wrong with the load so far, or None."""
        for load in self.loads:
            if load.process.poll() is not None:
                return load.finish() or f"{load.title} ended too early"
        return None

    def stop_load(self):
        for load in self.loads:
            load.stop()
        self.loads = []

    def acknowledged(self):
        """{(run, thread, seq)} of the transactions that were acknowledged."""
        result = set()
        for path in self.cluster.test.work.glob(f"account{self.number}.*"):
            for line in path.read_text().splitlines():
                if len(line.split()) == 3:
                    result.add(tuple(map(int, line.split())))
        return result


class Cluster:
    def __init__(self, test, provider, seconds):
        self.test = test
        self.provider = provider
        self.seconds = seconds
        self.sst_auth = "sst:sst"
        self.empty = test.work / "empty"
        self.path = os.environ["PATH"]
        self.members = [Member(self, number) for number in (1, 2, 3)]
        for member in self.members:
            member.configure()

    def form(self):
        first = self.members[0]
        first.node.create_datadir(self.empty)
        for member in self.members:
            member.empty_data()
        say("three stock nodes; the second and third get their data by rsync")
        first.start("stock", "--wsrep-new-cluster")
        node = first.node
        node.sql("CREATE USER sst@localhost IDENTIFIED BY 'sst'; "
                 "GRANT ALL ON *.* TO sst@localhost")
        self.test.prepare(node, "shared", tables=SHARED_TABLES, table_size=200)
        for member in self.members:
            node.sql(f"""
CREATE DATABASE ledger{member.number}; USE ledger{member.number};
CREATE TABLE entries (run INT, thread INT, seq INT, t VARCHAR(300),
                      PRIMARY KEY (run, thread, seq));
CREATE TABLE counters (run INT, thread INT, n INT, PRIMARY KEY (run, thread));
""")
        for member in self.members[1:]:
            member.start("stock", "--wsrep-sst-method=rsync")
        self.check_size("three stock nodes form a cluster")

    def check_size(self, name):
        sizes = [member.node.value("wsrep_cluster_size") for member in self.members]
        variants = [member.node.variant for member in self.members]
        self.test.check(f"{name} ({', '.join(variants)})",
                        None if sizes == ["3"] * 3
                        else f"sizes of the cluster as seen: {sizes}")

    def replace(self, member, variant, name, *, method="rsync", kill=False, lose=False):
        """Take one node down under load and bring it back as another build."""
        others = [other for other in self.members if other is not member]
        say(name)
        client = Statements(others[0].node, "DDL", ddl, pause=0.2)
        client.start()
        time.sleep(self.seconds)
        if kill:
            member.node.kill()
        else:
            member.node.stop()
        member.stop_load()
        time.sleep(self.seconds)
        before = os.path.getsize(member.node.log)
        if lose:
            member.empty_data()
            options = [f"--wsrep-sst-method={method}",
                       f"--wsrep-sst-donor=node{others[1].number}"]
        elif kill:
            options = ["--wsrep-start-position=" + member.recovered_position()]
            # A node that was killed in the middle of DDL gets all data anew
            member.let_rsync_write()
        else:
            options = []
        member.start(variant, *options)
        member.start_load()
        time.sleep(self.seconds)
        problems = [client.finish()]
        problems += [other.load_problem() for other in self.members]
        self.test.check(f"{name}: no error on the nodes that stayed",
                        "; ".join(filter(None, problems)))
        self.check_size(f"{name}: three nodes again")
        with open(member.node.log, "rb") as log:
            log.seek(before)
            text = log.read().decode(errors="replace")
        ways = re.findall(r"(\w+ [SI]ST) completed on joiner", text)
        say(f"the node came back by {' and '.join(ways) or 'nothing'}; "
            f"{client.rounds} rounds of DDL")
        if lose:
            self.test.check(f"{name}: all data was transferred",
                            None if f"{method} SST" in ways else f"state transfers: {ways}")

    def settle(self):
        """Stop the load; wait until all nodes have applied all."""
        for member in self.members:
            member.stop_load()
        for load in self.test.loads:
            load.stop()

        def same():
            states = [(member.node.value("wsrep_last_committed"),
                       member.node.value("wsrep_local_recv_queue")) for member in self.members]
            return len(set(states)) == 1 and states[0][1] == "0" and states[0][0]

        until("all nodes at the same transaction", 120, same)

    def check_ledger(self):
        for member in self.members:
            acknowledged = member.acknowledged()
            for other in self.members:
                stored = {tuple(map(int, row)) for row in other.node.sql(
                    f"SELECT run, thread, seq FROM ledger{member.number}.entries")}
                counted = int(other.node.sql(
                    f"SELECT COALESCE(SUM(n), 0) FROM ledger{member.number}.counters")[0][0])
                lost = acknowledged - stored
                problem = None
                if not acknowledged:
                    problem = "no transaction ran"
                elif lost:
                    problem = f"{len(lost)} are lost, such as {min(lost)}"
                elif counted != len(stored):
                    problem = (f"{len(stored)} entries, but the counters, "
                               f"changed with them, say {counted}")
                self.test.check(
                    f"node{other.number} has all {len(acknowledged)} "
                    f"transactions that node{member.number} acknowledged", problem)

    def run(self):
        self.form()
        for member in self.members:
            member.start_load()
        one, two, three = self.members
        self.replace(one, "patched", "node1 becomes patched")
        self.replace(two, "patched", "node2 becomes patched")
        self.replace(three, "patched", "node3 becomes patched, data lost",
                     method="mariabackup", lose=True)
        self.replace(two, "patched", "node2 is killed", kill=True)
        self.replace(one, "stock", "node1 goes back to stock")
        self.replace(one, "patched", "node1 becomes patched again, data lost", lose=True)
        self.settle()
        evicted = [f"{member.node.name}: none" for member in self.members
                   if not int(member.node.value("Table_open_cache_evictions") or 0)]
        self.test.check("tables were evicted on all nodes", "; ".join(evicted))
        self.check_ledger()
        self.test.compare("in the end",
                          [member.node for member in self.members])
        for member in self.members:
            member.node.stop()
        self.test.check("no error in the logs", "; ".join(
            f"{member.node.name}: {line}" for member in self.members
            for line in member.node.alarms()[:3]))


def main():
    arguments = topology.parse_arguments(
        "Test a mixed Galera cluster",
        ("--seconds", int, 10, "load before, while and after a node is away"))
    topology.require("sysbench", "rsync", "socat", "ss")
    provider = next((path for path in PROVIDERS if os.path.exists(path)), None)
    if not provider:
        raise Problem("libgalera_smm.so is missing (Debian's package galera-4)")
    with Topology(arguments.trees) as test:
        Cluster(test, provider, arguments.seconds).run()
    return 1 if test.failures else 0


if __name__ == "__main__":
    outcome.run(main, "galera")
