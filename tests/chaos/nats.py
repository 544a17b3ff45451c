"""A client of NATS, as little of it as the checker and the probe of the bank's store need. It shares
no code with the library."""
import os, socket


class Nats:
    def __init__(self, server, patience=3):
        host, port = server.rsplit(":", 1)
        self.inbox = "_INBOX." + os.urandom(8).hex()
        self.socket = socket.create_connection((host, int(port)), patience)
        self.socket.settimeout(patience)
        self.text = b""
        self.line()
        self.send('CONNECT {"verbose":false,"headers":true,"no_responders":true}\r\nPING\r\n')
        while self.line() != b"PONG":
            pass
        self.send("SUB %s 1\r\n" % self.inbox)

    def send(self, text):
        self.socket.sendall(text.encode())

    def more(self):
        got = self.socket.recv(65536)
        if not got:
            raise OSError("the server has closed the connection")
        self.text += got

    def line(self):
        while b"\r\n" not in self.text:
            self.more()
        line, self.text = self.text.split(b"\r\n", 1)
        return line

    def take(self, size):
        while len(self.text) < size + 2:
            self.more()
        taken, self.text = self.text[:size], self.text[size + 2:]
        return taken

    def request(self, subject, payload):
        self.send("PUB %s %s %d\r\n%s\r\n" % (subject, self.inbox, len(payload), payload))
        while True:
            words = self.line().split()
            if words[0] == b"PING":
                self.send("PONG\r\n")
            elif words[0] == b"MSG":
                return self.take(int(words[-1]))
            elif words[0] == b"HMSG":
                self.take(int(words[-1]))
                raise OSError("nobody answers " + subject)
            elif words[0] == b"-ERR":
                raise OSError(words)
