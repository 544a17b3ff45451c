/* A test of a small actor with the test kit (./dev run testkit; DOMUS_SEED=17 ./dev run testkit).
 *
 * The actor, `courier`, takes a letter to an office; when the office fails, it tries again after a
 * second, three times in all. The test plays the office with one probe and the sender with another,
 * for 200 orders of steps, and waits for seconds that take no time. */
#include <domus/testkit.h>

#include <errno.h>
#include <stdio.h>

#define SECOND   UINT64_C(1000000000)
#define ATTEMPTS 3

static const domus_type letter_type = {.name = "letter", .size = sizeof(uint32_t)};
static const domus_type again_type = {.name = "again"};
static const domus_type stamp_type = {.name = "stamp"};

struct courier {
    domus_address office, sender;
    uint32_t letter;
    int attempts;
};

static int send_stamp_or_try_letter_again(domus_stack *stack, void *self,
                                          const domus_answer *answer)
{
    struct courier *courier = self;

    if (answer->error == 0)
        return domus_notice(stack, courier->sender, &stamp_type, NULL);
    return ++courier->attempts < ATTEMPTS ? domus_after(stack, SECOND, &again_type, NULL, NULL)
                                          : answer->error;
}

static int send_letter_to_office(domus_stack *stack, void *self, const void *nothing)
{
    struct courier *courier = self;

    (void)nothing;
    return domus_ask(stack, courier->office, &letter_type, &courier->letter,
                     send_stamp_or_try_letter_again);
}

static int take_letter_of_sender(domus_stack *stack, void *self, const void *letter)
{
    struct courier *courier = self;

    courier->sender = domus_sender(stack);
    courier->attempts = 0;
    courier->letter = *(const uint32_t *)letter;
    return send_letter_to_office(stack, self, NULL);
}

static const domus_behaviour courier = {
    .name = "courier",
    .state_size = sizeof(struct courier),
    .on = (const domus_on[]){{&letter_type, take_letter_of_sender, 0},
                             {&again_type, send_letter_to_office, 0},
                             {0}},
};

/* Play an office that fails twice, then answers. Returns whether the courier acts as it should. */
static bool office_opens_late(domus_testkit *kit, domus_probe *sender, domus_probe *office)
{
    struct courier state = {.office = domus_probe_address(office)};
    domus_address address;
    bool good = domus_outside_spawn(domus_testkit_system(kit), &courier, &state, &address) == 0 &&
                domus_probe_send(sender, address, &letter_type, &(uint32_t){42}) == 0;

    for (int i = 1; i < ATTEMPTS; i++)
        good = good && domus_probe_expect(office, &letter_type, SECOND, NULL) == 0 &&
               domus_probe_fail(office, -EAGAIN) == 0 &&
               domus_probe_expect_nothing(office, SECOND - 1) == 0;
    return good && domus_probe_expect(office, &letter_type, SECOND, NULL) == 0 &&
           domus_probe_reply(office, &stamp_type, NULL) == 0 &&
           domus_probe_expect(sender, &stamp_type, 0, NULL) == 0;
}

static int run_test(uint64_t seed, void *context)
{
    domus_testkit *kit;
    domus_probe *sender, *office;
    char text[DOMUS_TESTKIT_TEXT_MAX];

    if (domus_testkit_new(context, seed, NULL, 0, &kit) != 0)
        return -ENOMEM;
    bool good = domus_probe_new(kit, &sender) == 0 && domus_probe_new(kit, &office) == 0 &&
                office_opens_late(kit, sender, office);
    if (!good)
        printf("%s%s\n%s\n", domus_testkit_trace(kit), domus_testkit_error(kit),
               domus_testkit_replay(seed, text, sizeof text));
    domus_testkit_free(kit);
    return good ? 0 : -EBADMSG;
}

int main(void)
{
    if (domus_testkit_sweep(1, 200, run_test, NULL, NULL) != 0)
        return 1;
    printf("the courier tries again, whatever the order\n");
    return 0;
}
