#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Predict how the table cache scales to more CPUs than this machine has.

A discrete-event simulation of CPUs that run statements, each on one table.
A statement is private work, which disturbs nobody, and steps in what CPUs
share: mutexes and cache lines.  Both are queues with one server each:

- A CPU that locks a mutex waits until those before it are done.  If another
  CPU had the mutex last, it first fetches the lines that the mutex protects.
- A CPU that writes a line which another CPU has written fetches it, and others
  wait.  A CPU that reads such a line fetches it, and nobody waits.

What a fetch costs depends on whether the two CPUs are in the same socket.
Everything else about caches, memory, the scheduler and InnoDB is left out: the
model says what the table caches allow, not what a server reaches.

Three designs are simulated: 'instances' (MariaDB's: an instance for each
connection by its number, up to 8 that are activated by contention; one mutex
for the list of unused definitions), 'shares' (this patch set's: a lock for each
table; one mutex for the order of eviction, which only a miss takes), and 'places'
(an earlier version of it: a lock for each table and CPU).  In all of them a
statement locks its table's metadata lock exclusively twice, to get and to give
back a ticket.  A hit rate of 1 means that every statement finds its table open;
the others open a table and evict another.

Inputs are nanoseconds.  --calibrate runs table_cache-bench, which measures what
a pair of acquire and release takes on this machine, alone and from two threads,
and prints what the model predicts for the latter.

Exit status: 0 done, 1 failed, 2 wrong usage.
"""

import argparse
import heapq
import json
import random
import subprocess
import sys

# Nanoseconds. A fetch from another core's cache: about 50 in the same socket,
# about 130 from the other one, in published measurements of two-socket servers
# (Xeon Scalable and EPYC: 45 to 60, and 110 to 200).
INPUTS = {
    "fetch_same_socket": 50.0,
    "fetch_other_socket": 130.0,
    # Uncontended: lock, lists and counters, unlock; from table_cache-bench
    "section_instance": 20.4,
    "section_slot": 9.5,
    # To add a TABLE to the order of eviction, and to find a victim
    "section_order": 150.0,
    # A mutex of the definition cache: lock, a reference, unlock
    "section_share": 15.0,
    # MDL_lock::m_rwlock, held while a ticket joins or leaves a list. A guess: as
    # two uncontended mutexes of the server and a list
    "section_mdl": 50.0,
    # CPU time of a statement that hits, and the time that a miss takes on top:
    # about as SELECT * FROM an empty InnoDB table, 16 connections, two CPUs
    "statement": 16000.0,
    "miss": 6000.0,
}
CPUS_PER_SOCKET = 128
LINES_OF_SECTION = 3            # mutex and list heads, the object, its share
LINES_OF_SLOT = 2               # the share's lists, the object
LINES_OF_MDL = 3                # the lock, its lists, a neighbour's ticket
INSTANCES = 8
# The designs' names in table_cache-bench
NAMES = {"instances": "instances", "shares": "shards"}
# MariaDB activates another instance after 20,000 waits for a mutex, unless four
# times as many acquisitions without a wait come first. A hundredth of both has the
# same effect within the time that is simulated.
WAITS_TO_ACTIVATE = 200


class Line:
    """A cache line: which CPU wrote it last, and when the next may."""

    __slots__ = ("owner", "free_at", "busy")

    def __init__(self):
        self.owner = None
        self.free_at = 0.0
        self.busy = 0.0


class Machine:
    """N CPUs that use mutexes and lines in the order of simulated time."""

    def __init__(self, cpus, inputs):
        self.cpus = cpus
        self.inputs = inputs
        self.sockets = 1 if cpus <= CPUS_PER_SOCKET else 2
        self.lines = {}

    def fetch(self, cpu, owner):
        """Nanoseconds to get a line from the cache of its owner."""
        if owner is None or owner == cpu:
            return 0.0
        same = cpu * self.sockets // self.cpus == (
            owner * self.sockets // self.cpus)
        return self.inputs["fetch_same_socket" if same
                           else "fetch_other_socket"]

    def line(self, name):
        if name not in self.lines:
            self.lines[name] = Line()
        return self.lines[name]

    def use(self, name, cpu, now, hold, lines=1):
        """Queue for a mutex or a line, fetch it, hold it; return when it is
        free again and whether there was a wait."""
        line = self.line(name)
        start = max(now, line.free_at)
        took = hold + lines * self.fetch(cpu, line.owner)
        line.busy += took
        line.free_at = start + took
        line.owner = cpu
        return line.free_at, start > now

    def read(self, name, cpu, now):
        """Read a line that other CPUs write."""
        return now + self.fetch(cpu, self.line(name).owner)


class Instances:
    """MariaDB's table cache: steps of a statement."""

    def __init__(self, machine, _tables):
        self.machine = machine
        self.active = 1
        self.waits = [0] * INSTANCES
        self.free = [0] * INSTANCES
        self.section = machine.inputs["section_instance"]
        self.share = machine.inputs["section_share"]

    def lock(self, instance, cpu):
        def step(now):
            now, waited = self.machine.use(f"LOCK_table_cache {instance}", cpu,
                                           now, self.section, LINES_OF_SECTION)
            if waited:
                self.waits[instance] += 1
                if self.waits[instance] == WAITS_TO_ACTIVATE:
                    self.active = min(self.active + 1, INSTANCES)
                    self.waits[instance] = self.free[instance] = 0
            else:
                self.free[instance] += 1
                if self.free[instance] == 4 * WAITS_TO_ACTIVATE:
                    self.waits[instance] = self.free[instance] = 0
            return now
        return step

    def lock_share(self, table, cpu):
        return lambda now: self.machine.use(
            f"LOCK_table_share {table}", cpu, now, self.share, 1)[0]

    def lock_mdl(self, table, cpu):
        return lambda now: self.machine.use(
            f"MDL {table}", cpu, now, self.machine.inputs["section_mdl"],
            LINES_OF_MDL)[0]

    def all_steps(self, cpu, hit, table, victim):
        mdl = self.lock_mdl(table, cpu)
        return [mdl] + self.steps(cpu, hit, table, victim) + [mdl]

    def unused(self, cpu):
        return lambda now: self.machine.use(
            "LOCK_unused_shares", cpu, now, self.share, 2)[0]

    def steps(self, cpu, hit, table, victim):
        instance = cpu % self.active
        lock = self.lock(instance, cpu)
        if hit:
            return [lock, "statement", lock]
        return [lock,                           # finds none
                self.lock_share(table, cpu), self.unused(cpu),
                "open",
                self.lock_share(table, cpu),
                lock,                           # adds, takes the victim
                self.lock_share(victim, cpu), "close",
                self.lock_share(victim, cpu), self.unused(cpu),
                "statement", lock]


class Shares(Instances):
    """This patch set's table cache."""

    def __init__(self, machine, tables):
        super().__init__(machine, tables)
        self.section = machine.inputs["section_slot"]
        self.order = machine.inputs["section_order"]

    def lock_slot(self, table, cpu):
        return lambda now: self.machine.use(f"slot {table}", cpu, now,
                                            self.section, LINES_OF_SLOT)[0]

    def lock_order(self, cpu):
        return lambda now: self.machine.use("LOCK_table_cache", cpu, now,
                                            self.order, LINES_OF_SECTION)[0]

    def steps(self, cpu, hit, table, victim):
        lock = self.lock_slot(table, cpu)
        if hit:
            return [lock, "statement", lock]
        return [self.lock_share(table, cpu), "open",
                self.lock_share(table, cpu),
                self.lock_order(cpu), self.lock_slot(victim, cpu),
                self.lock_share(victim, cpu), "close",
                self.lock_share(victim, cpu),
                "statement", lock]


class Places(Shares):
    """An earlier version: a table that is open several times has a lock for each
    CPU, up to 63."""

    def __init__(self, machine, tables):
        super().__init__(machine, tables)
        # Few tables are open more than once, and kept at the CPUs' places
        self.at_home = tables > machine.cpus

    def lock_slot(self, table, cpu):
        place = 0 if self.at_home else (
            1 + cpu * min(self.machine.cpus, 63) // self.machine.cpus)
        name = f"slot {table} {place}"
        return lambda now: self.machine.use(name, cpu, now, self.section,
                                            LINES_OF_SLOT)[0]


def simulate(design, cpus, hit_rate, inputs, statements, tables):
    """Run statements on all CPUs.

    Return (statements per second, name of the mutex or line that was busiest,
    the share of the time that it was busy, active instances or shards).
    """
    machine = Machine(cpus, inputs)
    cache = design(machine, tables)
    work = {"statement": inputs["statement"], "open": inputs["miss"] / 2,
            "close": inputs["miss"] / 2}
    queue = [(random.random() * inputs["statement"], cpu, [])
             for cpu in range(cpus)]
    heapq.heapify(queue)
    done, warm, begin, now = 0, statements // 2, 0.0, 0.0
    while done < statements + warm:
        now, cpu, steps = heapq.heappop(queue)
        if not steps:
            done += 1
            if done == warm:
                begin = now
                for line in machine.lines.values():
                    line.busy = 0.0
            steps = cache.all_steps(cpu, random.random() < hit_rate,
                                    random.randrange(tables),
                                    random.randrange(tables))
            steps.reverse()
        step = steps.pop()
        # Work varies: CPUs do not march in step
        after = (now + work[step] * random.uniform(0.7, 1.3)
                 if isinstance(step, str) else step(now))
        heapq.heappush(queue, (after, cpu, steps))
    elapsed = now - begin
    name, line = max(machine.lines.items(), key=lambda item: item[1].busy)
    parts = 1 if isinstance(cache, Shares) else cache.active
    return (statements / elapsed * 1e9, name.rstrip("0123456789 "),
            min(1.0, line.busy / elapsed), parts)


def pairs(design, cpus, inputs, shares):
    """Pairs of acquire and release a second, and nothing in between."""
    inputs = dict(inputs, statement=0.0, section_mdl=0.0)
    return simulate(design, cpus, 1.0, inputs, 40000, shares)[0]


def calibrate(program, inputs):
    """Measure pairs on this machine; return inputs with measured sections, and
    lines that compare a prediction with what was measured."""
    command = [program, "--threads=1,2", "--runs=5"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True,
                          check=False)
    if done.returncode:
        raise RuntimeError(f"{program} failed with status {done.returncode}")
    results = {(r["shares"], r["threads"]): r
               for r in json.loads(done.stdout)["results"] if not r["touch"]}
    inputs = dict(inputs)
    said = []
    for name, section in (("instances", "section_instance"),
                          ("shares", "section_slot")):
        inputs[section] = 5e8 / results[1, 1][NAMES[name]]["pairs_per_second"]
    for name, design in (("instances", Instances), ("shares", Shares)):
        measured = results[1, 2][NAMES[name]]["pairs_per_second"]
        predicted = pairs(design, 2, inputs, 1)
        said.append(f"{name}, 2 threads, 1 share: measured {measured / 1e6:.1f}"
                    f" million pairs/s, predicted {predicted / 1e6:.1f}")
    return inputs, said


def numbers(kind):
    def read(text):
        try:
            values = [kind(word) for word in text.split(",")]
        except ValueError:
            raise argparse.ArgumentTypeError(
                f"'{text}' is not a list of numbers") from None
        if any(value <= 0 for value in values):
            raise argparse.ArgumentTypeError("numbers must be above 0")
        return values
    return read


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cpus", type=numbers(int), default=[2, 8, 64, 256],
                        metavar="N,N...", help="numbers of CPUs to simulate "
                        "(default 2,8,64,256)")
    parser.add_argument("--hits", type=numbers(float), default=[1, 0.99, 0.5],
                        metavar="RATE,RATE...", help="hit rates, 1 for all "
                        "statements (default 1,0.99,0.5)")
    parser.add_argument("--statements", type=int, default=300000,
                        help="simulated for each cell (default %(default)s)")
    parser.add_argument("--tables", type=int, default=20000,
                        help="that statements choose from (default "
                        "%(default)s)")
    parser.add_argument("--calibrate", metavar="PROGRAM",
                        help="table_cache-bench of a release build")
    for name, value in INPUTS.items():
        parser.add_argument("--" + name.replace("_", "-"), type=float,
                            default=value, metavar="NS",
                            help=f"(default {value:g})")
    parser.add_argument("--json", action="store_true",
                        help="print JSON instead of a table")
    options = parser.parse_args()
    inputs = {name: getattr(options, name) for name in INPUTS}
    random.seed(1)
    said = []
    if options.calibrate:
        try:
            inputs, said = calibrate(options.calibrate, inputs)
        except (OSError, RuntimeError, ValueError, KeyError) as error:
            print(f"scaling.py: error: {error}", file=sys.stderr)
            return 1
    rows = []
    for hit_rate in options.hits:
        for cpus in options.cpus:
            for name, design in (("instances", Instances), ("shares", Shares),
                                 ("places", Places)):
                rate, busiest, busy, parts = simulate(
                    design, cpus, hit_rate, inputs, options.statements,
                    options.tables)
                rows.append({"hits": hit_rate, "cpus": cpus, "design": name,
                             "statements_per_second": round(rate),
                             "busiest": busiest, "busy": round(busy, 3),
                             "parts": parts})
                if not options.json:
                    print(f"hits {hit_rate:<5g} {cpus:4} CPUs  {name:9} "
                          f"{rate / 1e6:7.3f} million statements/s  busiest: "
                          f"{busiest}, {100 * busy:.0f} % of the time",
                          flush=True)
    if options.json:
        print(json.dumps({"inputs": inputs, "calibration": said,
                          "results": rows}, indent=1))
    else:
        for line in said:
            print(line)
        print("inputs, ns: " + ", ".join(f"{name} {value:.4g}"
                                         for name, value in inputs.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
