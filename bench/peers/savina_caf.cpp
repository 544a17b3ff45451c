// The rows of bench/savina.c on CAF 0.17 (Debian's libcaf-dev).
//
// savina_caf ROW SIZE THREADS ROUNDS stealing|sharing: does ROUNDS rounds of the row in one system
// with that scheduler, checks each result, and prints lines "name value": `round_seconds` of each round (from nothing to the result;
// the system runs before), `messages` of a round, `result`, and what a row measures beside. Exit
// status 3 when a result is wrong. Who calls it pins it.
//
// What a user who cares for speed would write: untyped event-based actors, hot messages of one or
// two plain numbers (one allocation each, matched by their type), state in the actor, peers'
// handles held and not looked up, the first message passed with the spawn. The runner tries both
// schedulers of CAF for each row: stealing takes what came last, and so stays with one token and
// goes into depth with a tree; sharing takes what came first, and so lets messages gather. Also
// tried, and not faster: actors as classes.
#include "savina_caf.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace savina
{

std::vector<double> latencies_ns;

double seconds_now(clockid_t clock)
{
    timespec time{};
    clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

void round::begin()
{
    began = seconds_now(CLOCK_MONOTONIC);
}

void round::end(uint64_t value)
{
    std::lock_guard<std::mutex> guard(lock);
    result = value;
    ended = true;
    changed.notify_one();
}

void round::wait()
{
    std::unique_lock<std::mutex> guard(lock);
    changed.wait(guard, [this] { return ended; });
    seconds = seconds_now(CLOCK_MONOTONIC) - began;
}

void wrong(const char *what)
{
    constexpr int wrong_status = 3;

    std::fflush(stdout);
    std::fprintf(stderr, "savina_caf: wrong result: %s\n", what);
    std::_Exit(wrong_status);
}

void stop_all(const std::vector<caf::actor> &actors)
{
    for (auto &actor : actors)
        caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
}

uint64_t size_itself(uint64_t size)
{
    return size;
}

namespace
{

template <uint64_t Factor> uint64_t times(uint64_t size)
{
    return Factor * size;
}

uint64_t none(uint64_t)
{
    return 0;
}

uint64_t ring_expected(uint64_t size)
{
    return size % 100;
}

uint64_t bank_expected(uint64_t)
{
    return 1000000000;
}

uint64_t idle_expected(uint64_t)
{
    return 1000;
}

uint64_t fib_expected(uint64_t n)
{
    uint64_t before = 0;
    uint64_t value = 1;
    for (uint64_t i = 1; i < n; i++) {
        uint64_t sum = before + value;
        before = value;
        value = sum;
    }
    return value;
}

uint64_t fib_messages(uint64_t n)
{
    return 2 * (2 * fib_expected(n) - 1);
}

uint64_t skynet_messages(uint64_t size)
{
    return 2 * ((10 * size - 1) / 9);
}

uint64_t skynet_expected(uint64_t size)
{
    return size * (size - 1) / 2;
}

const row rows[] = {
    {"pingpong", times<2>, size_itself, run_pingpong},
    {"counting", size_itself, size_itself, run_counting},
    {"fjthrput", times<60>, times<60>, run_fjthrput},
    {"fjcreate", times<2>, size_itself, run_fjcreate},
    {"threadring", size_itself, ring_expected, run_threadring},
    {"chameneos", times<4>, times<2>, run_chameneos},
    {"big", times<240>, times<120>, run_big},
    {"bndbuffer", times<160>, times<40>, run_bndbuffer},
    {"banking", times<4>, bank_expected, run_banking},
    {"fib", fib_messages, fib_expected, run_fib},
    {"quicksort", nullptr, quicksort_expected, run_quicksort},
    {"skynet", skynet_messages, skynet_expected, run_skynet},
    {"mailbox", size_itself, size_itself, run_mailbox},
    {"wake", times<2>, size_itself, run_wake},
    {"idle", none, idle_expected, run_idle},
};

void print_latencies()
{
    if (latencies_ns.empty())
        return;
    std::sort(latencies_ns.begin(), latencies_ns.end());
    auto at = [](double share) {
        auto last = static_cast<double>(latencies_ns.size() - 1);
        return latencies_ns[static_cast<size_t>(last * share)];
    };
    std::printf("latency_ns %.0f %.0f %.0f\n", at(0.5), at(0.99), at(0.999));
}

void run_rounds(const row &row, uint64_t size, uint64_t threads, uint64_t rounds,
                caf::atom_value policy)
{
    caf::actor_system_config config;
    config.set("scheduler.max-threads", threads);
    config.set("scheduler.policy", policy);
    caf::actor_system system{config};
    uint64_t expected = row.expected(size);
    uint64_t messages = 0;

    for (uint64_t i = 0; i < rounds; i++) {
        round round;
        round.begin();
        row.run(system, size, round);
        system.await_all_actors_done();
        if (round.result != expected)
            wrong(row.name);
        messages = row.messages == nullptr ? round.messages : row.messages(size);
        std::printf("round_seconds %.9f\n", round.seconds);
    }
    std::printf("messages %llu\n", static_cast<unsigned long long>(messages));
    std::printf("result %llu\n", static_cast<unsigned long long>(expected));
    print_latencies();
}

} // namespace
} // namespace savina

int main(int argc, char **argv)
{
    bool stealing = argc == 6 && std::strcmp(argv[5], "stealing") == 0;
    bool sharing = argc == 6 && std::strcmp(argv[5], "sharing") == 0;

    if (!stealing && !sharing) {
        std::fprintf(stderr, "usage: savina_caf ROW SIZE THREADS ROUNDS stealing|sharing\n");
        return 2;
    }
    for (auto &row : savina::rows) {
        if (std::strcmp(row.name, argv[1]) != 0)
            continue;
        savina::run_rounds(row, std::strtoull(argv[2], nullptr, 10),
                           std::strtoull(argv[3], nullptr, 10),
                           std::strtoull(argv[4], nullptr, 10),
                           stealing ? caf::atom("stealing") : caf::atom("sharing"));
        return 0;
    }
    std::fprintf(stderr, "savina_caf: no row %s\n", argv[1]);
    return 2;
}
