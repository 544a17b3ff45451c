// The rows in which little happens: wake (a thread that is not CAF's wakes the system) and idle.
#include "savina_caf.hpp"

#include <chrono>
#include <cstdio>
#include <thread>

using namespace caf;

namespace savina
{
namespace
{

constexpr auto wake_pause = std::chrono::milliseconds(1);
constexpr uint64_t idle_actors = 1000;

behavior answerer()
{
    return {[](uint64_t number) { return number; }};
}

uint64_t ask(scoped_actor &self, const actor &peer, uint64_t number)
{
    uint64_t answer = number + 1;
    self->request(peer, infinite, number)
        .receive([&](uint64_t got) { answer = got; }, [](error &) { wrong("an answer"); });
    if (answer != number)
        wrong("an answer");
    return 1;
}

} // namespace

void run_wake(actor_system &system, uint64_t size, round &round)
{
    scoped_actor self{system};
    auto peer = system.spawn(answerer);
    uint64_t answers = 0;

    for (uint64_t i = 0; i < size; i++) {
        std::this_thread::sleep_for(wake_pause);
        double asked = seconds_now(CLOCK_MONOTONIC);
        answers += ask(self, peer, i);
        latencies_ns.push_back((seconds_now(CLOCK_MONOTONIC) - asked) * 1e9);
    }
    round.end(answers);
    round.wait();
    stop_all({peer});
}

void run_idle(actor_system &system, uint64_t size, round &round)
{
    scoped_actor self{system};
    std::vector<actor> waiting;
    uint64_t answers = 0;

    for (uint64_t i = 0; i < idle_actors; i++) {
        waiting.push_back(system.spawn(answerer));
        ask(self, waiting[i], i);
    }
    double used = seconds_now(CLOCK_PROCESS_CPUTIME_ID);
    round.begin();
    std::this_thread::sleep_for(std::chrono::seconds(size));
    round.end(0);
    round.wait();
    std::printf("cpu_seconds %.9f\n", seconds_now(CLOCK_PROCESS_CPUTIME_ID) - used);
    for (uint64_t i = 0; i < idle_actors; i++)
        answers += ask(self, waiting[i], i);
    round.result = answers;
    stop_all(waiting);
}

} // namespace savina
