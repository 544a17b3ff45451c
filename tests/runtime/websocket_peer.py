"""python3-websockets as a peer: a client of the server on the port that is given, or a server.

    websocket_peer.py client PORT[/PATH]  fails at the first thing that is not as it should be
    websocket_peer.py server              prints its port, echoes to one client, and fails if that
                                          does not close with 4001 "done"
"""
import asyncio
import sys

import websockets


async def echoes(port):
    at = f"ws://127.0.0.1:{port}/socket"
    async with websockets.connect(at, subprotocols=["other", "echo"], max_size=None) as peer:
        assert peer.subprotocol == "echo", peer.subprotocol
        assert peer.extensions == [], peer.extensions  # it has offered permessage-deflate
        for size in (0, 1, 125, 126, 127, 65535, 65536, 1 << 20):
            await peer.send("x" * size)
            assert await peer.recv() == "x" * size
            await peer.send(bytes(size))
            assert await peer.recv() == bytes(size)
        await peer.send("wörter \N{GRINNING FACE}")
        assert await peer.recv() == "wörter \N{GRINNING FACE}"
        await peer.send(["fr", "", "agm", "ents"])
        assert await peer.recv() == "fragments"
        await (await peer.ping(b"hello"))
        for number in range(1000):
            await peer.send(str(number))
        for number in range(1000):
            assert await peer.recv() == str(number)
    assert peer.close_code == 1000, peer.close_code


async def is_closed(port, message, code, reason):
    async with websockets.connect(f"ws://127.0.0.1:{port}/socket", max_size=None) as peer:
        await peer.send(message)
        try:
            await peer.recv()
        except websockets.ConnectionClosed:
            pass
        else:
            raise AssertionError("not closed")
        assert (peer.close_code, peer.close_reason) == (code, reason), peer.close_code


async def is_refused(port, status, **how):
    try:
        async with websockets.connect(f"ws://127.0.0.1:{port}/socket", **how):
            raise AssertionError("accepted")
    except websockets.InvalidStatusCode as error:
        assert error.status_code == status, error.status_code


async def run_client(port):
    await echoes(port)
    await is_closed(port, "close", 4000, "bye")
    await is_closed(port, bytes((1 << 20) + 1), 1009, "")
    await is_refused(port, 403, origin="https://evil.example")
    async with websockets.connect(f"ws://127.0.0.1:{port}/", origin="https://a.example") as peer:
        await peer.close(4999, "r" * 123)
        assert peer.close_code == 4999, peer.close_code


async def run_server():
    heard = asyncio.get_running_loop().create_future()

    async def echo(peer):
        try:
            while True:
                await peer.send(await peer.recv())
        except websockets.ConnectionClosed:
            heard.set_result((peer.close_code, peer.close_reason, peer.subprotocol, peer.path))

    async with websockets.serve(echo, "127.0.0.1", 0, subprotocols=["echo"], max_size=None) as at:
        print(at.sockets[0].getsockname()[1], flush=True)
        assert await heard == (4001, "done", "echo", "/path?query"), heard


def main():
    run = run_client(sys.argv[2]) if sys.argv[1] == "client" else run_server()
    asyncio.run(asyncio.wait_for(run, 50))


main()
