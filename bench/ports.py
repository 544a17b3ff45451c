"""A port of 127.0.0.1 that nobody has, for a server which is started at once."""
import socket


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]
