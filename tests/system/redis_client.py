"""What a program does that uses python3-redis, against the server on the port that is given.

It prints nothing if all is as it should be, and fails at the first thing that is not.
"""
import sys
import threading
import time

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
        own = redis.Redis(host="127.0.0.1", port=PORT, decode_responses=True)
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


def rate_limit(r):
    """At most 5 requests in a window, by INCR and PEXPIRE in one transaction."""
    def may(user):
        with r.pipeline() as pipe:
            count, _ = pipe.incr("{rate}" + user).pexpire("{rate}" + user, 300, nx=True).execute()
        return count <= 5
    assert [may("a") for _ in range(7)] == [True] * 5 + [False] * 2
    time.sleep(0.35)
    assert may("a")


def queue(r):
    """Workers take jobs with BLPOP, and keep them in a list of their own until they are done."""
    done = []

    def work():
        own = redis.Redis(host="127.0.0.1", port=PORT, decode_responses=True)
        while True:
            job = own.blmove("{jobs}new", "{jobs}doing", 5, "LEFT", "RIGHT")
            if job == "end":
                return
            done.append(job)
            assert own.lrem("{jobs}doing", 1, job) == 1

    workers = [threading.Thread(target=work) for _ in range(5)]
    for worker in workers:
        worker.start()
    for i in range(500):
        r.rpush("{jobs}new", i)
    r.rpush("{jobs}new", *["end"] * 5)
    for worker in workers:
        worker.join()
    assert sorted(done, key=int) == [str(i) for i in range(500)]
    assert r.blpop("{jobs}new", 0.1) is None and r.delete("{jobs}doing") == 1
    assert r.rpush("{jobs}new", "x") == 1 and r.blpop(["{jobs}none", "{jobs}new"]) == ("{jobs}new", "x")


def sessions(r):
    for i in range(100):
        r.hset("session:%d" % i, mapping={"user": i, "cart": "[]"})
        r.expire("session:%d" % i, 1800)
    assert r.hincrby("session:7", "views", 1) == 1 and r.hget("session:7", "user") == "7"
    assert 1790 < r.ttl("session:7") <= 1800 and r.hgetall("session:1000") == {}
    assert r.delete(*["session:%d" % i for i in range(100)]) == 100


def leaderboard(r):
    try:
        r.zadd("board", {"a": 1})
    except redis.ResponseError as error:
        assert str(error).startswith("unknown command 'ZADD'"), error
    else:
        raise AssertionError("there are no sorted sets")


def cache(r):
    big = "x" * (20 << 20)
    assert r.set("big", big, ex=60) and r.get("big") == big and r.delete("big") == 1
    keys = ["cached:%d" % i for i in range(10000)]
    with r.pipeline(transaction=False) as pipe:
        for key in keys:
            pipe.set(key, key * 3)
        assert pipe.execute() == [True] * 10000
        for key in keys:
            pipe.get(key)
        assert pipe.execute() == [key * 3 for key in keys]
    assert r.mget(keys + ["none"]) == [key * 3 for key in keys] + [None]
    assert r.delete(*keys) == 10000


def messages(r):
    heard = r.pubsub()
    heard.subscribe("news")
    heard.psubscribe("n*s")
    assert [heard.get_message(timeout=5)["type"] for _ in range(2)] == ["subscribe", "psubscribe"]
    assert r.publish("news", "hello") == 2
    assert {heard.get_message(timeout=5)["type"] for _ in range(2)} == {"message", "pmessage"}
    heard.close()


def binary():
    r = redis.Redis(host="127.0.0.1", port=PORT)
    every = bytes(range(256))
    assert r.set(every, every * 40000) and r.get(every) == every * 40000
    assert r.hset("b", every, every) == 1 and r.hget("b", every) == every


def main():
    r = redis.Redis(host="127.0.0.1", port=PORT, decode_responses=True, health_check_interval=1)
    strings(r)
    values(r)
    pipelines(r)
    locks(r)
    rate_limit(r)
    queue(r)
    sessions(r)
    leaderboard(r)
    cache(r)
    messages(r)
    server(r)
    binary()
    assert r.flushall() and r.dbsize() == 0


main()
