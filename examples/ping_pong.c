/* Two state actors: one million balls by notice, then one million by ask (./dev run ping_pong).
 *
 * `ping` spawns `pong`, which lives on the same thread. A notice is one way: pong sends the ball
 * back by a notice of its own. An ask is one conversation: ping goes on in
 * ask_again_or_report_rate_and_quit().
 */
#include <domus/main.h>

#include <stdio.h>

#define BALLS 1000000u

static const domus_type serve_type = {.name = "serve"};
static const domus_type ball_type = {.name = "ball", .size = sizeof(uint32_t)};
static const domus_type question_type = {.name = "question", .size = sizeof(uint32_t)};

struct ping {
    domus_address pong;
    uint64_t began_ns;
};

static int return_ball(domus_stack *stack, void *self, const void *ball)
{
    (void)self;
    return domus_notice(stack, domus_sender(stack), &ball_type, ball);
}

static int answer_question(domus_stack *stack, void *self, const void *question)
{
    (void)self;
    return domus_reply(stack, &question_type, question);
}

static const domus_behaviour pong = {
    .name = "pong",
    .on =
        (const domus_on[]){{&ball_type, return_ball, 0}, {&question_type, answer_question, 0}, {0}},
};

static void report_rate(domus_stack *stack, const struct ping *ping, const char *what)
{
    double seconds = (double)(domus_now_ns(stack) - ping->began_ns) / 1e9;
    printf("%u balls by %s: %.3f s, %.1f M messages/s\n", BALLS, what, seconds,
           2 * BALLS / seconds / 1e6);
}

static int ask_again_or_report_rate_and_quit(domus_stack *stack, void *self,
                                             const domus_answer *answer)
{
    struct ping *ping = self;

    if (answer->error != 0)
        return answer->error;
    uint32_t left = *(const uint32_t *)answer->payload - 1;
    if (left != 0)
        return domus_ask(stack, ping->pong, &question_type, &left,
                         ask_again_or_report_rate_and_quit);
    report_rate(stack, ping, "ask");
    domus_main_quit(0);
    return 0;
}

static int return_ball_or_begin_round_of_asks(domus_stack *stack, void *self, const void *ball)
{
    struct ping *ping = self;
    uint32_t left = *(const uint32_t *)ball - 1;

    if (left != 0)
        return domus_notice(stack, ping->pong, &ball_type, &left);
    report_rate(stack, ping, "notice");
    ping->began_ns = domus_now_ns(stack);
    return domus_ask(stack, ping->pong, &question_type, &(uint32_t){BALLS},
                     ask_again_or_report_rate_and_quit);
}

static int serve_first_ball(domus_stack *stack, void *self, const void *nothing)
{
    struct ping *ping = self;

    (void)nothing;
    int error = domus_spawn(stack, &pong, NULL, &ping->pong);
    if (error != 0)
        return error;
    ping->began_ns = domus_now_ns(stack);
    return domus_notice(stack, ping->pong, &ball_type, &(uint32_t){BALLS});
}

static const domus_behaviour ping = {
    .name = "ping",
    .state_size = sizeof(struct ping),
    .on = (const domus_on[]){{&serve_type, serve_first_ball, 0},
                             {&ball_type, return_ball_or_begin_round_of_asks, 0},
                             {0}},
};

static int start_players(domus_system *system, void *argument)
{
    domus_address address;
    (void)argument;
    int error = domus_outside_spawn(system, &ping, NULL, &address);
    return error != 0 ? error : domus_outside_notice(system, address, &serve_type, NULL);
}

int main(int argc, char **argv)
{
    return domus_main(argc, argv, &(domus_program){.name = "ping_pong", .start = start_players});
}
