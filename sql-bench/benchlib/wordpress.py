# SPDX-License-Identifier: GPL-2.0-only
"""Install WordPress, and record the statements of its pages.

WordPress's text is neither part of this repository nor copied into it: Debian's
package is unpacked below out/, and the recorded statements stay there.
"""

import contextlib
import http.client
import os
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import time
import urllib.parse

from . import wire
from .servers import BenchError, said

HOST = "example.org"
PASSWORD = "a password"
POST = 7                        # one of those that wordpress.php writes
ACCOUNT = "wordpress"           # and the name of its database
# A text by which to recognize each page
PAGES = {"front": ("GET", "/", "A title 20"),
         "post": ("GET", f"/a-title-{POST}/", "Reader 3"),
         "archive": ("GET", "/category/news/", "A title 18"),
         "login": ("GET", "/wp-login.php", "user_pass"),
         "admin": ("GET", "/wp-admin/", "dashboard-widgets"),
         "comment": ("POST", "/wp-comments-post.php", None)}
ADMIN = ("admin",)              # pages of a user who has logged in

CONFIG = """\
<?php
define('DB_NAME', 'wordpress');
define('DB_USER', 'wordpress');
define('DB_PASSWORD', '');
define('DB_HOST', 'localhost:' . getenv('BENCH_SOCKET'));
define('DB_CHARSET', 'utf8mb4');
define('DB_COLLATE', '');
foreach (['AUTH', 'SECURE_AUTH', 'LOGGED_IN', 'NONCE'] as $name)
{
  define($name . '_KEY', "key of a benchmark, $name");
  define($name . '_SALT', "salt of a benchmark, $name");
}
define('WP_HOME', 'http://example.org');
define('WP_SITEURL', WP_HOME);
define('WP_HTTP_BLOCK_EXTERNAL', true);
define('DISABLE_WP_CRON', true);
define('AUTOMATIC_UPDATER_DISABLED', true);
$table_prefix = 'wp_';
require_once ABSPATH . 'wp-settings.php';
"""


def check():
    """Fail where PHP or what WordPress needs of it is missing."""
    if "mysqli" not in said("php", "-m").split():
        raise BenchError("PHP has no mysqli (Debian's package php-mysql)")


def unpack(directory):
    """Make a directory with Debian's package of WordPress. The package is not
    installed: it wants a web server."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".new-", dir=directory.parent) as work:
        found = unpack_package(pathlib.Path(work))
        if not (found / "wp-load.php").exists():
            raise BenchError("no WordPress in the package")
        # A link to a file of a web server
        (found / "wp-config.php").unlink(missing_ok=True)
        (found / "wp-config.php").write_text(CONFIG)
        found.rename(directory)


def unpack_package(work):
    """Unpack Debian's package, and the theme that it recommends."""
    def fetch(name):
        said("apt-get", "download", "-q", name, cwd=work)
        package, = work.glob(f"{name}_*.deb")
        said("dpkg-deb", "-x", str(package), str(work / "root"))
        return package

    package = fetch("wordpress")
    wanted = said("dpkg-deb", "-f", str(package), "Recommends")
    for theme in re.findall(r"wordpress-theme-\w+", wanted):
        fetch(theme)
    return work / "root/usr/share/wordpress"


def version(directory):
    text = (directory / "wp-includes/version.php").read_text()
    return re.search(r"^\$wp_version = '(.*)';", text, re.M).group(1)


class Site:
    """A web server with one site, for as long as 'with' lasts."""

    def __init__(self, directory, server):
        self.directory = directory
        self.server = server            # the database's
        self.environment = {**os.environ, "BENCH_SOCKET": server.socket}
        self.cookies = {}

    def install(self):
        """Make its database, by its own installer, and some content."""
        self.server.sql(
            f"CREATE DATABASE {ACCOUNT}; CREATE USER {ACCOUNT}@localhost; "
            f"GRANT ALL ON {ACCOUNT}.* TO {ACCOUNT}@localhost;")
        script = pathlib.Path(__file__).with_suffix(".php")
        for what in ("install", "fill"):
            said("php", str(script), str(self.directory), what, PASSWORD, env=self.environment)

    def __enter__(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            # Should this program be killed, PHP ends, too
            ["setpriv", "--pdeathsig=TERM", "php", "-S",
             f"127.0.0.1:{self.port}", "-t", str(self.directory)],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
            env=self.environment, start_new_session=True)
        try:
            self.wait()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.log.close()

    def wait(self):
        """Until PHP listens."""
        while True:
            if self.process.poll() is not None:
                self.log.seek(0)
                raise BenchError("PHP's web server did not start:\n"
                                 + self.log.read().decode(errors="replace"))
            with contextlib.suppress(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            time.sleep(0.05)

    def request(self, method, path, form=None):
        """Ask for a page, as a browser would; its status and text."""
        web = http.client.HTTPConnection("127.0.0.1", self.port)
        headers = {"Host": HOST, "User-Agent": "bench", "Connection": "close",
                   "Cookie": "; ".join(f"{name}={value}" for name, value
                                       in self.cookies.items())}
        body = None
        if form:
            body = urllib.parse.urlencode(form)
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        web.request(method, path, body, headers)
        answer = web.getresponse()
        text = answer.read().decode(errors="replace")
        web.close()
        for cookie in answer.headers.get_all("Set-Cookie", ()):
            name, _, value = cookie.partition(";")[0].partition("=")
            if value == "deleted":              # as PHP says it
                self.cookies.pop(name, None)
            else:
                self.cookies[name] = value
        return answer.status, text

    def see(self, name):
        """Ask for one of PAGES; fail if the answer is not that page."""
        method, path, shows = PAGES[name]
        form = None
        if method == "POST":
            post = self.server.sql(
                f"SELECT ID FROM {ACCOUNT}.wp_posts WHERE post_name = 'a-title-{POST}'")[0][0]
            form = {"comment_post_ID": post, "comment_parent": "0",
                    "author": "New reader", "email": f"new@{HOST}",
                    "comment": "One more comment"}
        status, text = self.request(method, path, form)
        if status != (302 if form else 200) or shows and shows not in text:
            raise BenchError(f"WordPress answers {method} {path} with {status} "
                             f"and:\n{text[:2000]}")

    def log_in(self):
        self.request("GET", "/wp-login.php")    # a cookie for the next one
        status, text = self.request("POST", "/wp-login.php", {
            "log": "admin", "pwd": PASSWORD, "testcookie": "1"})
        if status != 302:
            raise BenchError("WordPress does not log its user in:\n" + text[-2000:])

    def record(self):
        """The statements of each page, when it is asked for again."""
        recorded = {}
        # The pages differ once an account has logged in, so these are last
        for name in sorted(PAGES, key=lambda name: name in ADMIN):
            if name in ADMIN:
                self.log_in()
            if PAGES[name][0] == "GET":
                self.see(name)          # fills what WordPress remembers
            recorded[name] = statements_of(self.server, lambda name=name: self.see(name))
        return recorded


def statements_of(server, work):
    """What one connection sends while work() is done: the answers of a page
    have come when its connection has ended."""
    session = wire.Connection(server.socket)
    for text in ("SET GLOBAL log_output = 'TABLE'",
                 "SET GLOBAL general_log = OFF",
                 "TRUNCATE mysql.general_log", "SET GLOBAL general_log = ON"):
        session.query(text)
    try:
        work()
    finally:
        session.query("SET GLOBAL general_log = OFF")
    # In the order of the file, which is that of the statements
    rows = session.query(
        "SELECT thread_id, command_type, argument FROM mysql.general_log "
        f"WHERE user_host LIKE '%[{ACCOUNT}]%'")
    session.close()
    return of_one_connection(rows)


def of_one_connection(rows):
    """The statements of a page, from the general log: (connection, command, argument)."""
    connections = {thread for thread, *_ in rows}
    if len(connections) != 1:
        raise BenchError(f"a page has {len(connections)} connections")
    unknown = {command for _, command, _ in rows} - {
        b"Connect", b"Init DB", b"Query", b"Quit"}
    if unknown:
        raise BenchError(f"a page has sent {unknown}")
    return [text.decode() for _, command, text in rows if command == b"Query"]
