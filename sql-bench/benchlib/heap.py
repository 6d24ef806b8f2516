# SPDX-License-Identifier: GPL-2.0-only
"""What a server keeps of the heap for each table that it knows and has open. Nothing
of it depends on time or on the machine."""

import time

# The twelve tables of a site, with the types and keys that WordPress 6 gives them
NUMBER = "BIGINT UNSIGNED NOT NULL DEFAULT 0"
ID = "BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY"
WHEN = "DATETIME NOT NULL DEFAULT '2000-01-01 00:00:00'"


def text(length, default=""):
    return f"VARCHAR({length}) NOT NULL DEFAULT '{default}'"


def meta(identifier, owner):
    return (f"{identifier} {ID}, {owner} {NUMBER}, "
            "meta_key VARCHAR(255) DEFAULT NULL, meta_value LONGTEXT, "
            f"KEY ({owner}), KEY (meta_key(191))")


TABLES = {
    "users": f"ID {ID}, user_login {text(60)}, user_pass {text(255)}, "
             f"user_nicename {text(50)}, user_email {text(100)}, "
             f"user_url {text(100)}, user_registered {WHEN}, "
             f"user_activation_key {text(255)}, user_status INT NOT NULL "
             f"DEFAULT 0, display_name {text(250)}, KEY (user_login), "
             "KEY (user_nicename), KEY (user_email)",
    "usermeta": meta("umeta_id", "user_id"),
    "posts": f"ID {ID}, post_author {NUMBER}, post_date {WHEN}, "
             f"post_date_gmt {WHEN}, post_content LONGTEXT NOT NULL, "
             "post_title TEXT NOT NULL, post_excerpt TEXT NOT NULL, "
             f"post_status {text(20, 'publish')}, "
             f"comment_status {text(20, 'open')}, ping_status "
             f"{text(20, 'open')}, post_password {text(255)}, "
             f"post_name {text(200)}, to_ping TEXT NOT NULL, "
             f"pinged TEXT NOT NULL, post_modified {WHEN}, "
             f"post_modified_gmt {WHEN}, post_content_filtered LONGTEXT "
             f"NOT NULL, post_parent {NUMBER}, guid {text(255)}, menu_order "
             f"INT NOT NULL DEFAULT 0, post_type {text(20, 'post')}, "
             f"post_mime_type {text(100)}, comment_count BIGINT NOT NULL "
             "DEFAULT 0, KEY (post_name(191)), "
             "KEY (post_type, post_status, post_date, ID), "
             "KEY (post_parent), KEY (post_author)",
    "postmeta": meta("meta_id", "post_id"),
    "comments": f"comment_ID {ID}, comment_post_ID {NUMBER}, comment_author "
                f"TINYTEXT NOT NULL, comment_author_email {text(100)}, "
                f"comment_author_url {text(200)}, comment_author_IP "
                f"{text(100)}, comment_date {WHEN}, comment_date_gmt {WHEN}, "
                "comment_content TEXT NOT NULL, comment_karma INT NOT NULL "
                f"DEFAULT 0, comment_approved {text(20, '1')}, comment_agent "
                f"{text(255)}, comment_type {text(20, 'comment')}, "
                f"comment_parent {NUMBER}, user_id {NUMBER}, "
                "KEY (comment_post_ID), KEY (comment_approved, "
                "comment_date_gmt), KEY (comment_date_gmt), "
                "KEY (comment_parent), KEY (comment_author_email(10))",
    "commentmeta": meta("meta_id", "comment_id"),
    "terms": f"term_id {ID}, name {text(200)}, slug {text(200)}, term_group "
             "BIGINT NOT NULL DEFAULT 0, KEY (slug(191)), KEY (name(191))",
    "termmeta": meta("meta_id", "term_id"),
    "term_taxonomy": f"term_taxonomy_id {ID}, term_id {NUMBER}, taxonomy "
                     f"{text(32)}, description LONGTEXT NOT NULL, parent "
                     f"{NUMBER}, count BIGINT NOT NULL DEFAULT 0, "
                     "UNIQUE (term_id, taxonomy), KEY (taxonomy)",
    "term_relationships": f"object_id {NUMBER}, term_taxonomy_id {NUMBER}, "
                          "term_order INT NOT NULL DEFAULT 0, PRIMARY KEY "
                          "(object_id, term_taxonomy_id), "
                          "KEY (term_taxonomy_id)",
    "options": f"option_id {ID}, option_name {text(191)} UNIQUE, option_value "
               f"LONGTEXT NOT NULL, autoload {text(20, 'yes')}, "
               "KEY (autoload)",
    "links": f"link_id {ID}, link_url {text(255)}, link_name {text(255)}, "
             f"link_image {text(255)}, link_target {text(25)}, "
             f"link_description {text(255)}, link_visible {text(20, 'Y')}, "
             "link_owner BIGINT UNSIGNED NOT NULL DEFAULT 1, link_rating INT "
             f"NOT NULL DEFAULT 0, link_updated {WHEN}, link_rel {text(255)}, "
             f"link_notes MEDIUMTEXT NOT NULL, link_rss {text(255)}, "
             "KEY (link_visible)",
}


def create(engine, number):
    """SQL for that many databases with these tables."""
    return "".join(
        f"CREATE DATABASE site{n};\n" + "".join(
            f"CREATE TABLE site{n}.wp_{name} ({columns}) ENGINE={engine} "
            "DEFAULT CHARSET=utf8mb4;\n" for name, columns in TABLES.items())
        for n in range(number))


def read(first, end):
    """SQL that reads each table once."""
    return "".join(f"SELECT * FROM site{n}.wp_{name} LIMIT 1;\n"
                   for n in range(first, end) for name in TABLES)


def measure(server, databases, library):
    """Bytes a table, of a server that has not been started."""
    file = server.datadir.parent.resolve() / "heap-size"
    server.environment = {
        "LD_PRELOAD": str(library), "HEAP_SIZE": str(file), "MALLOC_ARENA_MAX": "1",
        # What threads keep for themselves would count
        "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}

    def used():
        # The server frees the connection's memory when it is closed
        time.sleep(1)
        return int(file.read_text())

    first = databases // 5
    with server:
        server.sql(read(0, first))
        before = used()
        server.sql(read(first, databases))
        grown = used() - before
    return round(grown / ((databases - first) * len(TABLES)))
