/* The bare C programs behind the limits of limits.h.
 *
 * The limits of one thread keep their state in static variables, so that the compiler sees all of
 * it, as in the fastest possible program. `next` is atomic because the same envelope is also used
 * between threads; on one thread its accesses are relaxed and cost a plain move. */
#include "bench/limits.h"

#include "bench/support/measure.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#define CACHE_LINE 64

/* How many pauses the receiver makes between two takes, so that the stack is left to the senders.
 * The stack's cache line then moves once per batch and not once per message, which gives a third
 * more rate (128 and 256 were the best). */
#define TAKE_PAUSES 128

/* Number of rounds before the clock starts, so that both threads surely run by then. */
#define UNTIMED_ROUNDS 1000

struct message {
    _Atomic(struct message *) next;
    uint64_t kind;
    uint64_t value;
    uint64_t sender;
};

static_assert(sizeof(void *) != 8 || sizeof(struct message) == 32,
              "the envelope that the figures are given for");

struct actor {
    struct message *first;
    struct message *last;
    struct actor *peer;
    uint64_t handled;
    void (*handle)(struct actor *actor, struct message *message);
    struct actor *next_ready;
    int is_ready; /* an int, because with a byte the rate of counting is 4 % lower */
};

static struct message *free_messages;
static struct actor *first_ready;
static struct actor *last_ready;

static _Noreturn void exit_with_error(const char *what)
{
    fprintf(stderr, "limits: %s\n", what);
    exit(EXIT_FAILURE);
}

static inline struct message *get_next_message(struct message *message)
{
    return atomic_load_explicit(&message->next, memory_order_relaxed);
}

static inline void set_next_message(struct message *message, struct message *next)
{
    atomic_store_explicit(&message->next, next, memory_order_relaxed);
}

static inline struct message *allocate_message(void)
{
    struct message *message = free_messages;

    if (message != NULL) {
        free_messages = get_next_message(message);
        return message;
    }
    message = malloc(sizeof *message);
    if (message == NULL)
        exit_with_error("out of memory");
    return message;
}

static inline void free_message(struct message *message)
{
    set_next_message(message, free_messages);
    free_messages = message;
}

static void destroy_message_pool(void)
{
    while (free_messages != NULL) {
        struct message *message = free_messages;
        free_messages = get_next_message(message);
        free(message);
    }
}

static inline void send_message_to_actor(struct actor *actor, uint64_t value)
{
    struct message *message = allocate_message();

    message->value = value;
    set_next_message(message, NULL);
    if (actor->last != NULL)
        set_next_message(actor->last, message);
    else
        actor->first = message;
    actor->last = message;
    if (actor->is_ready)
        return;
    actor->is_ready = 1;
    actor->next_ready = NULL;
    if (last_ready != NULL)
        last_ready->next_ready = actor;
    else
        first_ready = actor;
    last_ready = actor;
}

static void send_ball_with_one_less_to_peer(struct actor *actor, struct message *message)
{
    actor->handled++;
    if (message->value > 0)
        send_message_to_actor(actor->peer, message->value - 1);
}

static void run_actors_until_idle(void)
{
    while (first_ready != NULL) {
        struct actor *actor = first_ready;
        struct message *message;

        first_ready = actor->next_ready;
        if (first_ready == NULL)
            last_ready = NULL;
        actor->is_ready = 0;
        while ((message = actor->first) != NULL) {
            actor->first = get_next_message(message);
            if (actor->first == NULL)
                actor->last = NULL;
            actor->handle(actor, message);
            free_message(message);
        }
    }
}

static double get_rate_per_second(uint64_t count, uint64_t elapsed_ns)
{
    return (double)count * 1e9 / (double)elapsed_ns;
}

double limit_measure_ping_pong(uint64_t messages)
{
    struct actor ping = {.handle = send_ball_with_one_less_to_peer};
    struct actor pong = {.handle = send_ball_with_one_less_to_peer, .peer = &ping};

    if (messages == 0)
        exit_with_error("ping-pong of nothing");
    ping.peer = &pong;

    uint64_t start_ns = measure_now_ns();
    send_message_to_actor(&ping, messages - 1);
    run_actors_until_idle();
    uint64_t elapsed_ns = measure_now_ns() - start_ns;

    destroy_message_pool();
    if (ping.handled + pong.handled != messages || ping.handled - pong.handled != messages % 2)
        exit_with_error("ping-pong: wrong count");
    return get_rate_per_second(messages, elapsed_ns);
}

double limit_measure_counting(uint64_t messages)
{
    struct actor counter = {.handle = send_ball_with_one_less_to_peer};

    /* this has no effect, because each message to the counting actor holds 0 */
    counter.peer = &counter;
    uint64_t start_ns = measure_now_ns();
    for (uint64_t i = 0; i < messages; i++) {
        send_message_to_actor(&counter, 0);
        if (i % LIMIT_BATCH == LIMIT_BATCH - 1)
            run_actors_until_idle();
    }
    run_actors_until_idle();
    uint64_t elapsed_ns = measure_now_ns() - start_ns;

    destroy_message_pool();
    if (counter.handled != messages)
        exit_with_error("count: wrong count");
    return get_rate_per_second(messages, elapsed_ns);
}

/* The limits below this line have two or more threads. */

static inline void pause_briefly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

static void pin_or_fail(int cpu)
{
    if (measure_pin_thread_to_cpu(cpu) != 0)
        exit_with_error("no such CPU for this process");
}

static void start_thread(pthread_t *thread, void *(*run)(void *), void *argument)
{
    if (pthread_create(thread, NULL, run, argument) != 0)
        exit_with_error("cannot start a thread");
}

struct hand_off {
    /* The state of the hand-off: 2i: round i may begin; 2i + 1: round i is on its way back. It has
     * a cache line for itself. */
    _Alignas(CACHE_LINE) _Atomic uint64_t turn;
    _Alignas(CACHE_LINE) uint64_t rounds;
    uint64_t elapsed_ns;
    int cpus[2];
    pthread_barrier_t start;
};

/* Spin until it is this turn. acquire: pairs with the other side's release store, so that the
 * content of a real message would be seen. */
static inline void spin_until_turn(struct hand_off *hand_off, uint64_t turn)
{
    while (atomic_load_explicit(&hand_off->turn, memory_order_acquire) != turn)
        pause_briefly();
}

static void *run_ping_thread(void *hand_off_)
{
    struct hand_off *hand_off = hand_off_;
    uint64_t rounds = hand_off->rounds;

    pin_or_fail(hand_off->cpus[0]);
    pthread_barrier_wait(&hand_off->start);
    uint64_t start_ns = 0;
    for (uint64_t i = 0; i < rounds; i++) {
        if (i == UNTIMED_ROUNDS)
            start_ns = measure_now_ns();
        atomic_store_explicit(&hand_off->turn, 2 * i + 1, memory_order_release);
        spin_until_turn(hand_off, 2 * i + 2);
    }
    hand_off->elapsed_ns = measure_now_ns() - start_ns;
    return NULL;
}

static void *run_pong_thread(void *hand_off_)
{
    struct hand_off *hand_off = hand_off_;
    uint64_t rounds = hand_off->rounds;

    pin_or_fail(hand_off->cpus[1]);
    pthread_barrier_wait(&hand_off->start);
    for (uint64_t i = 0; i < rounds; i++) {
        spin_until_turn(hand_off, 2 * i + 1);
        atomic_store_explicit(&hand_off->turn, 2 * i + 2, memory_order_release);
    }
    return NULL;
}

double limit_measure_cross_ping_pong(uint64_t rounds, int cpu_a, int cpu_b)
{
    struct hand_off hand_off = {.rounds = rounds + UNTIMED_ROUNDS, .cpus = {cpu_a, cpu_b}};
    pthread_t threads[2];

    if (rounds == 0)
        exit_with_error("cross-thread ping-pong of nothing");
    pthread_barrier_init(&hand_off.start, NULL, 2);
    start_thread(&threads[0], run_ping_thread, &hand_off);
    start_thread(&threads[1], run_pong_thread, &hand_off);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    pthread_barrier_destroy(&hand_off.start);
    if (atomic_load_explicit(&hand_off.turn, memory_order_relaxed) != 2 * hand_off.rounds)
        exit_with_error("cross-thread ping-pong: wrong count");
    return (double)hand_off.elapsed_ns / (double)rounds / 2;
}

struct funnel {
    _Alignas(CACHE_LINE) _Atomic(struct message *) stack;
    _Alignas(CACHE_LINE) uint64_t messages;
    uint64_t sum;
    uint64_t elapsed_ns;
    int receiver_cpu;
    pthread_barrier_t start;
};

struct sender {
    struct funnel *funnel;
    struct message *messages;
    uint64_t count;
    int cpu;
    pthread_t thread;
};

static void *push_all_messages_of_sender(void *sender_)
{
    struct sender *sender = sender_;
    _Atomic(struct message *) *stack = &sender->funnel->stack;
    struct message *end = sender->messages + sender->count;

    pin_or_fail(sender->cpu);
    pthread_barrier_wait(&sender->funnel->start);
    for (struct message *message = sender->messages; message < end; message++) {
        struct message *top = atomic_load_explicit(stack, memory_order_relaxed);

        /* release: pairs with the receiver's exchange, so that the receiver sees the link of
         * each message. */
        do
            set_next_message(message, top);
        while (!atomic_compare_exchange_weak_explicit(stack, &top, message, memory_order_release,
                                                      memory_order_relaxed));
    }
    return NULL;
}

static void *run_receiver_thread(void *funnel_)
{
    struct funnel *funnel = funnel_;
    uint64_t wanted = funnel->messages;
    uint64_t received = 0;
    uint64_t sum = 0;

    pin_or_fail(funnel->receiver_cpu);
    pthread_barrier_wait(&funnel->start);
    uint64_t start_ns = measure_now_ns();
    while (received < wanted) {
        for (int i = 0; i < TAKE_PAUSES; i++)
            pause_briefly();

        /* acquire: pairs with the release of the pushes, so that the receiver sees every
         * link and value. */
        struct message *message =
            atomic_exchange_explicit(&funnel->stack, NULL, memory_order_acquire);

        if (message == NULL)
            continue;
        do {
            received++;
            sum += message->value;
            message = get_next_message(message);
        } while (message != NULL);
    }
    funnel->elapsed_ns = measure_now_ns() - start_ns;
    funnel->messages = received;
    funnel->sum = sum;
    return NULL;
}

/* Make the messages of a sender, and write them before the clock starts, so that no page is touched
 * for the first time during the measurement. */
static struct message *make_messages(uint64_t count)
{
    size_t size =
        ((size_t)count * sizeof(struct message) + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    struct message *messages = aligned_alloc(CACHE_LINE, size);

    if (messages == NULL)
        exit_with_error("out of memory");
    for (uint64_t i = 0; i < count; i++) {
        atomic_init(&messages[i].next, NULL);
        messages[i].value = i;
    }
    return messages;
}

double limit_measure_many_senders_to_one(uint64_t messages, int senders, const int *cpus)
{
    struct funnel funnel = {.messages = messages, .receiver_cpu = cpus[0]};
    struct sender sender[LIMIT_SENDERS_MAX];
    pthread_t receiver;

    if (senders < 1 || senders > LIMIT_SENDERS_MAX || messages < (uint64_t)senders ||
        messages > UINT32_MAX)
        exit_with_error("N:1: senders or messages out of range");

    uint64_t share = messages / (uint64_t)senders;
    struct message *made = make_messages(messages);

    pthread_barrier_init(&funnel.start, NULL, (unsigned int)senders + 1);
    start_thread(&receiver, run_receiver_thread, &funnel);
    for (int i = 0; i < senders; i++) {
        uint64_t first = share * (uint64_t)i;
        sender[i] = (struct sender){
            .funnel = &funnel,
            .messages = made + first,
            .count = i == senders - 1 ? messages - first : share,
            .cpu = cpus[i + 1],
        };
        start_thread(&sender[i].thread, push_all_messages_of_sender, &sender[i]);
    }
    for (int i = 0; i < senders; i++)
        pthread_join(sender[i].thread, NULL);
    pthread_join(receiver, NULL);
    pthread_barrier_destroy(&funnel.start);
    free(made);
    if (funnel.messages != messages || funnel.sum != messages * (messages - 1) / 2)
        exit_with_error("N:1: wrong count or sum");
    return get_rate_per_second(messages, funnel.elapsed_ns);
}
