# SPDX-License-Identifier: GPL-2.0-only
"""Sites of WordPress: tables that it makes, and statements that it sends."""

import itertools
import json
import pathlib
import shutil
import time

from benchlib import wire, wordpress
from benchlib.load import read_files, run
from benchlib.scenario import CONTROL, Scenario, engines, positive
from benchlib.servers import BenchError, Server, copy_for_each
from benchlib.statistics import median, percentile, ratio_of_pairs

from .farm import (Visitor, look, need_descriptors_for, server_options,
                   settings_of)

CONNECTIONS = 16
TABLES = 12                     # of a site
# Bytes of a table, all of its files
TABLE_BYTES = {"myisam": 24 << 10, "aria": 72 << 10, "innodb": 160 << 10}
# How many of 100 pages are of which kind; the scenario's choice
KINDS = {"front": 40, "post": 35, "archive": 10, "login": 5, "admin": 5,
         "comment": 5}
RESTARTS = 3                    # each site's first page is measured after each
WARM, COLD = "warm", "each site's first page"
PAGES, CPU, P50, P99, OPENED = (
    "pages/s", "ms of the server's CPU time a page", "p50, ms a page",
    "p99, ms a page", "tables opened a page")
LABELS = (PAGES, CPU, P50, P99)
# As installers of such hosts do, each site has an account for its database
ACCOUNT = "CREATE USER site{0}@localhost IDENTIFIED BY 'password {0}'; " \
          "GRANT ALL ON site{0}.* TO site{0}@localhost;"


def clone(number, tables):
    """SQL for a site with the tables of the one that WordPress has made."""
    text = [f"CREATE DATABASE site{number}; USE site{number};",
            ACCOUNT.format(number)]
    for table in tables:
        made = f"{wordpress.ACCOUNT}.{table}"
        text.append(f"CREATE TABLE {table} LIKE {made}; "
                    f"INSERT INTO {table} SELECT * FROM {made};")
    return "\n".join(text) + "\n"


def packets(statements):
    """What is sent for each statement."""
    return [wire.packet(statement) for statement in statements]


class Reader(Visitor):
    """A visitor that asks for the pages of WordPress sites."""

    def __init__(self, socket, sites, seed, pages):
        super().__init__(socket, sites, seed)
        self.pages = {kind: packets(pages[kind]) for kind in KINDS}

    def see_page(self, site=None):
        site = site or self.choose_site()
        kind, = self.chance.choices(list(KINDS), KINDS.values())
        session = wire.Connection(self.socket, None, f"site{site}",
                                  f"password {site}")
        # As PHP's mysqli does
        for packet in (wire.packet(f"site{site}", wire.USE),
                       *self.pages[kind]):
            session.send_packets(packet)
            session.skip_result()
        session.close()


def read_on(_, socket, sites, seed, pages, seconds):
    """Look at pages of any site; as look()."""
    return look(Reader(socket, sites, seed, pages), seconds)


def read_each(_, socket, sites, seed, pages, part):
    """Look at one page of each site in a part, a slice of all; as look()."""
    reader = Reader(socket, sites, seed, pages)
    took = []
    for site in reader.order[part]:
        begin = time.monotonic()
        reader.see_page(site)
        took.append(1000 * (time.monotonic() - begin))
    return took, time.monotonic()


class Wordpress(Scenario):
    name = "wordpress"
    title = "Sites of WordPress"
    source = "hosts of WordPress with an account and a database a site"
    question = (
        "How many of WordPress's own pages does a server show, when each site is "
        "asked for the first time after a restart, and later on? What does a page "
        "cost it?")
    method = (
        "Preparation: WordPress, as Debian packages it, is installed by its own "
        "installer, and gets 20 posts with tags and comments. PHP shows its pages "
        "once, while the server's general log records their statements. The "
        "database is copied to each site, with an account of its own. Then PHP has "
        "ended.\n\n"
        "A page is a connection of the site's account, with a password, and the "
        "recorded statements, one by one over the text protocol. Of 100 pages "
        + ", ".join(f"{share} are '{kind}'" for kind, share in KINDS.items()) +
        f"; a comment writes. There are {CONNECTIONS} clients.\n\n"
        f"- '{COLD}': in the order of chance, after each of {RESTARTS} restarts. "
        "The page cache is warm.\n"
        f"- '{WARM}': after the clients were busy for as long as is measured. The "
        "n-th site is asked for 1/n times as often as the first one.")
    caveat = (
        "Nobody renders the pages: with PHP on the same machine a page takes "
        "several times as long, and the server's share is smaller. The clients are "
        "Python programs on the same CPUs. There are no plugins, and one post of "
        "each site is asked for. The mix of pages is a guess.")
    unit = "as named"
    weight = 8
    pairs = 3
    needs_servers = False

    @staticmethod
    def add_arguments(parser):
        parser.add_argument("--wordpress-sites", type=positive,
                            help="number of sites (default 300; quick 100)")
        parser.add_argument("--wordpress-engines",
                            default="innodb,myisam,aria")
        parser.add_argument("--wordpress-caches", metavar="N,N...",
                            help="table_open_cache (default 2000; quick 400)")
        parser.add_argument("--wordpress-seconds", type=positive,
                            help="of a measurement, and of warming up before "
                            "it (default 10; quick 3)")
        parser.add_argument("--wordpress-source", metavar="DIR",
                            help="another WordPress than Debian's package, "
                            "which apt-get downloads; it is copied")

    @staticmethod
    def sites(options):
        return options.wordpress_sites or (100 if options.quick else 300)

    @staticmethod
    def seconds(options):
        return options.wordpress_seconds or (3 if options.quick else 10)

    @staticmethod
    def settings(options):
        """(part, engine, cache) of each part"""
        return settings_of(options.wordpress_engines, options.wordpress_caches or
                           ("400" if options.quick else "2000"))

    @staticmethod
    def given(options):
        """Directory of a WordPress that is not Debian's package, or None."""
        return (pathlib.Path(options.wordpress_source).resolve()
                if options.wordpress_source else None)

    @classmethod
    def check(cls, options):
        wordpress.check()
        given = cls.given(options)
        if given and not (given / "wp-load.php").exists():
            raise BenchError(f"--wordpress-source: no WordPress in {given}")
        need_descriptors_for("--wordpress-caches", cls.settings(options))

    @classmethod
    def disk(cls, options):
        return 3 * (cls.sites(options) + 1) * TABLES * sum(
            TABLE_BYTES[engine]
            for engine in engines(options.wordpress_engines))

    @classmethod
    def parts(cls, options):
        return [part for part, _, _ in cls.settings(options)]

    @classmethod
    def cells(cls, options):
        return [{"label": f"{part}{state}: {label}", "part": part}
                for part in cls.parts(options) for state in (COLD, WARM)
                for label in LABELS + ((OPENED,) if state == WARM else ())]

    @classmethod
    def directory(cls, options, engine):
        return (options.data
                / f"wordpress-{engine}-{cls.sites(options)}")

    @classmethod
    def server(cls, trees, variant, options, engine, data=None):
        return Server(trees / variant,
                      cls.directory(options, engine) /
                      (data or variant),
                      [f"--default-storage-engine={engine}",
                       *server_options(engine,
                                       (cls.sites(options) + 1) * TABLES)])

    @classmethod
    def prepare_program(cls, trees, options, progress):
        """Install WordPress, record its pages, and make the sites, once for
        each engine; a copy of the data for each variant."""
        for engine in engines(options.wordpress_engines):
            made = cls.directory(options, engine)
            given = cls.given(options)
            if ((made / "ready").exists() and
                    cls.recorded(trees, options, engine)["source"]
                    == str(given)):
                continue
            shutil.rmtree(made, ignore_errors=True)
            server = cls.server(trees, "stock", options, engine, "data")
            server.start("--innodb-flush-log-at-trx-commit=0",
                         "--debug-no-sync", "--skip-innodb-doublewrite",
                         "--sync-frm=0", "--innodb-stats-auto-recalc=0")
            progress("installing WordPress", 0, 1)
            program = made / "program"
            wordpress.unpack(program, given)
            site = wordpress.Site(program, server)
            site.install()
            last = cls.last_comment(server)
            with site:
                pages = site.record()
            server.sql(cls.forget_comments(last), wordpress.ACCOUNT)
            (made / "pages.json").write_text(json.dumps({
                "source": str(given), "version": wordpress.version(program),
                "last_comment": last, "pages": pages}))
            cls.make_sites(server, cls.sites(options), progress)
            server.stop()
            shutil.rmtree(program)
            copy_for_each(server, [
                cls.server(trees, variant, options, engine)
                for variant in ("stock", "patched")], progress)

    @classmethod
    def recorded(cls, trees, options, engine):
        return json.loads((cls.directory(options, engine)
                           / "pages.json").read_text())

    @staticmethod
    def last_comment(server):
        return int(server.sql("SELECT MAX(comment_ID) FROM wp_comments",
                              wordpress.ACCOUNT)[0][0])

    @staticmethod
    def forget_comments(last):
        """SQL that takes those out that came later, so that a page stays what
        it is."""
        return f"DELETE FROM wp_comments WHERE comment_ID > {last};"

    @staticmethod
    def make_sites(server, sites, progress):
        tables = [name for name, in server.sql("SHOW TABLES",
                                               wordpress.ACCOUNT)]
        if len(tables) != TABLES:
            raise BenchError(f"WordPress has made {len(tables)} tables, "
                             f"{TABLES} were expected")
        step = 20
        for begin in range(1, sites + 1, step):
            progress("creating sites", begin - 1, sites)
            server.sql("".join(
                clone(number, tables) for number in
                range(begin, min(begin + step, sites + 1))))

    @classmethod
    def measure_pair(cls, trees, options, part, order):
        _, engine, cache = next(setting for setting in cls.settings(options)
                                if setting[0] == part)
        recorded = cls.recorded(trees, options, engine)
        found = {}
        for name in (*order, CONTROL):
            server = cls.server(trees, "stock" if name == CONTROL else name,
                                options, engine)
            read_files(server.datadir)
            measured = cls.measure_server(
                server, options, recorded["pages"],
                f"--table-open-cache={cache}")
            server.sql("".join(
                f"USE site{number}; "
                + cls.forget_comments(recorded["last_comment"])
                for number in range(1, cls.sites(options) + 1)))
            server.stop()
            for label, value in measured.items():
                found.setdefault(part + label, {})[name] = value
        return found

    @classmethod
    def measure_server(cls, server, options, pages, more):
        """The values of a server that is not running, and runs afterwards."""
        cold = []
        for start in range(RESTARTS):
            server.stop()
            server.start(more)
            cold.append(cls.first_pages(server, options, 300 + 100 * start,
                                        pages))
        found = {f"{COLD}: {label}": value
                 for label, value in rates(cold).items()}
        cls.visits(server, options, 100, pages)
        before = server.status("Opened_tables")
        warm = rates([cls.visits(server, options, 200, pages)])
        opened = server.status("Opened_tables") - before
        shown = warm[PAGES] * cls.seconds(options)
        warm[OPENED] = opened / shown
        found.update((f"{WARM}: {label}", value)
                     for label, value in warm.items())
        return found

    @classmethod
    def first_pages(cls, server, options, seed, pages):
        return run(server, None, *(
            (read_each, server.socket, cls.sites(options), seed + number,
             pages, slice(number, None, CONNECTIONS))
            for number in range(CONNECTIONS)))

    @classmethod
    def visits(cls, server, options, seed, pages):
        return run(server, None, *(
            (read_on, server.socket, cls.sites(options), seed + number,
             pages, cls.seconds(options)) for number in range(CONNECTIONS)))

    @classmethod
    def remarks(cls, results, options):
        said = []
        for _, engine, _ in cls.settings(options)[:1]:
            recorded = cls.recorded(options.trees, options, engine)
            said.append(
                f"WordPress {recorded['version']}, statements of a page: "
                + ", ".join(f"{kind} {len(recorded['pages'][kind])}"
                            for kind in KINDS))
        values = {cell["label"]: values for cell, values in results}
        for label in values:
            if not label.endswith(": " + CPU):
                continue
            ratio, control = (ratio_of_pairs(values[label]["stock"],
                                             values[label].get(name, []))
                              for name in ("patched", CONTROL))
            if ratio and control:
                said.append(f"{label[:-len(CPU)]}a page takes "
                            f"{median(values[label]['patched']):.2f} ms of the "
                            f"server's CPU time, {ratio['median']:.2f} times "
                            f"what it takes stock ({CONTROL}: "
                            f"{control['median']:.2f})")
        return said


def rates(runs):
    """The values of LABELS, of all runs together."""
    took = sorted(itertools.chain(*(took for answers, _, _ in runs
                                    for took, _ in answers)))
    seconds = sum(max(end for _, end in answers) - begin
                  for answers, begin, _ in runs)
    used = sum(used[0] for _, _, used in runs)
    return dict(zip(LABELS, (len(took) / seconds, 1000 * used / len(took),
                             percentile(took, 0.5), percentile(took, 0.99))))
