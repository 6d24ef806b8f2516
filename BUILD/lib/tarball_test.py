#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Start the tarball of BUILD/package --tarball --in-root 11 where nothing else is
installed, and beside installed packages.

  1. In a minimal Debian 11, 12 and 13: no library is missing, and none but the C
     and C++ libraries comes from the system; the server starts on a new data
     directory, has tables of four engines, and passes CHECK TABLE; mariadb-dump,
     mariadb-upgrade, and mariadb-backup with prepare work; the directory is moved, and
     the server starts from there.
  2. In a Debian with its mariadb-server, RocksDB, Connect and provider plugins,
     and data of all engines, the unit of the package starts the tarball's
     server, as docs/DEPLOY.md says, and Debian's server again.

Debian's server has to be of the tarball's version; deploy_test.py says how.

Prints a line that begins with PASS or FAIL for each check.
Exit status: 0 all passed, 1 something failed, 2 wrong usage.
"""

import os
import pathlib
import re
import shutil

import deploy_test
import in_root
import outcome
import package
import release
import tarball
from common import TOP
from deploy_test import EXAMPLES, say
from outcome import Outcome

HOME = "/opt/mariadb-table-cache"
DROP_IN = "etc/systemd/system/mariadb.service.d/table-cache-tarball.conf"
PLUGIN_DIRECTORY = "usr/lib/mysql/plugin"
RELEASES = ("bullseye", "bookworm", "trixie")
# Plugins that need libraries of the system
OF_THE_SYSTEM = r"auth_pam\S*|auth_gssapi_client\.so"
TABLES = "".join(
    f"CREATE TABLE t.{engine} (i INT PRIMARY KEY, t TEXT, KEY (t(9))) ENGINE={engine};"
    f"INSERT INTO t.{engine} SELECT seq, MD5(seq) FROM t.seq_1_to_500;"
    for engine in ("InnoDB", "MyISAM", "Aria"))
START = """
set -e
home=$1
rm -f /srv/data/error.log
"$home/bin/mariadbd" --no-defaults --basedir="$home" --datadir=/srv/data \\
  --user=mysql --socket=/srv/data/socket --skip-networking \\
  --pid-file=/srv/data/pid --log-error=/srv/data/error.log \\
  --plugin-load-add=table_cache_info --plugin-load-add=provider_lz4 \\
  > /dev/null 2>&1 < /dev/null &
for try in $(seq 300); do
  if "$home/bin/mariadb-admin" --no-defaults --socket=/srv/data/socket ping \\
       > /dev/null 2>&1
  then exit 0; fi
  sleep 0.2
done
cat /srv/data/error.log
exit 1
"""


def unpack(root, path):
    """Unpack a tarball in a root; return its directory."""
    deploy_test.run(["tar", "-C", str(root.path / "opt"), "-xzf", str(path)], root.log,
                    "tar failed")
    return next((root.path / "opt").iterdir())


class Bare(Outcome):
    def __init__(self, root, tarball_path):
        self.root = root
        self.tarball_path = tarball_path
        self.name = tarball_path.name.split("-linux-")[0]

    def sql(self, text, home=HOME):
        return self.root.ask(f"{home}/bin/mariadb", "--no-defaults", "--batch",
                             "--skip-column-names", "--socket=/srv/data/socket", text=text)

    def shut_down(self, home):
        self.root.do(f"{home}/bin/mariadb-admin", "--no-defaults",
                     "--socket=/srv/data/socket", "shutdown")

    def libraries(self):
        """What is missing, and what comes from the system without need."""
        answer = self.root.ask(
            "sh", "-c", f"for file in $(find {HOME}/ -type f); do "
            'if [ "$(head -c 4 "$file" | tail -c 3)" = ELF ]; then '
            'echo "file $file"; ldd "$file"; fi; done', failure_is_answer=True)
        problems, file = [], ""
        for line in answer.splitlines():
            if line.startswith("file "):
                file = line.split("/")[-1]
                continue
            match = re.match(r"\s+(\S+) => (not found|/\S+)", line)
            if (not match or match[2].startswith(f"{HOME}/")
                    or (match[2] != "not found" and tarball.HOST_LIBRARIES.fullmatch(match[1]))
                    or re.fullmatch(OF_THE_SYSTEM, file)):
                continue
            problems.append(f"{file}: {match[1]} {match[2]}")
        return "; ".join(problems)

    def run(self):
        root, step = self.root, self.root.suite
        say(f"the tarball in a minimal {step}")
        unpack(root, self.tarball_path).rename(root.path / HOME.lstrip("/"))
        self.check(f"{step}: the libraries are the tarball's own", self.libraries())
        root.do("useradd", "--system", "mysql")
        # debootstrap does not write this file
        root.write("etc/hosts", f"127.0.0.1 localhost {os.uname().nodename}\n")
        root.do(f"{HOME}/scripts/mariadb-install-db", "--no-defaults",
                f"--basedir={HOME}", "--datadir=/srv/data", "--user=mysql")
        root.do("sh", "-c", START, "sh", HOME)
        self.sql("CREATE DATABASE t;" + TABLES)
        tables = "t.InnoDB, t.MyISAM, t.Aria"
        before = self.sql(f"CHECKSUM TABLE {tables} EXTENDED")
        self.check(f"{step}: CHECK TABLE", "".join(
            line for line in self.sql(f"CHECK TABLE {tables} EXTENDED").splitlines()
            if not line.endswith("\tOK")))
        rows = self.sql("SELECT COUNT(*) FROM information_schema.TABLE_CACHE "
                        "WHERE TABLE_SCHEMA = 't' AND TABLE_NAME NOT LIKE 'seq%'")
        self.check(f"{step}: the patched table cache is active", None if rows == "3" else rows)
        providers = self.sql("SELECT PLUGIN_STATUS FROM "
                             "information_schema.PLUGINS WHERE PLUGIN_NAME = 'provider_lz4'")
        self.check(f"{step}: a compression provider loads",
                   None if providers == "ACTIVE" else providers)
        crypto = self.sql("SELECT HEX(AES_ENCRYPT('a', 'key')), @@have_ssl")
        self.check(f"{step}: OpenSSL works", None if re.match(
            r"[0-9A-F]{32}\t(YES|DISABLED)", crypto) else crypto)
        for title, words in (
                ("mariadb-dump", ("bin/mariadb-dump", "--databases", "t")),
                ("mariadb-upgrade", ("bin/mariadb-upgrade", "--force")),
                ("mariadb-backup", ("bin/mariadb-backup", "--backup",
                                    "--target-dir=/srv/backup", "--user=root"))):
            answer = root.ask(f"{HOME}/{words[0]}", "--no-defaults",
                              "--socket=/srv/data/socket", *words[1:])
            self.check(f"{step}: {title}", None if re.search(
                "Dump completed|completed OK|^OK$", answer, re.M) else answer[-500:])
        answer = root.ask(f"{HOME}/bin/mariadb-backup", "--no-defaults",
                          "--prepare", "--target-dir=/srv/backup")
        self.check(f"{step}: mariadb-backup --prepare",
                   None if "completed OK" in answer else answer[-500:])
        self.shut_down(HOME)
        self.wait_for_end()
        moved = "/srv/moved"
        (root.path / HOME.lstrip("/")).rename(root.path / moved.lstrip("/"))
        root.do("sh", "-c", START, "sh", moved)
        after = self.sql(f"CHECKSUM TABLE {tables} EXTENDED", moved)
        self.check(f"{step}: moved elsewhere, it starts, and the tables are as "
                   "before", None if after == before else after)
        text = (root.path / "srv/data/error.log").read_text(errors="replace")
        self.check(f"{step}: no error in the log", "; ".join(
            re.findall(r"(?m)^.*\[ERROR\].*$", text)[:3]))
        self.shut_down(moved)
        self.wait_for_end()

    def wait_for_end(self):
        self.root.wait_for(
            lambda: not (self.root.path / "srv/data/pid").exists(),
            "the server does not shut down")


class Beside(deploy_test.Test):
    """The tarball's server, started by the unit of Debian's packages."""

    def run_tarball(self, path):
        root, core = self.root, package.REPLACED
        self.install_debians_server()
        say("letting the unit start the tarball's server")
        unpacked = unpack(root, path)
        (root.path / HOME.lstrip("/")).symlink_to(unpacked.name)
        own = [f"{PLUGIN_DIRECTORY}/{name}.so" for name in package.PLUGINS]
        for name in own:
            shutil.copyfile(unpacked / "lib/plugin" / pathlib.Path(name).name, root.path / name)
        root.write(DROP_IN, (EXAMPLES / "table-cache-tarball.conf").read_text())
        root.do("systemctl", "daemon-reload")
        root.service("restart")
        self.program = f"/opt/{unpacked.name}/bin/mariadbd"
        self.verify("tarball beside Debian's packages", self.stock, core)
        self.ours_is_active("tarball beside Debian's packages")
        say("going back to Debian's server")
        for name in [DROP_IN, *own]:
            (root.path / name).unlink()
        root.do("systemctl", "daemon-reload")
        root.service("restart")
        self.program = "/usr/sbin/mariadbd"
        self.verify("back to Debian's server", self.stock, core)
        root.service("stop")


def main():
    trees, cache, log, values = deploy_test.begin("Test the tarball")
    named = release.release(TOP)
    in_root.make(trees, cache, log, RELEASES[0], named, cache / "packages")
    path, = (cache / "packages").glob(f"mariadb-table-cache-*+tc{named}-linux-*.tar.gz")
    failures = 0
    for suite in RELEASES:
        with deploy_test.BareRoot(cache, log, suite) as root:
            test = Bare(root, path)
            test.run()
            failures += test.failures
    version = (trees / "stock" / "version").read_text().strip()
    with deploy_test.booted_root(cache, log, values["SUITE"]) as root:
        if root:                # else there is no test beside packages
            test = Beside(root, trees.name, deploy_test.server_version(version, values),
                          version, [])
            test.run_tarball(path)
            failures += test.failures
    return 1 if failures else 0


if __name__ == "__main__":
    outcome.run(main, "tarball")
