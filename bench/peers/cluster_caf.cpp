// The contender of `bench cluster` on the io module of CAF 0.17 (Debian's libcaf-dev).
//
// The command line and what the sides say to the bench are those of bench/support/cluster_side.h.
// The responder publishes an actor at PORT, to which the requester connects.
//
// Each side has one thread of the scheduler; its middleman has a thread of its own, as always. An
// ask is request().then() without a time-out, from one actor. A notice is a string of 64 bytes,
// which CAF writes as a length and the bytes.
#include <caf/all.hpp>
#include <caf/io/all.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

using namespace caf;

namespace {

constexpr uint64_t under_way = 64;
constexpr size_t notice_bytes = 64;
constexpr uint64_t notices_a_mark = 1000;
constexpr uint64_t marks_max = 16;

using go_atom = atom_constant<atom("go")>;
using mark_atom = atom_constant<atom("mark")>;

std::string row;
uint64_t count;

uint64_t now_ns()
{
    auto now = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<uint64_t>(std::chrono::nanoseconds(now).count());
}

void say(const char *line)
{
    std::printf("%s\n", line);
    std::fflush(stdout);
}

// The actors of both nodes hold each other, so a side ends without asking them.
[[noreturn]] void await_end()
{
    while (std::getchar() != EOF)
        continue;
    std::_Exit(0);
}

void done(uint64_t began_ns, const char *wrong)
{
    std::printf("%s: %llu in %llu ns, %s%s\n", row.c_str(), static_cast<unsigned long long>(count),
                static_cast<unsigned long long>(now_ns() - began_ns),
                wrong == nullptr ? "ok" : "wrong: ", wrong == nullptr ? "" : wrong);
    std::fflush(stdout);
}

// ---- The responder ------------------------------------------------------------------------------

struct responder_state {
    uint64_t came = 0;
    uint64_t wrong = 0;
};

behavior responder(stateful_actor<responder_state> *self)
{
    return {
        [](uint64_t number, uint64_t) { return std::make_tuple(number, ~number); },
        [self](const std::string &notice) {
            auto &state = self->state;
            uint64_t number = 0;
            if (notice.size() == notice_bytes)
                std::memcpy(&number, notice.data(), sizeof number);
            if (notice.size() != notice_bytes || number != state.came)
                state.wrong++;
            state.came++;
        },
        [self](mark_atom) { return std::make_tuple(self->state.came, self->state.wrong); },
    };
}

// ---- The requester ------------------------------------------------------------------------------

struct requester_state {
    actor peer;
    uint64_t began_ns = 0;
    uint64_t next = 0; // the number of the next ask, or how many notices were sent
    uint64_t answered = 0;
    uint64_t marks = 0; // under way
    bool failed = false;
};

using requester_actor = stateful_actor<requester_state>;

void fail(requester_actor *self, const char *what)
{
    if (!self->state.failed)
        done(self->state.began_ns, what);
    self->state.failed = true;
}

void ask_once(requester_actor *self, uint64_t number)
{
    self->request(self->state.peer, infinite, number, uint64_t{0})
        .then([self, number](uint64_t first, uint64_t second) {
            auto &state = self->state;
            if (first != number || second != ~number)
                return fail(self, "an answer");
            if (++state.answered == count)
                return done(state.began_ns, nullptr);
            if (number + under_way < count)
                ask_once(self, number + under_way);
        });
}

void send_notices(requester_actor *self);

void send_mark(requester_actor *self, uint64_t sent)
{
    self->state.marks++;
    self->request(self->state.peer, infinite, mark_atom::value)
        .then([self, sent](uint64_t came, uint64_t wrong) {
            self->state.marks--;
            if (came != sent || wrong != 0)
                return fail(self, "a mark");
            if (sent == count)
                return done(self->state.began_ns, nullptr);
            send_notices(self);
        });
}

void send_notices(requester_actor *self)
{
    auto &state = self->state;
    while (state.marks < marks_max && state.next < count) {
        uint64_t until = std::min(state.next + notices_a_mark, count);
        for (; state.next < until; state.next++) {
            std::string notice(notice_bytes, '\0');
            std::memcpy(&notice[0], &state.next, sizeof state.next);
            self->send(state.peer, std::move(notice));
        }
        send_mark(self, until);
    }
}

behavior requester(requester_actor *self, const actor &peer)
{
    self->state.peer = peer;
    return {[self](go_atom) {
        self->state.began_ns = now_ns();
        if (row == "notice")
            return send_notices(self);
        for (uint64_t number = 0; number < under_way && number < count; number++)
            ask_once(self, number);
    }};
}

void respond(actor_system &system, uint16_t port)
{
    auto published = system.middleman().publish(system.spawn(responder), port, "127.0.0.1");
    if (!published) {
        std::fprintf(stderr, "cluster_caf: publish: %s\n",
                     system.render(published.error()).c_str());
        std::_Exit(1);
    }
    say("ready");
    await_end();
}

void request(actor_system &system, uint16_t port)
{
    auto peer = system.middleman().remote_actor("127.0.0.1", port);
    if (!peer) {
        std::fprintf(stderr, "cluster_caf: connect: %s\n", system.render(peer.error()).c_str());
        std::_Exit(1);
    }
    {
        scoped_actor self{system};
        self->request(*peer, infinite, uint64_t{0}, uint64_t{0})
            .receive([](uint64_t, uint64_t) { say("ready"); }, [](const error &) { std::_Exit(1); });
    }
    if (std::getchar() == EOF)
        std::_Exit(0);
    anon_send(system.spawn(requester, *peer), go_atom::value);
    await_end();
}

} // namespace

int main(int argc, char **argv)
{
    if (argc != 5) {
        std::fprintf(stderr, "usage: cluster_caf responder|requester ask|notice COUNT PORT\n");
        return 2;
    }
    row = argv[2];
    count = std::strtoull(argv[3], nullptr, 10);
    auto port = static_cast<uint16_t>(std::strtoul(argv[4], nullptr, 10));
    actor_system_config config;
    config.load<io::middleman>();
    config.set("scheduler.max-threads", size_t{1});
    config.set("middleman.workers", size_t{0}); // with one it was slower
    actor_system system{config};
    if (std::strcmp(argv[1], "responder") == 0)
        respond(system, port);
    request(system, port);
}
