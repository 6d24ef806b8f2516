# SPDX-License-Identifier: GPL-2.0-only
"""A farm of sites like those that WordPress makes, page by page."""

import bisect
import itertools
import random
import shutil
import time

from benchlib import wire
from benchlib.load import read_files, run
from benchlib.scenario import (CONTROL, RESERVED_DESCRIPTORS, Scenario,
                               descriptor_limit, engines, integers, positive)
from benchlib.servers import BenchError, Server, copy_for_each
from benchlib.statistics import median, percentile, ratio_of_pairs
from benchlib.usage import resident

CONNECTIONS = 16
WRITES = 0.05                   # of all pages
POSTS = 10                      # of a site
# Bytes of a table, all of its files, with the rows that it gets here
TABLE_BYTES = {"myisam": 24 << 10, "aria": 56 << 10, "innodb": 128 << 10}
PAGES, CPU, OPENED, P50, P99, MEMORY = (
    "pages/s", "ms of the server's CPU time a page", "tables opened a page",
    "p50, ms a page", "p99, ms a page", "MiB of the server in memory")
LABELS = (PAGES, CPU, OPENED, P50, P99, MEMORY)

# The twelve tables of a site: what they are for and which keys they have is as
# in WordPress; the texts are this file's
TEXT = "VARCHAR(255) NOT NULL DEFAULT ''"
NUMBER = "BIGINT UNSIGNED NOT NULL DEFAULT 0"
WHEN = "DATETIME NOT NULL DEFAULT '2000-01-01 00:00:00'"
ID = "BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY"
META = (f"meta_id {ID}, owner {NUMBER}, meta_key VARCHAR(191) DEFAULT NULL, "
        "meta_value LONGTEXT, KEY (owner), KEY (meta_key)")
TABLES = {
    "options": f"option_id {ID}, name VARCHAR(191) NOT NULL UNIQUE, "
               "value LONGTEXT NOT NULL, autoload VARCHAR(20) NOT NULL "
               "DEFAULT 'yes', KEY (autoload)",
    "posts": f"id {ID}, author {NUMBER}, created {WHEN}, content LONGTEXT, "
             f"title TEXT, status VARCHAR(20) NOT NULL DEFAULT 'publish', "
             f"name VARCHAR(200) NOT NULL DEFAULT '', parent {NUMBER}, "
             "type VARCHAR(20) NOT NULL DEFAULT 'post', KEY (name), "
             "KEY (type, status, created, id), KEY (parent), KEY (author)",
    "postmeta": META,
    "comments": f"id {ID}, post {NUMBER}, author TINYTEXT, "
                f"email VARCHAR(100) NOT NULL DEFAULT '', created {WHEN}, "
                "approved VARCHAR(20) NOT NULL DEFAULT '1', content TEXT, "
                f"parent {NUMBER}, KEY (post), KEY (approved, created), "
                "KEY (created), KEY (parent), KEY (email)",
    "commentmeta": META,
    "users": f"id {ID}, login VARCHAR(60) NOT NULL DEFAULT '', password {TEXT}, "
             f"nicename VARCHAR(50) NOT NULL DEFAULT '', email VARCHAR(100) "
             f"NOT NULL DEFAULT '', registered {WHEN}, KEY (login), "
             "KEY (nicename), KEY (email)",
    "usermeta": META,
    "terms": f"term_id {ID}, name VARCHAR(200) NOT NULL DEFAULT '', "
             "slug VARCHAR(200) NOT NULL DEFAULT '', KEY (slug(191)), "
             "KEY (name(191))",
    "term_taxonomy": f"taxonomy_id {ID}, term_id {NUMBER}, taxonomy "
                     f"VARCHAR(32) NOT NULL DEFAULT '', count {NUMBER}, "
                     "UNIQUE (term_id, taxonomy), KEY (taxonomy)",
    "term_relationships": f"object_id {NUMBER}, taxonomy_id {NUMBER}, "
                          "PRIMARY KEY (object_id, taxonomy_id), "
                          "KEY (taxonomy_id)",
    "termmeta": META,
    "links": f"link_id {ID}, url {TEXT}, visible VARCHAR(20) NOT NULL "
             "DEFAULT 'Y', KEY (visible)",
}


def create_site(number, engine):
    """SQL for a site with some rows."""
    text = [f"CREATE DATABASE site{number}; USE site{number};"]
    text += [f"CREATE TABLE wp_{name} ({columns}) ENGINE={engine} "
             "DEFAULT CHARSET=utf8mb4;" for name, columns in TABLES.items()]
    text += [
        "INSERT INTO wp_options (name, value) VALUES " + ",".join(
            f"('option{n}', REPEAT('v', {20 + n % 7 * 30}))"
            for n in range(40)) + ";",
        "INSERT INTO wp_posts (title, name, content, author) VALUES " +
        ",".join(f"('A title {n}', 'a-title-{n}', REPEAT('text ', 150), 1)"
                 for n in range(1, POSTS + 1)) + ";",
        "INSERT INTO wp_postmeta (owner, meta_key, meta_value) "
        "SELECT id, 'template', 'default' FROM wp_posts;",
        "INSERT INTO wp_comments (post, author, content) "
        "SELECT id, 'a reader', 'a comment' FROM wp_posts;",
        "INSERT INTO wp_users (login, nicename) VALUES ('admin', 'admin');",
        "INSERT INTO wp_usermeta (owner, meta_key, meta_value) VALUES "
        "(1, 'nickname', 'admin'), (1, 'level', '10');",
        "INSERT INTO wp_terms (name, slug) VALUES ('News', 'news');",
        "INSERT INTO wp_term_taxonomy (term_id, taxonomy) "
        "VALUES (1, 'category');",
        "INSERT INTO wp_term_relationships VALUES " + ",".join(
            f"({n}, 1)" for n in range(1, POSTS + 1)) + ";",
        "INSERT INTO wp_links (url) VALUES ('http://example.org/');"]
    return "\n".join(text) + "\n"


def page(post, writes):
    """The statements of a page that shows a post."""
    yield "SELECT name, value FROM wp_options WHERE autoload = 'yes'"
    yield "SELECT value FROM wp_options WHERE name = 'theme' LIMIT 1"
    yield "SELECT * FROM wp_users WHERE login = 'admin' LIMIT 1"
    yield "SELECT owner, meta_key, meta_value FROM wp_usermeta WHERE owner = 1"
    yield (f"SELECT * FROM wp_posts WHERE name = 'a-title-{post}' "
           "AND type = 'post' ORDER BY created DESC")
    yield ("SELECT owner, meta_key, meta_value FROM wp_postmeta "
           f"WHERE owner = {post}")
    yield ("SELECT t.*, x.* FROM wp_terms t JOIN wp_term_taxonomy x USING "
           "(term_id) JOIN wp_term_relationships r USING (taxonomy_id) WHERE "
           f"x.taxonomy = 'category' AND r.object_id = {post} ORDER BY t.name")
    yield "SELECT term_id, name FROM wp_terms WHERE slug = 'news'"
    yield "SELECT owner, meta_key, meta_value FROM wp_termmeta WHERE owner = 1"
    yield (f"SELECT * FROM wp_comments WHERE post = {post} AND approved = '1' "
           "ORDER BY created LIMIT 50")
    yield f"SELECT COUNT(*) FROM wp_comments WHERE post = {post}"
    yield ("SELECT owner, meta_key, meta_value FROM wp_commentmeta "
           f"WHERE owner = {post}")
    yield "SELECT value FROM wp_options WHERE name = 'widget' LIMIT 1"
    yield ("SELECT id, title, name FROM wp_posts WHERE type = 'post' AND "
           "status = 'publish' ORDER BY created DESC LIMIT 5")
    yield ("SELECT id, title FROM wp_posts WHERE type = 'page' AND "
           "status = 'publish' ORDER BY title")
    yield ("SELECT c.author, p.title FROM wp_comments c JOIN wp_posts p ON "
           "p.id = c.post WHERE c.approved = '1' ORDER BY c.created DESC "
           "LIMIT 5")
    yield ("SELECT t.name, x.count FROM wp_terms t JOIN wp_term_taxonomy x "
           "USING (term_id) WHERE x.taxonomy = 'category' ORDER BY t.name")
    yield "SELECT url FROM wp_links WHERE visible = 'Y'"
    yield "SELECT value FROM wp_options WHERE name = 'cron' LIMIT 1"
    yield f"SELECT id FROM wp_posts WHERE id < {post} ORDER BY id DESC LIMIT 1"
    if writes:
        yield ("INSERT INTO wp_comments (post, author, content) "
               f"VALUES ({post}, 'a reader', 'one more')")
        yield "UPDATE wp_options SET value = 'now' WHERE name = 'option1'"


def popularity(sites):
    """Cumulated shares of the pages: the n-th site is asked for 1/n times as
    often as the first one. Which site that is, is by chance, but always the
    same."""
    weights = list(itertools.accumulate(1 / n for n in range(1, sites + 1)))
    return [weight / weights[-1] for weight in weights]


class Visitor:
    """A visitor looks at pages of sites, each by a connection of its own."""

    def __init__(self, socket, sites, seed):
        self.socket = socket
        self.chance = random.Random(seed)
        self.order = list(range(1, sites + 1))
        random.Random(sites).shuffle(self.order)
        self.limits = popularity(sites)

    def choose_site(self):
        return self.order[bisect.bisect_left(self.limits,
                                             self.chance.random())]

    def see_page(self):
        chance = self.chance
        site = self.choose_site()
        session = wire.Connection(self.socket, f"site{site}")
        for statement in page(chance.randint(1, POSTS),
                              chance.random() < WRITES):
            session.send(statement)
            session.skip_result()
        session.close()


def look(visitor, seconds):
    """Show pages, one after the other; ms that each took, and the time when
    that was done."""
    took = []
    now = time.monotonic()
    end = now + seconds
    while now < end:
        begin = now
        visitor.see_page()
        now = time.monotonic()
        took.append(1000 * (now - begin))
    return took, now


def visit(_, socket, sites, seconds, seed):
    """look(), as a client of benchlib.load."""
    return look(Visitor(socket, sites, seed), seconds)


def server_options(engine, tables, definitions=None):
    """Of a server for so many tables: their definitions fit, unless there is a
    limit, and half of each InnoDB table fits the buffer pool."""
    pool = (256 << 20) + (tables * TABLE_BYTES[engine] // 2
                          if engine == "innodb" else 0)
    return [f"--table-definition-cache={definitions or tables + 400}",
            "--open-files-limit=1048576", "--thread-cache-size=64",
            f"--innodb-buffer-pool-size={pool}",
            "--innodb-buffer-pool-load-at-startup=0",
            "--innodb-buffer-pool-dump-at-shutdown=0",
            "--innodb-flush-log-at-trx-commit=2",
            "--innodb-open-files=2000", "--innodb-flush-method=fsync"]


def part_of(engine, cache):
    return f"{engine}, table_open_cache={cache}: "


def settings_of(engine_names, caches):
    """(part, engine, cache) of each part"""
    return [(part_of(engine, cache), engine, cache)
            for engine in engines(engine_names) for cache in integers(caches)]


def need_descriptors_for(option, settings):
    """Refuse an option that wants more open tables than this shell may have."""
    need = (2 * max(cache for _, _, cache in settings)
            + RESERVED_DESCRIPTORS)
    if need > descriptor_limit():
        raise BenchError(f"{option}: {need} descriptors are needed, this shell "
                         f"may have {descriptor_limit()}")


class Farm(Scenario):
    name = "farm"
    title = "A farm of sites with twelve tables each"
    source = "hosts of WordPress, and wiki farms, with 20,000 tables and more"
    question = (
        "How many pages a second does a server give to sites of which a few are "
        "popular and most are asked for now and then?")
    method = (
        f"Each site is a database of {len(TABLES)} tables with WordPress's keys. "
        "A page is a new connection, and twenty statements on ten tables of one "
        f"site; {WRITES:.0%} of the pages also write twice. There are "
        f"{CONNECTIONS} clients. The n-th site is asked for 1/n times as often as "
        "the first one.\n\n"
        "Each engine and cache has fresh servers, each with a copy of the data. "
        "They are measured after warming up for as long as the measurement takes.")
    caveat = (
        "The clients are Python programs on the same CPUs, and take about as much "
        "of them as the server. So rates differ by less than the server's CPU time "
        "does. All files are in the page cache. Sites that are seldom asked for "
        "come up for the first time during the measurement, too. A server that "
        "shows more pages in the same time has read more definitions, and these "
        "take memory.")
    unit = "as named"
    weight = 10
    needs_servers = False

    @staticmethod
    def add_arguments(parser):
        parser.add_argument("--farm-sites", type=positive,
                            help="number of sites (default 1500; quick 200)")
        parser.add_argument("--farm-engines", default="innodb,myisam,aria")
        parser.add_argument("--farm-caches", metavar="N,N...",
                            help="table_open_cache (default 2000,8000; quick "
                            "400)")
        parser.add_argument("--farm-definitions", metavar="N", type=positive,
                            help="table_definition_cache (default: all fit)")
        parser.add_argument("--farm-seconds", type=positive,
                            help="of a measurement, and of warming up before "
                            "it (default 20; quick 4)")

    @staticmethod
    def sites(options):
        return options.farm_sites or (200 if options.quick else 1500)

    @staticmethod
    def seconds(options):
        return options.farm_seconds or (4 if options.quick else 20)

    @staticmethod
    def settings(options):
        """(part, engine, cache) of each part"""
        return settings_of(options.farm_engines, options.farm_caches or
                           ("400" if options.quick else "2000,8000"))

    @classmethod
    def check(cls, options):
        need_descriptors_for("--farm-caches", cls.settings(options))

    @classmethod
    def disk(cls, options):
        return 3 * cls.sites(options) * len(TABLES) * sum(
            TABLE_BYTES[engine] for engine in engines(options.farm_engines))

    @classmethod
    def parts(cls, options):
        return [part for part, _, _ in cls.settings(options)]

    @classmethod
    def cells(cls, options):
        return [{"label": part + label, "part": part}
                for part in cls.parts(options) for label in LABELS]

    @classmethod
    def server(cls, trees, variant, options, engine, data=None):
        return Server(trees / variant,
                      options.data / f"farm-{engine}-{cls.sites(options)}" /
                      (data or variant),
                      server_options(engine, cls.sites(options) * len(TABLES),
                                     options.farm_definitions))

    @classmethod
    def prepare_program(cls, trees, options, progress):
        """Make the sites once for each engine, and a copy for each variant."""
        sites = cls.sites(options)
        for engine in engines(options.farm_engines):
            server = cls.server(trees, "stock", options, engine, "data")
            ready = server.datadir.parent / "ready"
            if ready.exists():
                continue
            shutil.rmtree(server.datadir.parent, ignore_errors=True)
            server.start("--innodb-flush-log-at-trx-commit=0",
                         "--debug-no-sync", "--skip-innodb-doublewrite",
                         "--sync-frm=0", "--innodb-stats-auto-recalc=0")
            for begin in range(1, sites + 1, 20):
                progress(f"creating sites with {engine} tables", begin - 1,
                         sites)
                server.sql("".join(
                    create_site(number, engine) for number in
                    range(begin, min(begin + 20, sites + 1))))
            server.stop()
            copy_for_each(server, [
                cls.server(trees, variant, options, engine)
                for variant in ("stock", "patched")], progress)

    @classmethod
    def measure_pair(cls, trees, options, part, order):
        _, engine, cache = next(setting for setting in cls.settings(options)
                                if setting[0] == part)
        found = {}
        for name in (*order, CONTROL):
            server = cls.server(trees, "stock" if name == CONTROL else name,
                                options, engine)
            read_files(server.datadir)
            server.start(f"--table-open-cache={cache}")
            measured = cls.show_pages(server, options)
            server.stop()
            for label, value in measured.items():
                found.setdefault(part + label, {})[name] = value
        return found

    @classmethod
    def visits(cls, server, options, seed):
        """Clients that ask for the next page at once."""
        return run(server, None, *(
            (visit, server.socket, cls.sites(options), cls.seconds(options),
             seed + number) for number in range(CONNECTIONS)))

    @classmethod
    def show_pages(cls, server, options):
        cls.visits(server, options, 100)
        before = server.status("Opened_tables")
        answers, begin, used = cls.visits(server, options, 200)
        opened = server.status("Opened_tables") - before
        took = sorted(itertools.chain(*(took for took, _ in answers)))
        seconds = max(end for _, end in answers) - begin
        return dict(zip(LABELS, (
            len(took) / seconds, 1000 * used[0] / len(took),
            opened / len(took), percentile(took, 0.5), percentile(took, 0.99),
            resident(server.process.pid) / (1 << 20))))

    @staticmethod
    def remarks(results, options):
        said = []
        values = {cell["label"]: values for cell, values in results}
        for label in values:
            if not label.endswith(PAGES):
                continue
            part = label[:-len(PAGES)]
            ratio = ratio_of_pairs(values[label]["stock"],
                                   values[label]["patched"])
            control = ratio_of_pairs(values[label]["stock"],
                                     values[label].get(CONTROL, []))
            if ratio and control:
                opened = median(values[part + OPENED]["patched"])
                said.append(f"{part}{ratio['median']:.2f} times the pages of "
                            f"stock ({CONTROL}: {control['median']:.2f}), "
                            f"{opened:.1f} tables opened a page")
        return said
