# SPDX-License-Identifier: GPL-2.0-only
"""Servers on a disk that is slow, or that loses the writes that they did not sync: disk.c."""

import os
import struct
import time

from .preload import compile_library
from .program import resolved
from .servers import BenchError

RECORD = struct.Struct("<c3xIQQQQII")
SECONDS = 30                    # to wait for an event
DURABLE = -1                    # no sync ends before a write that needs none


def build_layer(directory):
    """Compile disk.c; return the library."""
    return compile_library("disk", directory)


def slow_disk(directory, *, read_ms=0, sync_ms=0, files=(".ibd",)):
    """The environment of a server whose reads of files with such names, and whose syncs,
    take so much longer."""
    return {"LD_PRELOAD": str(build_layer(directory)),
            "READ_DELAY_US": str(1000 * read_ms), "READ_DELAY_FILES": " ".join(files),
            "SYNC_DELAY_US": str(1000 * sync_ms)}


def add_server_arguments(parser):
    """Which server."""
    parser.add_argument("tree", type=resolved,
                        help="directory with source/ and the builds, as in out/10.11/patched")
    parser.add_argument("--type", default="release", help="of the build (default %(default)s)")


class Disk:
    """The directory by which disk.c and its user talk to each other."""

    def __init__(self, path):
        self.path = path
        path.mkdir()

    def environment(self, layer, root=None):
        """That of a server whose writes are noted, below root only if it is given."""
        found = {"LD_PRELOAD": str(layer), "UNSYNCED_DIR": str(self.path)}
        if root:
            found["UNSYNCED_ROOT"] = str(root)
        return found

    def hold(self, call):
        (self.path / f"hold.{call}").touch()

    def let_go(self, call):
        (self.path / f"hold.{call}").unlink()

    def events(self):
        lines = (self.path / "events").read_text().splitlines()
        return [line.split() for line in lines]

    def mark(self):
        return len(self.events())

    def wait(self, since, what, name, *offsets):
        """Wait for an event after the first `since` ones; the thread that did it."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            for event in self.events()[since:]:
                if event[:2] == [what, name] and \
                        (not offsets or int(event[2]) in offsets):
                    return int(event[3])
            time.sleep(0.002)
        raise BenchError(f"no {what} of {name} in {SECONDS} seconds")

    def wait_for_checkpoint(self, since):
        """Wait until a checkpoint is durable, or for two seconds."""
        end = time.monotonic() + 2
        while time.monotonic() < end:
            events = self.events()[since:]
            for number, event in enumerate(events):
                if event[:2] == ["write", "ib_logfile0"] and int(event[2]) < 12288 and \
                        any(later[:2] == ["sync", "ib_logfile0"]
                            for later in events[number:]):
                    return
            time.sleep(0.002)

    def lose_unsynced(self):
        """Take back the writes and extensions that no sync covers; return them,
        (name, offset)."""
        data = (self.path / "journal").read_bytes()
        place, writes, ended, synced, paths = 0, [], {}, {}, {}
        while place + RECORD.size <= len(data):
            (kind, size, number, end, offset, inode, length,
             name) = RECORD.unpack_from(data, place)
            place += RECORD.size
            path = data[place:place + name].decode()
            old = data[place + name:place + name + length]
            place += name + length
            if place > len(data):       # the kill came before the write
                break
            if kind == b"U":            # another file may get the inode now
                writes = [write for write in writes if write[1] != inode]
                paths.pop(inode, None)
                continue
            paths[inode] = path
            if kind in b"WL":
                writes.append((number, inode, offset, size, None if kind == b"L" else old))
            elif kind == b"E":
                ended[number] = end
            elif kind == b"D":
                ended[number] = DURABLE
            elif kind == b"S":
                synced[inode] = max(number, synced.get(inode, 0))
        lost, newer, kept_to = [], set(), {}
        for number, inode, offset, size, old in reversed(writes):
            if ended.get(number) == DURABLE:
                newer.add((inode, offset))
            path = paths[inode]
            if (inode, offset) in newer or ended.get(number, 1 << 62) < synced.get(inode, 0):
                kept_to[inode] = max(offset + size, kept_to.get(inode, 0))
                continue
            if not os.path.exists(path) or os.stat(path).st_ino != inode:
                continue
            with open(path, "r+b") as file:
                if old is None:
                    file.truncate(offset)
                else:
                    file.seek(offset)
                    file.write(old)
                    if kept_to.get(inode, 0) > file.tell():
                        file.write(bytes(size - len(old)))
                    elif len(old) < size:       # the file ended here
                        file.truncate()
            lost.append((os.path.basename(path), offset))
        return lost
