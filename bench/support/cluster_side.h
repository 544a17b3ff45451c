/* One side of a contender of `bench cluster`: what all these programs have in common.
 *
 * A program plays one of two sides, each in a process of its own:
 *
 *     PROGRAM responder|requester ask|notice COUNT PORT [STYLE]
 *
 * PORT of 127.0.0.1 is that of the broker that the bench has started (nats-server, epmd); if a
 * contender needs no broker, the port is free, and its responder listens there. STYLE tells apart
 * the contenders that are one program.
 *
 * Both sides print `ready` when they are connected: the responder when it would answer, the
 * requester when it has had an answer. The requester then reads one line (`go`), does the row and
 * prints one line:
 *
 *     ask: 100000 in 1234567890 ns, ok
 *
 * or `wrong` and a reason in place of `ok`. After that both stay as they are until their stdin ends
 * or SIGTERM comes, so that the bench can read the clocks of their processes.
 *
 * Row `ask`: COUNT asks, CLUSTER_UNDER_WAY at once. The payload of an ask is two words of 8 bytes,
 * its number (0 to COUNT - 1) and a zero; the answer has the number and its complement. Each number
 * is answered exactly once.
 *
 * Row `notice`: COUNT notices of CLUSTER_NOTICE_BYTES, whose first word is the number. The
 * responder counts those that came and those whose number is not the next one. After each
 * CLUSTER_NOTICES_A_MARK notices, and after the last one, the requester sends a mark, an ask that
 * is answered with these two counts (or a notice, where an ask would overtake notices); it has at
 * most CLUSTER_MARKS_MAX of them under way. So what is on the way has a bound, and the time ends
 * when the responder has had the last notice. */
#ifndef DOMUS_BENCH_CLUSTER_SIDE_H
#define DOMUS_BENCH_CLUSTER_SIDE_H

#include <stdbool.h>
#include <stdint.h>

#define CLUSTER_UNDER_WAY      64u
#define CLUSTER_ASK_BYTES      16u
#define CLUSTER_NOTICE_BYTES   64u
#define CLUSTER_NOTICES_A_MARK 1000u
#define CLUSTER_MARKS_MAX      16u
#define CLUSTER_COUNT_MAX      UINT64_C(1000000000)

struct cluster_side {
    bool responds; /* this program is the responder; otherwise the requester */
    bool notices;  /* the row is `notice`; otherwise `ask` */
    uint64_t count;
    uint16_t port;
    const char *style; /* the argument STYLE of the command line; "" if none was given */
    uint64_t began_ns;
};

/* The two words of a payload. They are in the byte order of the machine, because both sides run on
 * one machine. */
struct cluster_words {
    uint64_t first;
    uint64_t second;
};

/* Read the command line of a side. Returns false if it is wrong. */
bool cluster_side_parse_arguments(struct cluster_side *side, int argc, char **argv);

/* Read the command line of a side as cluster_side_parse_arguments() does. If it is wrong, print the
 * usage and exit with 2. */
void cluster_side_parse_or_exit(struct cluster_side *side, int argc, char **argv);

/* Print the line `ready`, for which the bench waits. */
void cluster_side_print_ready(void);

/* Print the line `ready`, wait for the line `go` of the bench, and read the clock. If stdin ends
 * before that line, exit with 0. */
void cluster_side_print_ready_and_await_go(struct cluster_side *side);

/* Print the requester's result line, then wait until stdin ends. `wrong` says what is wrong; NULL:
 * the result is right. */
void cluster_side_print_result(const struct cluster_side *side, const char *wrong);

/* Wait until the bench closes stdin. */
void cluster_side_await_end_of_stdin(void);

/* Returns the right answer to the payload of an ask. */
struct cluster_words cluster_side_right_answer_to_ask(struct cluster_words ask);

/* Count a notice at the responder. Returns its new counts: how many notices came, and how many of
 * these did not have the next number. */
struct cluster_words cluster_side_counts_with_notice(struct cluster_words counts, uint64_t number);

/* Returns whether `counts` is the right answer to a mark that was sent after `sent` notices. */
bool cluster_side_is_mark_answer_right(struct cluster_words counts, uint64_t sent);

/* The asks that a requester with one thread has under way, by their numbers. */
struct cluster_asks {
    uint64_t count;
    uint64_t answered;
    /* numbers of the asks under way; a number from `count` on means that the place is empty */
    uint64_t numbers[CLUSTER_UNDER_WAY];
};

/* Begin with the first CLUSTER_UNDER_WAY numbers, or with all numbers if there are fewer. */
void cluster_asks_init(struct cluster_asks *asks, uint64_t count);

/* Handle an answer. The next ask takes its place, so the number of that ask is the answered number
 * plus CLUSTER_UNDER_WAY, if this is less than `count`. Returns false if no ask with this number is
 * under way, or if the answer is wrong. */
bool cluster_asks_check_and_count_answer(struct cluster_asks *asks, struct cluster_words answer);

#endif
