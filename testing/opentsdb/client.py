"""HTTP and telnet to one server."""

import http.client
import socket


class Server:
    """One of the two servers."""

    def __init__(self, name, address):
        self.name = name
        host, _, port = address.rpartition(":")
        self.address = (host or "127.0.0.1", int(port))
        self.connection = None

    def ask(self, method, target, body=None, headers=None):
        """Status, headers and body of the answer."""
        for attempt in (1, 2):
            if self.connection is None:
                self.connection = http.client.HTTPConnection(*self.address, timeout=60)
            try:
                self.connection.request(method, target, body=body, headers=headers or {})
                answer = self.connection.getresponse()
                content = answer.read()
                if answer.will_close:
                    self.close()
                return answer.status, answer.headers, content
            except (http.client.HTTPException, ConnectionError):
                # The server may close a connection that was idle.
                self.close()
                if attempt == 2:
                    raise
        raise AssertionError

    def close(self):
        if self.connection is not None:
            self.connection.close()
        self.connection = None

    def telnet(self, lines):
        """The answers to lines of the telnet protocol, one text for each line."""
        # Both answer a word that is no command in the same way: it ends the answer of the line before.
        end = b"unknown command: zz.  Try `help'.\n"
        out, connection = [], None
        for line in lines:
            connection = connection or socket.create_connection(self.address, timeout=30)
            connection.sendall(line + b"\nzz\n")
            answer = b""
            while not answer.endswith(end):
                read = connection.recv(1 << 16)
                if not read:
                    connection.close()
                    connection, answer = None, answer + b"(closed)" + end
                    break
                answer += read
            out.append(answer[: -len(end)].decode())
        if connection:
            connection.close()
        return out
