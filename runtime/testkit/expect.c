/* An expectation of a probe takes steps and lets time pass until the probe has received something,
 * and compares that with what the test expects. */
#include "runtime/testkit/parts.h"

#include "base/memory.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool has_something(const void *probe_)
{
    const domus_probe *probe = probe_;

    return probe->came.head != NULL || probe->lost;
}

/* Wait until the probe has received something. Returns 0 if it has; -ETIME if nothing came in
 * that time; another negative errno on a failure, which the kit's error then describes,
 * except for -EBUSY. */
static int wait_for_parcel(domus_probe *probe, uint64_t within_ns)
{
    domus_testkit *kit = probe->kit;
    uint64_t now_ns = domus_testkit_now_ns(kit);
    uint64_t until_ns = within_ns < UINT64_MAX - 1 - now_ns ? now_ns + within_ns : UINT64_MAX - 1;

    if (kit->stepping)
        return -EBUSY;
    int result = domi_testkit_pass(kit, has_something, probe, until_ns);
    if (result == 0 && probe->lost) {
        probe->lost = false;
        snprintf(kit->error, sizeof kit->error, "no memory for what probe %u received",
                 probe->number);
        return -ENOMEM;
    }
    return result;
}

static const char *get_type_name(const domus_type *type)
{
    return type->name != NULL ? type->name : "(no name)";
}

/* Write to the kit's error: "probe 1 expected <what>, but <the first parcel> came first". */
static void list_came(domus_probe *probe, const char *what)
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
                 probe->number, what, first->kind, get_type_name(first->type));
}

/* Take the first parcel off the list, because the test expected it. An ask goes to the list of
 * those that the test has to answer; other parcels are freed. */
static void take_first_parcel(domus_probe *probe)
{
    domi_parcel *one = domi_parcels_take(&probe->came);

    probe->sender = one->sender;
    if (one->is_ask)
        domi_parcels_put(&probe->asks, one);
    else
        domi_memory_free(one);
}

/* Returns 0 if the first parcel is of `type`, or, if `type` is NULL, is a failure with `error`.
 * Otherwise it returns a negative errno, and the kit's error says what came. */
static int expect_probe(domus_probe *probe, const domus_type *type, int error, uint64_t within_ns)
{
    char what[96];
    int result = wait_for_parcel(probe, within_ns);
    const domi_parcel *first = probe->came.head;

    if (result != 0 && result != -ETIME)
        return result;
    if (first != NULL && first->type == type && first->error == error)
        return 0;
    if (type != NULL)
        snprintf(what, sizeof what, "%s", get_type_name(type));
    else
        snprintf(what, sizeof what, "the failure %d (%s)", error, strerror(-error));
    list_came(probe, what);
    return first != NULL ? -EBADMSG : -ETIMEDOUT;
}

int domus_probe_expect(domus_probe *probe, const domus_type *type, uint64_t within_ns,
                       void *ret_payload)
{
    int result = expect_probe(probe, type, 0, within_ns);

    if (result != 0)
        return result;
    if (ret_payload == NULL)
        domi_parcel_release(probe->came.head);
    else if (type->size != 0)
        memcpy(ret_payload, probe->came.head->payload, type->size);
    take_first_parcel(probe);
    return 0;
}

int domus_probe_expect_error(domus_probe *probe, int error, uint64_t within_ns)
{
    int result = expect_probe(probe, NULL, error, within_ns);

    if (result == 0)
        take_first_parcel(probe);
    return result;
}

int domus_probe_expect_nothing(domus_probe *probe, uint64_t within_ns)
{
    int result = wait_for_parcel(probe, within_ns);

    if (result == -ETIME)
        return 0;
    if (result != 0)
        return result;
    list_came(probe, "nothing");
    return -EBADMSG;
}
