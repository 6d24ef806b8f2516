# SPDX-License-Identifier: GPL-2.0-only
"""
The part of the MariaDB client/server protocol that a benchmark needs, over a
Unix socket, in plain Python: log in without a password, send a text query,
read the answer.  There is no connector in Python's standard library, and the
command-line client buffers what a benchmark wants to time.
"""

import os
import pwd
import socket
import struct


class Error(Exception):
    """What the server answered instead of a result"""

    def __init__(self, code, text):
        super().__init__("%d: %s" % (code, text))
        self.code = code


# LONG_PASSWORD, PROTOCOL_41, TRANSACTIONS, SECURE_CONNECTION, PLUGIN_AUTH
CAPABILITIES = 0x1 | 0x200 | 0x2000 | 0x8000 | 0x80000


class Connection:
    """One session. query() returns the rows as lists of bytes or None."""

    def __init__(self, path, database=None, user=None):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.buffer = b""
        self.sequence = 0
        hello = self._read()
        if hello[0] == 0xff:
            raise self._error(hello)
        self._send(struct.pack("<IIB23x", CAPABILITIES, 1 << 24, 45) +
                   (user or pwd.getpwuid(os.geteuid()).pw_name).encode() +
                   b"\0\0mysql_native_password\0")
        answer = self._read()
        if answer[0] == 0xfe:
            self._send(b"")
            answer = self._read()
        if answer[0] == 0xff:
            raise self._error(answer)
        if database:
            self.query("USE " + database)

    def close(self):
        self.socket.close()

    def _send(self, payload):
        self.socket.sendall(struct.pack("<I", len(payload))[:3] +
                            bytes((self.sequence & 255,)) + payload)

    def _fill(self, size):
        while len(self.buffer) < size:
            more = self.socket.recv(1 << 16)
            if not more:
                raise ConnectionError("server has gone away")
            self.buffer += more

    def _read(self):
        self._fill(4)
        size = int.from_bytes(self.buffer[:3], "little")
        self.sequence = self.buffer[3] + 1
        self._fill(4 + size)
        payload = self.buffer[4:4 + size]
        self.buffer = self.buffer[4 + size:]
        return payload

    @staticmethod
    def _error(payload):
        return Error(struct.unpack_from("<H", payload, 1)[0],
                     payload[9:].decode(errors="replace"))

    @staticmethod
    def _length(data, pos):
        first = data[pos]
        if first < 251:
            return first, pos + 1
        if first == 251:
            return None, pos + 1
        size = {252: 2, 253: 3, 254: 8}[first]
        return (int.from_bytes(data[pos + 1:pos + 1 + size], "little"),
                pos + 1 + size)

    def send(self, *statements):
        """Send them without waiting for the answers, one of each."""
        self.sequence = 0
        self.socket.sendall(b"".join(
            struct.pack("<I", len(text) + 1) + b"\3" + text
            for text in (sql.encode() for sql in statements)))

    def query(self, sql):
        self.send(sql)
        return self.result()

    def result(self):
        head = self._read()
        if head[0] == 0xff:
            raise self._error(head)
        if head[0] == 0:
            return []
        for _ in range(self._length(head, 0)[0]):
            self._read()
        self._read()
        rows = []
        while True:
            data = self._read()
            if data[0] == 0xfe and len(data) < 9:
                return rows
            if data[0] == 0xff:
                raise self._error(data)
            row, pos = [], 0
            while pos < len(data):
                size, pos = self._length(data, pos)
                if size is None:
                    row.append(None)
                else:
                    row.append(data[pos:pos + size])
                    pos += size
            rows.append(row)

    def skip_result(self):
        """Read a result without looking into it: for speed."""
        head = self._read()
        if head[0] == 0xff:
            raise self._error(head)
        if head[0] == 0:
            return
        ends = 0
        while ends < 2:
            data = self._read()
            if data[0] == 0xfe and len(data) < 9:
                ends += 1
            elif data[0] == 0xff:
                raise self._error(data)

    def status(self, like):
        return {name.decode(): int(value) for name, value in
                self.query("SHOW GLOBAL STATUS LIKE '%s'" % like)}
