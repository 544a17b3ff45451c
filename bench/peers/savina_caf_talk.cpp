// The rows in which actors do nothing but send: pingpong, counting, fjthrput, threadring, mailbox.
//
// Where nobody asks who sent a message it is sent anonymously, which saves counting references to
// the sender. An actor that is woken by such a message goes to any worker: where one message is in
// flight, it is sent by its sender, and the next actor runs on the same worker.
#include "savina_caf.hpp"

using namespace caf;

namespace savina
{
namespace
{

constexpr uint64_t count_window = 1000;
constexpr uint64_t fork_actors = 60;
constexpr uint64_t fork_window = 100;
constexpr uint64_t ring_nodes = 100;
constexpr uint64_t mailbox_senders = 20;
constexpr uint64_t mailbox_window = 500;

// ---- pingpong -----------------------------------------------------------------------------------

behavior pong(event_based_actor *self, const actor &ping)
{
    return {[self, ping](uint64_t ball) { self->send(ping, ball); }};
}

struct ping_state {
    actor pong;
    uint64_t count = 0;
};

behavior ping(stateful_actor<ping_state> *self, uint64_t size, round *round)
{
    self->state.pong = self->spawn(pong, actor{self});
    self->send(self->state.pong, uint64_t{0});
    return {[self, size, round](uint64_t ball) {
        auto &state = self->state;
        if (ball != state.count)
            wrong("a ball");
        if (++state.count != size) {
            self->send(state.pong, state.count);
            return;
        }
        self->send_exit(state.pong, exit_reason::user_shutdown);
        self->quit();
        round->end(ball + 1);
    }};
}

// ---- counting -----------------------------------------------------------------------------------

struct counter_state {
    uint64_t count = 0;
};

// Of counting and of fjthrput: acknowledges each `window`-th.
behavior counter(stateful_actor<counter_state> *self, const actor &producer, uint64_t window)
{
    return {[self, producer, window](uint64_t increment) {
                self->state.count += increment;
                if (self->state.count % window == 0)
                    anon_send(producer, ack_atom::value);
            },
            [self, producer](get_atom) {
                anon_send(producer, self->state.count);
                self->quit();
            }};
}

struct producer_state {
    std::vector<actor> counters;
    uint64_t left = 0;    // to be sent, to each counter
    uint64_t waiting = 0; // acknowledgements, or counts
    uint64_t sum = 0;
};

using producer_actor = stateful_actor<producer_state>;

void count_some(producer_actor *self)
{
    auto &state = self->state;
    if (state.left == 0) {
        if (state.waiting == 0)
            anon_send(state.counters[0], get_atom::value);
        return;
    }
    for (uint64_t i = 0; i < count_window; i++)
        anon_send(state.counters[0], uint64_t{1});
    state.left -= count_window;
    state.waiting++;
}

behavior count_producer(producer_actor *self, uint64_t size, round *round)
{
    self->state.left = size;
    self->state.counters.push_back(self->spawn(counter, actor{self}, count_window));
    count_some(self);
    count_some(self);
    return {[self](ack_atom) {
                self->state.waiting--;
                count_some(self);
            },
            [self, round](uint64_t count) {
                self->quit();
                round->end(count);
            }};
}

// ---- fjthrput -----------------------------------------------------------------------------------

void fork_some(producer_actor *self)
{
    auto &state = self->state;
    state.waiting = fork_actors;
    if (state.left == 0) {
        for (auto &counter : state.counters)
            anon_send(counter, get_atom::value);
        return;
    }
    for (uint64_t i = 0; i < fork_window; i++)
        for (auto &counter : state.counters)
            anon_send(counter, uint64_t{1});
    state.left -= fork_window;
}

behavior fork_producer(producer_actor *self, uint64_t size, round *round)
{
    self->state.left = size;
    for (uint64_t i = 0; i < fork_actors; i++)
        self->state.counters.push_back(self->spawn(counter, actor{self}, fork_window));
    fork_some(self);
    return {[self](ack_atom) {
                if (--self->state.waiting == 0)
                    fork_some(self);
            },
            [self, round](uint64_t count) {
                self->state.sum += count;
                if (--self->state.waiting != 0)
                    return;
                self->quit();
                round->end(self->state.sum);
            }};
}

// ---- threadring ---------------------------------------------------------------------------------

struct node_state {
    actor next;
};

// A token is the number of passes that are left to it.
behavior node(stateful_actor<node_state> *self, uint64_t index, round *round)
{
    return {[self, index, round](uint64_t left) {
                if (left != 0)
                    self->send(self->state.next, left - 1);
                else
                    round->end(index);
            },
            [self](next_atom, const actor &next) { self->state.next = next; }};
}

// ---- mailbox ------------------------------------------------------------------------------------

struct receiver_state {
    uint64_t count = 0;
    std::vector<actor> senders;
};

struct sender_state {
    uint64_t left = 0;
};

void send_window(stateful_actor<sender_state> *self, const actor &receiver, uint32_t index)
{
    for (uint64_t i = 1; i < mailbox_window; i++)
        anon_send(receiver, uint64_t{1});
    anon_send(receiver, index);
    self->state.left -= mailbox_window;
}

behavior sender(stateful_actor<sender_state> *self, const actor &receiver, uint32_t index,
                uint64_t count)
{
    self->state.left = count;
    send_window(self, receiver, index);
    return {[self, receiver, index](ack_atom) {
        if (self->state.left != 0)
            send_window(self, receiver, index);
        else
            self->quit();
    }};
}

// The last message of a window is another: it names its sender.
behavior receiver(stateful_actor<receiver_state> *self, uint64_t size, round *round)
{
    for (uint32_t i = 0; i < mailbox_senders; i++)
        self->state.senders.push_back(self->spawn(sender, actor{self}, i, size / mailbox_senders));
    return {[self](uint64_t increment) { self->state.count += increment; },
            [self, size, round](uint32_t index) {
                self->state.count++;
                anon_send(self->state.senders[index], ack_atom::value);
                if (self->state.count != size)
                    return;
                self->quit();
                round->end(size);
            }};
}

} // namespace

void run_pingpong(actor_system &system, uint64_t size, round &round)
{
    system.spawn(ping, size, &round);
    round.wait();
}

void run_counting(actor_system &system, uint64_t size, round &round)
{
    system.spawn(count_producer, size, &round);
    round.wait();
}

void run_fjthrput(actor_system &system, uint64_t size, round &round)
{
    system.spawn(fork_producer, size, &round);
    round.wait();
}

void run_threadring(actor_system &system, uint64_t size, round &round)
{
    std::vector<actor> nodes;
    for (uint64_t i = 0; i < ring_nodes; i++)
        nodes.push_back(system.spawn<lazy_init>(node, i, &round));
    for (uint64_t i = 0; i < ring_nodes; i++)
        anon_send(nodes[i], next_atom::value, nodes[(i + 1) % ring_nodes]);
    anon_send(nodes[0], size);
    round.wait();
    stop_all(nodes);
}

void run_mailbox(actor_system &system, uint64_t size, round &round)
{
    system.spawn(receiver, size, &round);
    round.wait();
}

} // namespace savina
