"""What a program does that uses python3-redis, against the server on the port that is given.

It prints nothing if all is as it should be, and fails at the first thing that is not.
"""
import sys
import threading

import redis

PORT = int(sys.argv[1])


def strings(r):
    assert r.set("text", "wörter") and r.get("text") == "wörter"
    assert r.set("text", "x", nx=True) is None
    assert r.set("counted", 1, ex=100) and 99 <= r.ttl("counted") <= 100
    assert r.incr("counted", 41) == 42 and r.incrbyfloat("counted", 0.5) == 42.5
    assert r.getrange("text", 0, 0) == "w" and r.append("text", "!") == 8
    assert r.mset({"{m}1": "a", "{m}2": "b"}) and r.mget("{m}1", "none", "{m}2") == ["a", None, "b"]
    assert r.delete("text", "counted", "{m}1", "{m}2") == 4
    try:
        r.rpush("list", "a", "b", "c")
        r.incr("list")
    except redis.ResponseError as error:
        assert str(error).startswith("WRONGTYPE")
    else:
        raise AssertionError("a list was counted")


def values(r):
    assert r.lrange("list", 0, -1) == ["a", "b", "c"] and r.lpop("list", 2) == ["a", "b"]
    assert r.linsert("list", "before", "c", "b") == 2 and r.lpos("list", "c") == 1
    r.hset("hash", mapping={str(i): i for i in range(500)})
    assert r.hgetall("hash") == {str(i): str(i) for i in range(500)}
    assert dict(r.hscan_iter("hash")) == r.hgetall("hash") and r.hincrby("hash", "7", 3) == 10
    assert set(r.hrandfield("hash", 500)) == {str(i) for i in range(500)}
    for i in range(1000):
        r.set("scanned:%d" % i, i)
    assert {k for k in r.scan_iter("scanned:*")} == {"scanned:%d" % i for i in range(1000)}
    assert {k for k in r.scan_iter(_type="hash")} == {"hash"}
    assert len(r.keys("scanned:*5")) == 100 and r.dbsize() == 1002


def pipelines(r):
    with r.pipeline(transaction=False) as pipe:
        for i in range(2000):
            pipe.set("piped:%d" % i, i)
            pipe.get("piped:%d" % i)
        answers = pipe.execute()
    assert answers[1::2] == [str(i) for i in range(2000)]
    assert r.unlink(*["piped:%d" % i for i in range(2000)]) == 2000
    with r.pipeline(transaction=True) as pipe:
        assert pipe.set("{t}a", 1).incr("{t}a").get("{t}a").execute() == [True, 2, "2"]


def lock(r, name, token, ttl_ms):
    return r.set(name, token, nx=True, px=ttl_ms)


def unlock(r, name, token):
    """The way of the documentation of Redis that needs no scripts."""
    def compare_and_delete(pipe):
        mine = pipe.get(name) == token
        pipe.multi()
        if mine:
            pipe.delete(name)
    return r.transaction(compare_and_delete, name) == [1]


def locks(r):
    counted = {"value": 0}

    def work(number):
        own = redis.Redis(port=PORT, decode_responses=True)
        for _ in range(20):
            while not lock(own, "{l}lock", str(number), 10000):
                pass
            value = counted["value"]
            own.ping()
            counted["value"] = value + 1
            assert unlock(own, "{l}lock", str(number))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counted["value"] == 80, counted
    assert lock(r, "{l}lock", "a", 10000) and not lock(r, "{l}lock", "b", 10000)
    assert not unlock(r, "{l}lock", "b") and unlock(r, "{l}lock", "a")


def server(r):
    assert r.info()["db0"]["keys"] == r.dbsize() and r.info("server")["redis_mode"] == "standalone"
    assert r.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
    assert r.client_setname("tester") and r.client_getname() == "tester"
    assert "tester" in [c["name"] for c in r.client_list()] and r.client_id() > 0
    assert r.time()[0] > 1600000000 and r.echo("x") == "x" and r.ping()
    assert r.command_count() > 80


def binary():
    r = redis.Redis(port=PORT)
    every = bytes(range(256))
    assert r.set(every, every * 40000) and r.get(every) == every * 40000
    assert r.hset("b", every, every) == 1 and r.hget("b", every) == every


def main():
    r = redis.Redis(port=PORT, decode_responses=True, health_check_interval=1)
    strings(r)
    values(r)
    pipelines(r)
    locks(r)
    server(r)
    binary()
    assert r.flushall() and r.dbsize() == 0


main()
