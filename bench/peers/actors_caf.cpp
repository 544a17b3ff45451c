// The rows of bench/actors.c and bench/ring.c on CAF 0.17 (Debian's libcaf-dev).
//
// actors_caf ROW SIZE THREADS: does the row, checks its result, and prints `seconds` (the work
// alone: the system runs before) and `cpu_seconds` (all threads of the process, over the same time)
// as lines "name value". Exit status 3 when the result is wrong. Who calls it pins it.
//
// What a user who cares for speed would write: untyped event-based actors, messages of one plain
// number (they need no allocation but their own), asks by request().then() without a time-out,
// lazy_init where a message follows the spawn, the stealing scheduler with its own polling.
#include <caf/all.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <numeric>
#include <random>
#include <vector>

using namespace caf;

namespace {

constexpr uint64_t fan_out_targets = 10000;
constexpr uint64_t spawn_batch = 1000;
constexpr uint64_t ring_batch = 4096;
constexpr uint64_t ring_tokens = 10;
constexpr uint64_t ring_passes_min = 1000000;
constexpr uint64_t timer_spread_ms = 100;
constexpr uint64_t cancel_after_ms = 10000;
constexpr int wrong_status = 3;

using go_atom = atom_constant<atom("go")>;
using gone_atom = atom_constant<atom("gone")>;
using next_atom = atom_constant<atom("next")>;

double seconds_of(clockid_t clock)
{
    timespec time{};
    clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

struct stopwatch {
    double wall = seconds_of(CLOCK_MONOTONIC);
    double cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID);

    void print() const
    {
        double wall_now = seconds_of(CLOCK_MONOTONIC);
        double cpu_now = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
        std::printf("seconds %.9f\ncpu_seconds %.9f\n", wall_now - wall, cpu_now - cpu);
    }
};

// Actors of a ring hold each other: the process ends without asking them.
[[noreturn]] void leave(int status)
{
    std::fflush(stdout);
    std::_Exit(status);
}

[[noreturn]] void wrong(const char *what)
{
    std::fprintf(stderr, "actors_caf: wrong result: %s\n", what);
    leave(wrong_status);
}

// ---- ask ----------------------------------------------------------------------------------------

behavior answerer()
{
    return {[](uint64_t number) { return number; }};
}

struct asker_state {
    actor peer;
    uint64_t left = 0;
    uint64_t handled = 0;
    stopwatch watch;
};

using asker_actor = stateful_actor<asker_state>;

void ask_once(asker_actor *self)
{
    self->request(self->state.peer, infinite, self->state.left).then([self](uint64_t number) {
        auto &state = self->state;
        if (number != state.left)
            wrong("an answer");
        state.handled++;
        if (state.left != 0) {
            state.left--;
            ask_once(self);
            return;
        }
        state.watch.print();
        anon_send_exit(state.peer, exit_reason::user_shutdown);
        self->quit();
    });
}

behavior asker(asker_actor *self, const actor &peer, uint64_t asks)
{
    self->state.peer = peer;
    return {[self, asks](go_atom) {
        self->state.left = asks - 1;
        self->state.watch = stopwatch();
        ask_once(self);
    }};
}

void do_ask(actor_system &system, uint64_t asks)
{
    auto peer = system.spawn(answerer);
    anon_send(system.spawn(asker, peer, asks), go_atom::value);
}

// ---- fan_out ------------------------------------------------------------------------------------

struct fan_state {
    std::vector<actor> targets;
    uint64_t rounds = 0;
    uint64_t waiting = 0;
    uint64_t sum = 0;
    stopwatch watch;
};

using fan_actor = stateful_actor<fan_state>;

void fan_round(fan_actor *self)
{
    self->state.waiting = fan_out_targets;
    self->state.sum = 0;
    for (uint64_t i = 0; i < fan_out_targets; i++) {
        self->request(self->state.targets[i], infinite, i).then([self](uint64_t number) {
            auto &state = self->state;
            state.sum += number;
            if (--state.waiting != 0)
                return;
            if (state.sum != fan_out_targets * (fan_out_targets - 1) / 2)
                wrong("the sum of the answers");
            if (--state.rounds != 0) {
                fan_round(self);
                return;
            }
            state.watch.print();
            for (auto &target : state.targets)
                anon_send_exit(target, exit_reason::user_shutdown);
            self->quit();
        });
    }
}

behavior fan(fan_actor *self, uint64_t rounds)
{
    self->state.rounds = rounds;
    for (uint64_t i = 0; i < fan_out_targets; i++)
        self->state.targets.push_back(self->spawn(answerer));
    return {[self](go_atom) {
        self->state.watch = stopwatch();
        fan_round(self);
    }};
}

void do_fan_out(actor_system &system, uint64_t rounds)
{
    anon_send(system.spawn(fan, rounds), go_atom::value);
}

// ---- spawn_stop ---------------------------------------------------------------------------------

struct parent_state {
    actor self; // a monitor holds nobody: without this the parent is unreachable, and ends
    uint64_t left = 0;
    stopwatch watch;
};

using parent_actor = stateful_actor<parent_state>;

// An actor without a behaviour ends once it was initialized: it has run by then.
void child(event_based_actor *)
{
}

// The first of a batch is monitored: a worker runs the actor that was spawned last first.
void spawn_some(parent_actor *self)
{
    uint64_t batch = std::min(self->state.left, spawn_batch);
    self->state.left -= batch;
    self->monitor(self->spawn(child));
    for (uint64_t i = 1; i < batch; i++)
        self->spawn(child);
}

behavior parent(parent_actor *self, uint64_t children)
{
    self->state.self = self;
    self->state.left = children;
    self->set_down_handler([self](down_msg &) {
        if (self->state.left != 0) {
            spawn_some(self);
            return;
        }
        self->state.watch.print();
        if (self->system().registry().running() != 1)
            wrong("some are not gone");
        self->state.self = nullptr;
        self->quit();
    });
    return {[self](go_atom) {
        self->state.watch = stopwatch();
        spawn_some(self);
    }};
}

void do_spawn_stop(actor_system &system, uint64_t children)
{
    anon_send(system.spawn(parent, children), go_atom::value);
}

// ---- timers -------------------------------------------------------------------------------------

struct timers_state {
    uint64_t count = 0;
    uint64_t sum = 0;
    stopwatch watch;
};

using timers_actor = stateful_actor<timers_state>;

behavior timers(timers_actor *self, uint64_t timers_count)
{
    return {[self, timers_count](go_atom) {
                self->state.watch = stopwatch();
                auto now = std::chrono::steady_clock::now();
                for (uint64_t i = 0; i < timers_count; i++)
                    self->scheduled_send(
                        self, now + std::chrono::milliseconds(1 + i % timer_spread_ms), i);
            },
            [self, timers_count](uint64_t number) {
                self->state.sum += number;
                if (++self->state.count != timers_count)
                    return;
                self->state.watch.print();
                if (self->state.sum != timers_count * (timers_count - 1) / 2)
                    wrong("the sum of the timers");
                self->quit();
            }};
}

// A delayed message cannot be taken back here; the time-out of a request can, and is whenever an
// answer comes: this does with the clock what request() does. An actor has its time-outs in a list,
// and the oldest is found at once.
behavior timers_cancel(timers_actor *self, uint64_t timers_count)
{
    self->set_default_handler([](scheduled_actor *, message_view &) -> result<message> {
        wrong("a timer that was cancelled");
    });
    return {[self, timers_count](go_atom) {
        std::vector<message_id> ids(timers_count);
        auto &clock = self->clock();
        self->state.watch = stopwatch();
        auto now = clock.now() + std::chrono::milliseconds(cancel_after_ms);
        for (uint64_t i = 0; i < timers_count; i++) {
            ids[i] = self->new_request_id(message_priority::normal).response_id();
            clock.set_request_timeout(now + std::chrono::milliseconds(1 + i % timer_spread_ms),
                                      self, ids[i]);
        }
        for (auto id : ids)
            clock.cancel_request_timeout(self, id);
        self->state.watch.print();
        self->quit();
    }};
}

void do_timers(actor_system &system, uint64_t count)
{
    anon_send(system.spawn(timers, count), go_atom::value);
}

void do_timers_cancel(actor_system &system, uint64_t count)
{
    anon_send(system.spawn(timers_cancel, count), go_atom::value);
}

// ---- ring ---------------------------------------------------------------------------------------

// What every node needs, and none should pay for.
struct {
    actor maker;
    uint64_t size = 0;
    std::atomic<uint64_t> ready{0};
} ring;

struct node_state {
    actor next;
};

using node_actor = stateful_actor<node_state>;

// A token is the number of passes that are left to it.
behavior node(node_actor *self)
{
    return {[self](next_atom, const actor &next) {
                self->state.next = next;
                if (ring.ready.fetch_add(1, std::memory_order_relaxed) + 1 == ring.size)
                    self->send(ring.maker, gone_atom::value);
            },
            [self](uint64_t left) {
                if (left != 0)
                    self->send(self->state.next, left - 1);
                else
                    self->send(ring.maker, gone_atom::value);
            }};
}

struct maker_state {
    bool shuffled = false;
    std::vector<actor> nodes;
    std::vector<uint32_t> order; // along the ring, against the tokens
    std::vector<uint32_t> next;  // of each node, in the order of the spawns
    uint64_t wired = 0;
    uint64_t tokens = 0;
    uint64_t each = 0;
    double began = 0;
    stopwatch watch;
};

using maker_actor = stateful_actor<maker_state>;

std::vector<uint32_t> ring_order(bool shuffled)
{
    std::vector<uint32_t> order(ring.size);
    std::iota(order.begin(), order.end(), 0);
    if (shuffled)
        std::shuffle(order.begin(), order.end(), std::mt19937_64(1));
    return order;
}

std::vector<uint32_t> ring_next(const std::vector<uint32_t> &order)
{
    std::vector<uint32_t> next(order.size());
    for (size_t i = 0; i < order.size(); i++)
        next[order[i]] = order[(i == 0 ? order.size() : i) - 1];
    return next;
}

// In spawn order each learns the one before it as soon as it is spawned, shuffled when all are.
void make_some(maker_actor *self)
{
    auto &state = self->state;
    uint64_t end = std::min<uint64_t>(ring.size, state.nodes.size() + ring_batch);
    while (state.nodes.size() < end) {
        state.nodes.push_back(self->spawn<lazy_init>(node));
        size_t made = state.nodes.size();
        if (!state.shuffled && made > 1)
            self->send(state.nodes[made - 1], next_atom::value, state.nodes[made - 2]);
    }
    if (end == ring.size && !state.shuffled)
        self->send(state.nodes[0], next_atom::value, state.nodes[ring.size - 1]);
}

void wire_some(maker_actor *self)
{
    auto &state = self->state;
    uint64_t end = std::min(ring.size, state.wired + ring_batch);
    for (; state.wired < end; state.wired++)
        self->send(state.nodes[state.wired], next_atom::value,
                   state.nodes[state.next[state.wired]]);
}

void pass_tokens(maker_actor *self)
{
    auto &state = self->state;
    state.each = std::max(ring_passes_min, ring.size) / ring_tokens;
    std::printf("startup_seconds %.9f\n", seconds_of(CLOCK_MONOTONIC) - state.began);
    std::printf("passes %llu\n", static_cast<unsigned long long>(state.each * ring_tokens));
    state.tokens = ring_tokens;
    state.watch = stopwatch();
    for (uint64_t i = 0; i < ring_tokens; i++)
        self->send(state.nodes[state.order[i * ring.size / ring_tokens]], state.each);
}

// A token ends where it began, less its passes: the ring has the size that it should have.
bool ends_at(maker_actor *self, const strong_actor_ptr &sender)
{
    auto &state = self->state;
    for (uint64_t i = 0; i < ring_tokens; i++) {
        uint64_t place = i * ring.size / ring_tokens;
        uint64_t end = (place + ring.size - state.each % ring.size) % ring.size;
        if (state.nodes[state.order[end]] == sender)
            return true;
    }
    return false;
}

behavior maker(maker_actor *self, bool shuffled)
{
    ring.maker = self;
    self->state.shuffled = shuffled;
    self->state.order = ring_order(shuffled);
    self->state.next = ring_next(self->state.order);
    self->state.nodes.reserve(ring.size);
    return {[self](go_atom) {
                auto &state = self->state;
                if (state.nodes.empty())
                    state.began = seconds_of(CLOCK_MONOTONIC);
                if (state.nodes.size() < ring.size)
                    make_some(self);
                else if (state.shuffled && state.wired < ring.size)
                    wire_some(self);
                else
                    return;
                self->send(self, go_atom::value);
            },
            [self](gone_atom) {
                auto &state = self->state;
                if (state.tokens == 0) {
                    pass_tokens(self);
                    return;
                }
                if (!ends_at(self, self->current_sender()))
                    wrong("where a token ended");
                if (--state.tokens == 0) {
                    state.watch.print();
                    leave(0);
                }
            }};
}

void do_ring(actor_system &system, uint64_t size)
{
    ring.size = size;
    anon_send(system.spawn(maker, false), go_atom::value);
}

void do_ring_shuffled(actor_system &system, uint64_t size)
{
    ring.size = size;
    anon_send(system.spawn(maker, true), go_atom::value);
}

struct row {
    const char *name;
    void (*run)(actor_system &, uint64_t);
};

const row rows[] = {
    {"ask", do_ask},         {"ask_cross", do_ask},
    {"fan_out", do_fan_out}, {"spawn_stop", do_spawn_stop},
    {"timers", do_timers},   {"timers_cancel", do_timers_cancel},
    {"ring", do_ring},       {"ring_shuffled", do_ring_shuffled},
};

} // namespace

int main(int argc, char **argv)
{
    if (argc != 4) {
        std::fprintf(stderr, "usage: actors_caf ROW SIZE THREADS\n");
        return 2;
    }
    for (auto &row : rows) {
        if (std::strcmp(row.name, argv[1]) != 0)
            continue;
        actor_system_config config;
        config.set("scheduler.max-threads", std::strtoull(argv[3], nullptr, 10));
        actor_system system{config};
        row.run(system, std::strtoull(argv[2], nullptr, 10));
        system.await_all_actors_done();
        return 0;
    }
    std::fprintf(stderr, "actors_caf: no row %s\n", argv[1]);
    return 2;
}
