#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Make a root with the headers and libraries of a foreign architecture.

Usage: sysroot.py ARCH ROOT PACKAGES

PACKAGES is a list of Debian packages; the root gets the libraries among them.  apt
fetches them with a private configuration; none is installed, so the machine stays as
it is.  A root that is there already, of the same list, is left alone.
Exit status: 0 done, 1 failed, 2 wrong usage.
"""

import os
import pathlib
import shutil
import sys
import tempfile

import common
import fetch_source
from common import run


def libraries(text):
    """What a build needs for ARCH; libstdc++6 is for running it."""
    return ["libc6-dev", "libstdc++6", *(
        name for name in text.split()
        if name.startswith(("lib", "zlib")) and name.endswith("-dev"))]


def fetch(names, arch, directory):
    """Fetch packages and those that they need, as if none was installed."""
    env = fetch_source.private_apt(directory, None)
    for path in (directory / "parts").iterdir():
        path.write_text(path.read_text().replace("deb-src", "deb"))
    (directory / "status").touch()
    with open(env["APT_CONFIG"], "a", encoding="utf-8") as config:
        config.write(f'APT::Architecture "{arch}";\nAPT::Architectures "{arch}";\n'
                     f'Dir::State::status "{directory}/status";\n')
    for command in (["update"], ["install", "-y", "--download-only",
                                 "--no-install-recommends", *names]):
        run(["apt-get", "-q", *command], f"apt-get {command[0]} for {arch}", env=env)
    return sorted((directory / "cache/archives").glob("*.deb"))


def unpack(archives, root):
    (root / "usr/lib").mkdir(parents=True)
    (root / "lib").symlink_to("usr/lib")
    for archive in archives:
        run(["dpkg-deb", "--extract", archive, root])
    # An absolute link would lead to the machine's own libraries
    for path in root.rglob("*"):
        if path.is_symlink() and os.readlink(path).startswith("/"):
            target = root / os.readlink(path)[1:]
            path.unlink()
            path.symlink_to(os.path.relpath(target, path.parent))


def main():
    if len(sys.argv) != 4:
        sys.exit(2)
    arch, root = sys.argv[1], pathlib.Path(sys.argv[2]).absolute()
    names = libraries(pathlib.Path(sys.argv[3]).read_text(encoding="utf-8"))
    stamp = root / "packages"
    if stamp.is_file() and stamp.read_text() == " ".join(names):
        return
    fetch_source.say(f"fetching Debian's libraries for {arch}, about 100 MB")
    root.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root.parent) as work:
        made = pathlib.Path(work, "root")
        unpack(fetch(names, arch, pathlib.Path(work)), made)
        (made / "packages").write_text(" ".join(names))
        shutil.rmtree(root, ignore_errors=True)
        made.rename(root)


if __name__ == "__main__":
    common.end("sysroot", main)
