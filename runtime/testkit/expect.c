/* The expectations that a test has of a probe: each function takes steps and lets time pass until
 * the probe has received a message, and compares the message with what is expected. */
#include "runtime/testkit/parts.h"

#include "base/memory.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool has_probe_received(const void *probe_)
{
    const domus_probe *probe = probe_;

    return probe->came.head != NULL || probe->lost;
}

/* Take steps until the probe has received a message. Returns 0; -ETIME if none came within
 * `within_ns`; -EBUSY in a step; another negative errno, and then the kit's error says why. */
static int take_steps_until_parcel(domus_probe *probe, uint64_t within_ns)
{
    domus_testkit *kit = probe->kit;
    uint64_t now_ns = domus_testkit_now_ns(kit);
    uint64_t until_ns = within_ns < UINT64_MAX - 1 - now_ns ? now_ns + within_ns : UINT64_MAX - 1;

    if (kit->stepping)
        return -EBUSY;
    int result = domi_testkit_run_until(kit, has_probe_received, probe, until_ns);
    if (result == 0 && probe->lost) {
        probe->lost = false;
        snprintf(kit->error, sizeof kit->error, "no memory for what probe %u received",
                 probe->number);
        return -ENOMEM;
    }
    return result;
}

static const char *name_of_type_or_none(const domus_type *type)
{
    return type->name != NULL ? type->name : "(no name)";
}

/* Write into the kit's error text what the probe expected, and which message came first instead. */
static void write_error_of_expectation(domus_probe *probe, const char *what)
{
    const domi_parcel *first = probe->came.head;
    domus_testkit *kit = probe->kit;

    if (first == NULL)
        snprintf(kit->error, sizeof kit->error, "probe %u expected %s, but nothing came",
                 probe->number, what);
    else if (first->type == NULL)
        snprintf(kit->error, sizeof kit->error,
                 "probe %u expected %s, but a failure came first (%d, %s)", probe->number, what,
                 first->error, strerror(-first->error));
    else
        snprintf(kit->error, sizeof kit->error, "probe %u expected %s, but the %s %s came first",
                 probe->number, what, first->kind, name_of_type_or_none(first->type));
}

/* Remove the first parcel from the probe's list, because it is what the test has expected. An ask
 * goes to the list of asks that the test has to answer; another parcel is freed. */
static void remove_expected_parcel(domus_probe *probe)
{
    domi_parcel *one = domi_parcels_take(&probe->came);

    probe->sender = one->sender;
    if (one->is_ask)
        domi_parcels_put(&probe->asks, one);
    else
        domi_memory_free(one);
}

/* Compare the probe's first parcel with the expected `type`, or, if `type` is NULL, with a failure
 * with `error`; wait for the parcel for `within_ns` at most. Returns 0 if they agree; -EBADMSG or
 * -ETIMEDOUT, and the kit's error says what came; another negative errno of a step. */
static int compare_first_parcel_with_expected(domus_probe *probe, const domus_type *type, int error,
                                              uint64_t within_ns)
{
    char what[96];
    int result = take_steps_until_parcel(probe, within_ns);
    const domi_parcel *first = probe->came.head;

    if (result != 0 && result != -ETIME)
        return result;
    if (first != NULL && first->type == type && first->error == error)
        return 0;
    if (type != NULL)
        snprintf(what, sizeof what, "%s", name_of_type_or_none(type));
    else
        snprintf(what, sizeof what, "the failure %d (%s)", error, strerror(-error));
    write_error_of_expectation(probe, what);
    return first != NULL ? -EBADMSG : -ETIMEDOUT;
}

int domus_probe_expect(domus_probe *probe, const domus_type *type, uint64_t within_ns,
                       void *ret_payload)
{
    int result = compare_first_parcel_with_expected(probe, type, 0, within_ns);

    if (result != 0)
        return result;
    if (ret_payload == NULL)
        domi_parcel_release_payload(probe->came.head);
    else if (type->size != 0)
        memcpy(ret_payload, probe->came.head->payload, type->size);
    remove_expected_parcel(probe);
    return 0;
}

int domus_probe_expect_error(domus_probe *probe, int error, uint64_t within_ns)
{
    int result = compare_first_parcel_with_expected(probe, NULL, error, within_ns);

    if (result == 0)
        remove_expected_parcel(probe);
    return result;
}

int domus_probe_expect_nothing(domus_probe *probe, uint64_t within_ns)
{
    int result = take_steps_until_parcel(probe, within_ns);

    if (result == -ETIME)
        return 0;
    if (result != 0)
        return result;
    write_error_of_expectation(probe, "nothing");
    return -EBADMSG;
}
