# SPDX-License-Identifier: GPL-2.0-only
"""Parts of cold-open: first touch, and SELECTs from known tables, beside the load of the
buffer pool and beside statements that change nothing in the dictionary."""

import multiprocessing
import random
import time

from benchlib import wire
from benchlib.load import run, shares
from benchlib.statistics import percentile

TOUCHING, READING = 4, 2        # connections
KNOWN = 200                     # tables that the hot SELECTs open each time
OPEN = 10                       # table_open_cache, so that they do
# The statements that a connection repeats during the first touch. The first is the
# control: it takes CPU time and no latch
COMPANY = {
    "SELECT 1": ("SELECT 1",),
    "CREATE TEMPORARY TABLE": (
        "CREATE TEMPORARY TABLE tmp (a INT PRIMARY KEY, b INT, KEY (b)) "
        "ENGINE=InnoDB", "DROP TEMPORARY TABLE tmp"),
    "SHOW CREATE TABLE": ("SHOW CREATE TABLE t1",),
    "INNODB_SYS_TABLES": (
        "SELECT COUNT(*) FROM information_schema.innodb_sys_tables",),
}
POOL_CELLS = ("longest hot SELECT, ms", "p99.9 of hot SELECTs, ms",
              "longest hot SELECT without the load, ms",
              "seconds that the load takes",
              "tables/s touched", "tables/s touched without the load")


def statements(session, texts, stop):
    """Repeat statements until told to stop."""
    done = 0
    while not stop.is_set():
        for text in texts:
            session.send(text)
            session.skip_result()
        done += 1
    return done


def touch_each(session, touch, tables, stop, running):
    """Select from each table once, until told to stop; the last of those that are running
    stops the others. Return how many, and when that was done."""
    done = 0
    for table in tables:
        if stop.is_set():
            break
        session.send(touch(table))
        session.skip_result()
        done += 1
    with running.get_lock():
        running.value -= 1
        if not running.value:
            stop.set()
    return done, time.monotonic()


def read_known(session, touch, seed, stop):
    """Time single SELECTs from known tables that have to be opened, in ms."""
    chance, took = random.Random(seed), []
    while not stop.is_set():
        start = time.monotonic()
        session.send(touch(chance.randint(1, KNOWN)))
        session.skip_result()
        took.append(1000 * (time.monotonic() - start))
    return took


def beside(server, database, touch, tables, *others, reading=0):
    """Touch tables for the first time beside others; return the rate, and how long SELECTs
    from known tables took."""
    stop = multiprocessing.Event()
    running = multiprocessing.Value("i", TOUCHING)
    answers, begin, _ = run(
        server, database,
        *((touch_each, touch, share, stop, running)
          for share in shares(tables, TOUCHING)),
        *((read_known, touch, number, stop) for number in range(reading)),
        *((work, *arguments, stop) for work, *arguments in others))
    touched = answers[:TOUCHING]
    rate = sum(count for count, _ in touched) / (
        max(end for _, end in touched) - begin)
    took = sorted(ms for one in answers[TOUCHING:TOUCHING + reading]
                  for ms in one)
    return rate, took


def load_pool(session, stop):
    """Load the buffer pool; return how long it took."""
    begin = time.monotonic()
    session.query("SET GLOBAL innodb_buffer_pool_load_now=1")
    while True:
        time.sleep(0.02)
        (_, status), = session.query(
            "SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_load_status'")
        if b"completed" in status:
            break
    took = time.monotonic() - begin
    stop.set()
    return took


def write_dump(server, database):
    """Let the dump of the pool name a page of every second table."""
    spaces = [space for space, in server.sql(
        "SELECT space FROM information_schema.innodb_sys_tables WHERE name "
        f"LIKE '{database}/t%' AND "
        "SUBSTRING_INDEX(name, '/t', -1) MOD 2 = 0")]
    (server.datadir / "ib_buffer_pool").write_text(
        "".join(f"{space},3\n" for space in spaces), encoding="ascii")
    return len(spaces)


def pool(server, database, touch, tables):
    """The load of a pool, half of all tables, beside SELECTs from known tables and the first
    touch of others."""
    write_dump(server, database)
    session = wire.Connection(server.socket, database)
    for table in range(1, KNOWN + 1):
        session.send(touch(table))
        session.skip_result()
    session.close()
    cold = range(KNOWN + 1, tables + 1, 2)      # not in the dump
    quarter = len(cold) // 4
    without, alone = beside(server, database, touch, cold[:quarter],
                            reading=READING)
    stop = multiprocessing.Event()
    running = multiprocessing.Value("i", TOUCHING + 1)
    answers, begin, _ = run(
        server, database, (load_pool, stop),
        *((touch_each, touch, share, stop, running)
          for share in shares(cold[quarter:], TOUCHING)),
        *((read_known, touch, number, stop) for number in range(READING)))
    touched = answers[1:1 + TOUCHING]
    rate = sum(count for count, _ in touched) / (
        max(end for _, end in touched) - begin)
    took = sorted(ms for one in answers[1 + TOUCHING:] for ms in one)
    return dict(zip(POOL_CELLS, (
        took[-1], percentile(took, 0.999), alone[-1], answers[0], rate,
        without)))


def company(server, database, touch, tables):
    """First touch beside a connection that repeats a statement."""
    found = {}
    for (name, texts), share in zip(COMPANY.items(), shares(
            range(KNOWN + 1, tables + 1), len(COMPANY))):
        rate, _ = beside(server, database, touch, share, (statements, texts))
        found[f"tables/s beside {name}"] = rate
    return found
