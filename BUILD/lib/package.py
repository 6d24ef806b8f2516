#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Build Debian's mariadb-server-core from the patched source.

The server is built as Debian builds its own, but with a version of its own:
10.11.18-0+deb12u1+tc2026.11 where Debian's is 10.11.18-0+deb12u1, both in dpkg
and in SELECT VERSION().  debhelper packs it; which files and links are in the
package is read from debian/ of the source package, so that it is what
Debian's package of that version has, and the plugins table_cache_info and
table_cache_dump.  A package needs the libraries of the Debian release on which
it was built, so it is built on the release that it is for.

With --tarball it makes no package, but a tarball of the release build that
BUILD/run and BUILD/test use.

Exit status: 0 done, 1 failed, 2 wrong usage.
"""

import argparse
import functools
import email.utils
import os
import pathlib
import re
import shutil
import subprocess

import common
import fetch_source
import overlay
import tarball
import topics
from common import Problem

say = functools.partial(print, "-- package:", flush=True)

PATCH_SET = "Table-cache patch set for MariaDB"
NAME = "mariadb-server-core-table-cache"
REPLACED = "mariadb-server-core"
PLUGINS = ("table_cache_info", "table_cache_dump")


# Epoch, upstream version and revision.  Debian repacks some releases: 11.8.9+ds
VERSION = re.compile(r"(?:(\d+):)?(\d+\.\d+\.\d+(?:\+\w+)?)-(\S+)")


def base_values(top, base):
    """{name: value} of the lines set(BASE_name value) of a release series."""
    text = (top / "cmake" / f"base-{base}.cmake").read_text()
    return dict(re.findall(r'(?m)^set\(BASE_(\w+) "?([^")]*)"?\)$', text))


def copyright_of(top, base, names=None):
    """The paragraph of debian/copyright for the files of the patch set; of some
    topics only, if any are named."""
    files = overlay.of_topics(overlay.sources(top, base), topics.read_topics(top), names)
    # A directory that has nothing else is one name
    names = sorted({
        re.sub(r"^((?:mysql-test/suite|plugin)/table_cache\w*)/.*", r"\1/*", name)
        for name in files if not name.endswith(".patch")})
    return ("Files: " + "\n       ".join(names) + "\n"
            "Copyright: 2026, the authors of the patch set\n"
            "License: GPL-2\n")


class Package:
    def __init__(self, arguments):
        self.top = arguments.top
        self.trees = arguments.trees
        self.base = arguments.base
        self.values = base_values(self.top, self.base)
        release = fetch_source.machine_release()
        if release and release != self.values["SUITE"]:
            raise Problem(
                f"the package is for {self.values['SUITE']} and has to be built there; this is "
                f"{release}. BUILD/test deploy --base {self.base} builds it in a root of "
                f"{self.values['SUITE']}, below out/{self.base}/deploy/packages")
        self.source = self.trees / "patched" / "source"
        self.build = self.trees / "patched" / "package"
        self.output = arguments.output
        self.debug_symbols = arguments.debug_symbols
        self.debian_version = (self.trees / "stock" / "version").read_text().strip()
        match = VERSION.fullmatch(self.debian_version)
        if not match:
            raise Problem(
                f"the source is MariaDB {self.debian_version}, not a version "
                "of Debian's package: there is nothing that the package "
                "could take the place of. Build without --source, or name "
                "Debian's source package by it, unpacked or as a .dsc file")
        self.upstream = match[2]
        self.release = arguments.release
        self.revision = f"{match[3]}+tc{arguments.release}"
        self.version = f"{match[1] + ':' if match[1] else ''}{self.upstream}-{self.revision}"
        # -0+deb13u1 from Debian
        self.suffix = re.sub(r"^-\S+", f"-{self.revision}", self.values["SUFFIX"])

    def compile(self):
        say(f"building {self.upstream}-{self.revision}")
        # Configured anew each time: when MariaDB's CMake files run again of
        # themselves they build ARCHIVE, BLACKHOLE and FEDERATEDX into the
        # server, and then their packaged plugins do not load
        (self.build / "configured-with.txt").unlink(missing_ok=True)
        # Its output is long, and shows how far it is
        status = subprocess.run(
            ["cmake", "-D", f"TREES={self.trees}", "-D", f"BASE={self.base}",
             "-D", "TREE=patched", "-D", "TYPE=package",
             "-D", f"OPTIONS=-DMYSQL_SERVER_SUFFIX={self.suffix};-DINSTALL_MANDIR=share/man",
             "-P", str(self.top / "cmake" / "build_tree.cmake")], check=False).returncode
        if status:
            raise Problem("the server does not build; see above")
        # The packaged plugins are loaded only by a server that does not have
        # them built in
        for engine in ("archive", "blackhole", "federatedx"):
            if not (self.build / "storage" / engine / f"ha_{engine}.so").exists():
                raise Problem(f"{engine} is built into the server, unlike Debian's")

    def git(self, *words):
        status, output = common.answer(["git", "-C", self.top, *words])
        return "" if status else output.strip()

    def maintainer(self):
        name = os.environ.get("DEBFULLNAME") or self.git("log", "-1", "--format=%an")
        address = os.environ.get("DEBEMAIL") or self.git("log", "-1", "--format=%ae")
        return f"{name or 'unknown'} <{address or 'unknown@localhost'}>"

    def write_debian(self, debian):
        """The directory debian/ that debhelper reads."""
        templates = self.top / "BUILD" / "lib" / "debian"
        from_debian = self.source / "debian"
        debian.mkdir(parents=True)
        control = (templates / "control.in").read_text()
        for name, value in (("PACKAGE", NAME),
                            ("DEBIAN_VERSION", self.debian_version),
                            ("MAINTAINER", self.maintainer())):
            control = control.replace(f"@{name}@", value)
        (debian / "control").write_text(control)
        selection = topics.read_selection(self.trees)
        moment = int(self.git("log", "-1", "--format=%ct") or 0)
        commit = self.git("rev-parse", "--short", "HEAD") or "unknown"
        (debian / "changelog").write_text(
            f"{NAME} ({self.version}) {self.values['SUITE']}; urgency=medium\n\n"
            f"  * {REPLACED} {self.debian_version} with the\n"
            f"    {PATCH_SET} {self.release}, commit {commit}.\n"
            + (f"  * Topics: {' '.join(selection.names)}\n" if selection else "")
            + f"\n -- {self.maintainer()}  {email.utils.formatdate(moment)}\n")
        copyright_text = (from_debian / "copyright").read_text()
        (debian / "copyright").write_text(
            copyright_text.rstrip("\n") + "\n\n"
            + copyright_of(self.top, self.base, selection and selection.names))
        installed = (from_debian / f"{REPLACED}.install").read_text()
        plugins = [plugin for plugin in PLUGINS if (self.source / "plugin" / plugin).is_dir()]
        (debian / f"{NAME}.install").write_text(
            installed + "".join(f"usr/lib/mysql/plugin/{plugin}.so\n" for plugin in plugins))
        shutil.copyfile(from_debian / f"{REPLACED}.links", debian / f"{NAME}.links")
        shutil.copyfile(templates / "lintian-overrides", debian / f"{NAME}.lintian-overrides")
        shutil.copyfile(templates / "postinst", debian / f"{NAME}.postinst")
        shutil.copyfile(templates / "rules", debian / "rules")
        (debian / "rules").chmod(0o755)
        (debian / "source").mkdir()
        (debian / "source" / "format").write_text("3.0 (native)\n")

    def pack(self):
        """Run debhelper; return the paths of the packages."""
        say(f"packing {NAME} {self.version}")
        work = self.trees / "package-work"
        shutil.rmtree(work, ignore_errors=True)
        tree = work / NAME
        self.write_debian(tree / "debian")
        options = os.environ.get("DEB_BUILD_OPTIONS", "")
        if not self.debug_symbols:
            options += " noautodbgsym"
        status, output = common.answer(
            ["dpkg-buildpackage", "--build=binary", "--no-sign", "--no-check-builddeps"],
            cwd=tree, env={**os.environ, "DEB_BUILD_OPTIONS": options.strip(),
                           "BUILD_TREE": str(self.build)})
        log = self.trees / "package.log"
        log.write_text(output)
        if status:
            raise Problem(f"dpkg-buildpackage failed:\n{output[-3000:]}\n"
                          f"The whole output is in {log}")
        made = sorted(work.glob("*.deb"))
        if not made:
            raise Problem("debhelper made no package")
        self.output.mkdir(parents=True, exist_ok=True)
        packages = []
        for path in made:
            # A colon in a file name is a scheme to some programs
            target = self.output / path.name.replace("%3a", "")
            shutil.move(path, target)
            packages.append(target)
        changes = next(work.glob("*.changes"))
        shutil.rmtree(tree)
        changes.unlink()
        shutil.rmtree(work)
        return packages

    @staticmethod
    def lint(packages):
        """Show what lintian says; an error or a warning is a failure."""
        say("lintian")
        status, output = common.answer(
            ["lintian", "--tag-display-limit=0", "--fail-on=error,warning", *packages],
            env={**os.environ, "LC_ALL": "C.UTF-8"})
        print(output, end="", flush=True)
        if status:
            raise Problem("lintian has found something that is neither "
                          "corrected nor explained; see above")


def make_tarball(build, output, version, top):
    name = f"mariadb-table-cache-{version}-linux-{os.uname().machine}"
    say(f"making {name}.tar.gz")
    output.mkdir(parents=True, exist_ok=True)
    target, libraries, versions = tarball.make(build, name, output, top / "docs" / "DEPLOY.md")
    say(f"it holds {len(libraries)} libraries of this system, and needs glibc "
        f"{versions['GLIBC']} and GLIBCXX_{versions['GLIBCXX']} or newer")
    return target


def main():
    parser = argparse.ArgumentParser(description="Build the package (called by BUILD/package).")
    parser.add_argument("--top", type=pathlib.Path, required=True)
    parser.add_argument("--trees", type=pathlib.Path, required=True)
    parser.add_argument("--base", required=True)
    parser.add_argument("--release", required=True)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--debug-symbols", action="store_true")
    parser.add_argument("--no-tarball", action="store_true")
    parser.add_argument("--tarball", action="store_true")
    arguments = parser.parse_args()
    made, build = [], arguments.trees / "patched" / "release"
    # 1:10.11.18-0+deb12u1: no epoch in a file name
    version = (arguments.trees / "stock" / "version").read_text().strip().split(":")[-1]
    if not arguments.tarball:
        package = Package(arguments)
        package.compile()
        made, build = package.pack(), package.build
        package.lint(made)
    if not arguments.no_tarball:
        made.append(make_tarball(build, arguments.output,
                                 f"{version}+tc{arguments.release}", arguments.top))
    say("made:")
    for path in made:
        print(f"   {path} ({path.stat().st_size >> 20} MB)")
    return 0


if __name__ == "__main__":
    common.end("package", main)
