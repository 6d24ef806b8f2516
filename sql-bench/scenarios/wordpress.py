# SPDX-License-Identifier: GPL-2.0-only
"""Sites of WordPress: tables that it makes, and statements that it sends."""

import json
import shutil

from benchlib import wordpress
from benchlib.scenario import Option, engines, integers
from benchlib.servers import BenchError

from .pages import AT_ONCE, CLIENTS, GENERATOR, TABLES, Pages, account, states_of

# How many of 100 pages are of which kind; the scenario's choice
KINDS = {"front": 40, "post": 35, "archive": 10, "login": 5, "admin": 5,
         "comment": 5}


def clone(number, tables):
    """SQL for a site with the tables of the one that WordPress has made."""
    text = [account(number)]
    for table in tables:
        made = f"{wordpress.ACCOUNT}.{table}"
        text.append(f"CREATE TABLE {table} LIKE {made}; "
                    f"INSERT INTO {table} SELECT * FROM {made};")
    return "\n".join(text) + "\n"


class Wordpress(Pages):
    name = "wordpress"
    question = (
        "How many of WordPress's own pages does a server show, and how long does a "
        "visitor wait for one? What does a page cost it?")
    method = (
        "Preparation: WordPress, as Debian packages it, is installed by its own installer, and "
        "gets 20 posts with tags and comments. PHP shows its pages once, while the server's "
        "general log records their statements. The database is copied to each site, with an "
        "account of its own. Then PHP has ended.\n\n"
        "A page is a connection of the site's account, with a password, and the recorded "
        "statements, one by one over the text protocol. Of 100 pages "
        + ", ".join(f"{share} are '{kind}'" for kind, share in KINDS.items()) +
        "; a comment writes. The n-th site is asked for 1/n times as often as the first one.\n\n"
        f"Closed loop: {CLIENTS} clients ask for the next page at once, after they were busy "
        "for as long as is measured. Rates: Visitors come by chance (exponential gaps), the "
        "same ones for each server. Their average rate is a given part of the rate that the "
        "stock server shows with these sites when it is warm and its clients are all busy. "
        "That rate is measured once for each engine and cache, and is the same for each server "
        "and start. A page takes from the visitor's arrival to its end, so a stall counts for "
        f"all who wait. At most {AT_ONCE} pages are shown at once.\n\n"
        "- 'warm': before, all clients were busy for as long as is measured.\n"
        "- 'after a restart': the server has shown no page before.")
    caveat = (
        "Nobody renders the pages: with PHP on the same machine a page takes "
        "several times as long, and the server's share is smaller. " + GENERATOR +
        " All files are in the page cache. There are no plugins, and one post of each "
        "site is asked for. The mix of pages is a guess.")
    made = "wordpress"
    table_bytes = {"myisam": 24 << 10, "aria": 72 << 10, "innodb": 160 << 10}
    closed_loop = "closed loop: "

    sites = Option("wordpress-sites", "number of sites", 1000, 100)
    engines = Option("wordpress-engines", "engines", "innodb,myisam,aria", kind=engines)
    caches = Option("wordpress-caches", "table_open_cache", "2000", "400", integers)
    seconds = Option("wordpress-seconds", "of a measurement, and of warming up before it", 20, 3)
    rates = Option("rate", "visitors, in percent of what stock can do", "20,50,80,100", "50",
                   integers)
    states = Option("rate-states", "warm, cold (after a restart), or both", "warm,cold",
                    kind=states_of)

    @classmethod
    def check(cls, options):
        super().check(options)
        wordpress.check()

    @classmethod
    def fill(cls, server, options, part, progress):
        """Install WordPress, record its pages, and make the sites."""
        made = server.datadir.parent
        progress("installing WordPress", 0, 1)
        program = made / "program"
        wordpress.unpack(program)
        site = wordpress.Site(program, server)
        site.install()
        last = cls.last_comment(server)
        with site:
            pages = site.record()
        server.sql(after(last), wordpress.ACCOUNT)
        (made / "pages.json").write_text(json.dumps({
            "version": wordpress.version(program), "last_comment": last,
            "pages": pages}))
        shutil.rmtree(program)
        tables = [name for name, in server.sql("SHOW TABLES", wordpress.ACCOUNT)]
        if len(tables) != TABLES:
            raise BenchError(f"WordPress has made {len(tables)} tables, {TABLES} were expected")
        cls.make_sites(server, options, progress, lambda number: clone(number, tables))

    @classmethod
    def recorded(cls, options, engine):
        return json.loads((cls.directory(options, engine) / "pages.json").read_text())

    @classmethod
    def pages(cls, options, engine):
        recorded = cls.recorded(options, engine)["pages"]
        return {kind: (weight, recorded[kind]) for kind, weight in KINDS.items()}

    @staticmethod
    def last_comment(server):
        return int(server.sql("SELECT MAX(comment_ID) FROM wp_comments",
                              wordpress.ACCOUNT)[0][0])

    @classmethod
    def forget_comments(cls, options, engine):
        return after(cls.recorded(options, engine)["last_comment"])

    @classmethod
    def remarks(cls, results, options):
        engine, _ = next(iter(cls.settings(options).values()))
        recorded = cls.recorded(options, engine)
        return [f"WordPress {recorded['version']}, statements of a page: "
                + ", ".join(f"{kind} {len(recorded['pages'][kind])}" for kind in KINDS),
                *super().remarks(results, options)]


def after(last):
    """SQL that takes the comments out that came behind the last one."""
    return f"DELETE FROM wp_comments WHERE comment_ID > {last};"
