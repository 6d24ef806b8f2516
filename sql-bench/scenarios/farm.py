# SPDX-License-Identifier: GPL-2.0-only
"""A farm of sites like those that WordPress makes, page by page."""

from benchlib.scenario import Option, engines, integers

from .pages import CLIENTS, GENERATOR, TABLES, Pages, account

WRITES = 5                      # of 100 pages
POSTS = 10                      # of a site

# The twelve tables of a site: what they are for and which keys they have is as
# in WordPress; the texts are this file's
TEXT = "VARCHAR(255) NOT NULL DEFAULT ''"
NUMBER = "BIGINT UNSIGNED NOT NULL DEFAULT 0"
WHEN = "DATETIME NOT NULL DEFAULT '2000-01-01 00:00:00'"
ID = "BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY"
META = (f"meta_id {ID}, owner {NUMBER}, meta_key VARCHAR(191) DEFAULT NULL, "
        "meta_value LONGTEXT, KEY (owner), KEY (meta_key)")
SITE = {
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


def create_site(number):
    """SQL for a site with some rows."""
    text = [account(number)]
    text += [f"CREATE TABLE wp_{name} ({columns}) DEFAULT CHARSET=utf8mb4;"
             for name, columns in SITE.items()]
    text += [
        "INSERT INTO wp_options (name, value) VALUES " + ",".join(
            f"('option{n}', REPEAT('v', {20 + n % 7 * 30}))" for n in range(40)) + ";",
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
        "INSERT INTO wp_term_taxonomy (term_id, taxonomy) VALUES (1, 'category');",
        "INSERT INTO wp_term_relationships VALUES " + ",".join(
            f"({n}, 1)" for n in range(1, POSTS + 1)) + ";",
        "INSERT INTO wp_links (url) VALUES ('http://example.org/');"]
    return "\n".join(text) + "\n"


# The statements of a page that shows a post
READ = [
    "SELECT name, value FROM wp_options WHERE autoload = 'yes'",
    "SELECT value FROM wp_options WHERE name = 'theme' LIMIT 1",
    "SELECT * FROM wp_users WHERE login = 'admin' LIMIT 1",
    "SELECT owner, meta_key, meta_value FROM wp_usermeta WHERE owner = 1",
    "SELECT * FROM wp_posts WHERE name = 'a-title-{item}' "
    "AND type = 'post' ORDER BY created DESC",
    "SELECT owner, meta_key, meta_value FROM wp_postmeta WHERE owner = {item}",
    "SELECT t.*, x.* FROM wp_terms t JOIN wp_term_taxonomy x USING "
    "(term_id) JOIN wp_term_relationships r USING (taxonomy_id) WHERE "
    "x.taxonomy = 'category' AND r.object_id = {item} ORDER BY t.name",
    "SELECT term_id, name FROM wp_terms WHERE slug = 'news'",
    "SELECT owner, meta_key, meta_value FROM wp_termmeta WHERE owner = 1",
    "SELECT * FROM wp_comments WHERE post = {item} AND approved = '1' ORDER BY created LIMIT 50",
    "SELECT COUNT(*) FROM wp_comments WHERE post = {item}",
    "SELECT owner, meta_key, meta_value FROM wp_commentmeta WHERE owner = {item}",
    "SELECT value FROM wp_options WHERE name = 'widget' LIMIT 1",
    "SELECT id, title, name FROM wp_posts WHERE type = 'post' AND "
    "status = 'publish' ORDER BY created DESC LIMIT 5",
    "SELECT id, title FROM wp_posts WHERE type = 'page' AND status = 'publish' ORDER BY title",
    "SELECT c.author, p.title FROM wp_comments c JOIN wp_posts p ON "
    "p.id = c.post WHERE c.approved = '1' ORDER BY c.created DESC LIMIT 5",
    "SELECT t.name, x.count FROM wp_terms t JOIN wp_term_taxonomy x "
    "USING (term_id) WHERE x.taxonomy = 'category' ORDER BY t.name",
    "SELECT url FROM wp_links WHERE visible = 'Y'",
    "SELECT value FROM wp_options WHERE name = 'cron' LIMIT 1",
    "SELECT id FROM wp_posts WHERE id < {item} ORDER BY id DESC LIMIT 1",
    ]
# And these when somebody comments on it
WRITE = [
    "INSERT INTO wp_comments (post, author, content) VALUES ({item}, 'a reader', 'one more')",
    "UPDATE wp_options SET value = 'now' WHERE name = 'option1'",
    ]


class Farm(Pages):
    name = "farm"
    question = (
        "How many pages a second does a server give to sites of which a few are "
        "popular and most are asked for now and then?")
    method = (
        f"Each site is a database of {TABLES} tables with WordPress's keys, and an "
        "account. A page is a new connection of that account, and twenty statements "
        f"on ten tables; {WRITES} of 100 pages also write twice. There are {CLIENTS} "
        "clients, each of which asks for its next page at once. The n-th site is "
        "asked for 1/n times as often as the first one.\n\n"
        "Each engine and cache has fresh servers, each with a copy of the data. "
        "They are measured after warming up for as long as the measurement takes.")
    caveat = (
        "A closed loop: a faster server gets more pages at the same time, so a page's time "
        f"says little of what a visitor waits (see wordpress). {GENERATOR} All files are in the "
        "page cache. Sites that are seldom asked for come up for the first time during the "
        "measurement, too. A server that shows more pages in the same time has read more "
        "definitions, and these take memory.")
    made = "farm"
    # With the rows that a table gets here
    table_bytes = {"myisam": 24 << 10, "aria": 56 << 10, "innodb": 128 << 10}
    items = POSTS

    sites = Option("farm-sites", "number of sites", 1500, 200)
    engines = Option("farm-engines", "engines", "innodb,myisam,aria", kind=engines)
    caches = Option("farm-caches", "table_open_cache", "2000,8000", "400", integers)
    seconds = Option("farm-seconds", "of a measurement, and of warming up before it", 20, 4)

    @classmethod
    def fill(cls, server, options, part, progress):
        cls.make_sites(server, options, progress, create_site)

    @classmethod
    def pages(cls, options, engine):
        return {"read": (100 - WRITES, READ), "write": (WRITES, READ + WRITE)}

    @classmethod
    def forget_comments(cls, options, engine):
        return f"DELETE FROM wp_comments WHERE id > {POSTS};"
