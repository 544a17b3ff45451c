/* This file keeps one record for each name that is looked up or was looked up a short time ago.
 *
 *     QUEUED  a thread will take it; somebody waits for it
 *     RUNNING a thread looks it up; those who waited may have gone
 *     KNOWN   the result is there, until `expires_ns`
 *
 * All records are under `mutex`. A thread holds the mutex while it tells those who wait, so after
 * domi_resolver_close() no thread uses the system. The mutex of the outside is taken within it. */
#include "runtime/outside/resolver.h"

#include "base/check.h"
#include "base/memory.h"
#include "house/message/mailbox.h"
#include "house/message/pool.h"
#include "runtime/os/threads.h"
#include "runtime/outside/visit.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>

#define UNKNOWN_SHARE 5u /* that a name has no address is remembered for cacheTime / 5 */

typedef enum record_state {
    QUEUED,
    RUNNING,
    KNOWN,
} record_state;

typedef struct record {
    struct record *next; /* next record of a name, in the order in which the records were made */
    record_state state;
    domi_lookup *lookups; /* lookups of the actors that wait for the record's name */
    uint64_t expires_ns;  /* time at which a KNOWN record is forgotten, in nanoseconds */
    int result;           /* when KNOWN: number of entries in `found`, or a negative errno */
    char name[DOMI_HOST_MAX + 1];
    domus_endpoint found[DOMI_FOUND_MAX]; /* name's addresses, which its lookup thread writes */
} record;

struct domi_resolver {
    pthread_mutex_t mutex;
    domus_system *system; /* system of the resolver; NULL: the resolver is closed */
    uint32_t users;       /* number of users: the system, and each thread that looks up names */
    uint32_t running;     /* number of threads that look up names now */
    uint32_t queued;      /* number of records that are QUEUED */
    uint32_t known;       /* number of records that are KNOWN */
    record *records;
    domi_look_up *look_up;
    void *context;
    bool at_once;
};

/* --- lookups by the C library ----------------------------------------------------------------- */

static int errno_of_getaddrinfo_error(int error, int number)
{
    switch (error) {
    case EAI_AGAIN:
        return -EAGAIN;
    case EAI_MEMORY:
        return -ENOMEM;
    case EAI_SYSTEM:
        return number != 0 ? -number : -EIO;
    case EAI_NONAME:
    case EAI_NODATA:
    case EAI_ADDRFAMILY:
        return -ENODATA;
    default:
        return -EIO;
    }
}

static int look_up_by_libc(void *context, const char *name, domus_endpoint *ret_found, uint32_t max)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    uint32_t count = 0;

    (void)context;
    errno = 0;
    int error = getaddrinfo(name, NULL, &hints, &list);
    if (error != 0)
        return errno_of_getaddrinfo_error(error, errno);
    for (const struct addrinfo *one = list; one != NULL && count < max; one = one->ai_next) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)one->ai_addr;
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)one->ai_addr;
        domus_endpoint found = {.family = (uint16_t)one->ai_family};
        if (one->ai_family == AF_INET) {
            found.size = 4;
            memcpy(found.bytes, &v4->sin_addr, 4);
        } else if (one->ai_family == AF_INET6) {
            found.size = 16;
            found.scope = v6->sin6_scope_id;
            memcpy(found.bytes, &v6->sin6_addr, 16);
        }
        if (found.size != 0)
            ret_found[count++] = found;
    }
    freeaddrinfo(list);
    return count != 0 ? (int)count : -ENODATA;
}

/* Fail the lookup of a name in a simulation whose test has set no function for lookups. */
static int fail_lookup_of_simulation(void *context, const char *name, domus_endpoint *ret_found,
                                     uint32_t max)
{
    (void)context, (void)name, (void)ret_found, (void)max;
    return -EOPNOTSUPP;
}

/* --- records, under the mutex ----------------------------------------------------------------- */

static void unlink_lookup_of_actor(domi_lookup *lookup)
{
    DOMI_CHECK(lookup->place != NULL);
    *lookup->place = lookup->next;
    if (lookup->next != NULL)
        lookup->next->place = lookup->place;
    lookup->place = NULL;
}

static void unlink_all_lookups_of_record(const record *of)
{
    while (of->lookups != NULL)
        unlink_lookup_of_actor(of->lookups);
}

static void link_lookup_to_record(record *of, domi_lookup *lookup)
{
    lookup->next = of->lookups;
    lookup->place = &of->lookups;
    if (lookup->next != NULL)
        lookup->next->place = &lookup->next;
    of->lookups = lookup;
}

static void remove_record_of_name(domi_resolver *resolver, record *old)
{
    record **place = &resolver->records;

    while (*place != old)
        place = &(*place)->next;
    *place = old->next;
    resolver->queued -= old->state == QUEUED;
    resolver->known -= old->state == KNOWN;
    /* no meter counts records, but the calling thread may be one of the system, which has one */
    domi_meter *counted = domi_memory_set_meter(NULL);
    domi_memory_free(old);
    (void)domi_memory_set_meter(counted);
}

/* Returns the record of a name, and removes expired records on the way; NULL: there is none. */
static record *find_unexpired_record(domi_resolver *resolver, const char *name, uint64_t now_ns)
{
    record *next;

    for (record *one = resolver->records; one != NULL; one = next) {
        next = one->next;
        if (one->state == KNOWN && one->expires_ns <= now_ns)
            remove_record_of_name(resolver, one);
        else if (strcmp(one->name, name) == 0)
            return one;
    }
    return NULL;
}

/* Returns the oldest record of a name in the given state; NULL: there is none. */
static record *find_oldest_record(const domi_resolver *resolver, record_state state)
{
    record *one = resolver->records;

    while (one != NULL && one->state != state)
        one = one->next;
    return one;
}

static record *add_record_of_name(domi_resolver *resolver, const char *name)
{
    record **place = &resolver->records;
    record *one = domi_memory_new(sizeof *one);

    if (one == NULL)
        return NULL;
    memcpy(one->name, name, strlen(name) + 1);
    while (*place != NULL)
        place = &(*place)->next;
    *place = one;
    resolver->queued++;
    return one;
}

/* Remove the QUEUED records of names for which no actor waits any more. */
static void remove_names_nobody_waits_for(domi_resolver *resolver)
{
    record *next;

    for (record *one = resolver->records; one != NULL; one = next) {
        next = one->next;
        if (one->state == QUEUED && one->lookups == NULL)
            remove_record_of_name(resolver, one);
    }
}

/* --- results, under the mutex ----------------------------------------------------------------- */

/* Copy the result of a name's record into an actor's lookup, to memory of the system. */
static void copy_result_to_lookup(domi_lookup *lookup, const record *known)
{
    uint32_t count = known->result > 0 ? (uint32_t)known->result : 0;

    lookup->error = known->result < 0 ? known->result : 0;
    if (count == 0)
        return;
    lookup->found = domi_memory_new(count * sizeof *lookup->found);
    if (lookup->found == NULL) {
        lookup->error = -ENOMEM;
        return;
    }
    memcpy(lookup->found, known->found, count * sizeof *lookup->found);
    lookup->count = count;
}

/* Send the result of a lookup to every actor that waits for the name. If there is no memory for
 * an actor's event, that actor waits until its time-out. */
static void send_result_to_actors(domi_resolver *resolver, record *known)
{
    domi_manager *outside = &resolver->system->outside;
    domi_visit visit;

    if (domi_outside_enter(resolver->system, DOMI_LAST_TO_SEND, &visit) != 0) {
        unlink_all_lookups_of_record(known); /* the waiting actors end with the system */
        return;
    }
    while (known->lookups != NULL) {
        domi_lookup *lookup = known->lookups;
        domus_address asker = lookup->asker;
        domi_envelope *envelope = domi_envelope_new(outside, sizeof *envelope);

        unlink_lookup_of_actor(lookup);
        copy_result_to_lookup(lookup, known);
        if (envelope == NULL)
            continue;
        envelope->type = &domi_resolved_type;
        envelope->sender = NULL;
        envelope->sender_lease = 0;
        /* after this put the lookup belongs to the actor that gets the event */
        if (domi_mailbox_put(outside, asker, &envelope->node, DOMI_EVENT) != 0)
            domi_pool_free_object(outside, &envelope->node);
    }
    domi_outside_leave(resolver->system, &visit);
}

static void finish_lookup_of_name(domi_resolver *resolver, record *done, int result)
{
    if (resolver->system == NULL) {
        remove_record_of_name(resolver, done);
        return;
    }
    uint64_t keep_ns = DOMI_LIVE(resolver->system, connect.resolve.cache_time_ns);
    done->result = result;
    done->state = KNOWN;
    done->expires_ns =
        domi_clock_now(&resolver->system->clock) + (result < 0 ? keep_ns / UNKNOWN_SHARE : keep_ns);
    resolver->known++;
    send_result_to_actors(resolver, done);
    if (result < 0 && result != -ENODATA)
        /* failures are not remembered: the next connect retries */
        remove_record_of_name(resolver, done);
    else if (resolver->known > DOMI_LIVE(resolver->system, connect.resolve.cache_max))
        remove_record_of_name(resolver, find_oldest_record(resolver, KNOWN));
}

/* --- lookup threads --------------------------------------------------------------------------- */

/* Release one use of the resolver, whose last user frees it, and unlock its locked mutex. */
static void unlock_and_release_use_of_resolver(domi_resolver *resolver)
{
    bool is_last = --resolver->users == 0;

    pthread_mutex_unlock(&resolver->mutex);
    if (!is_last)
        return;
    pthread_mutex_destroy(&resolver->mutex);
    domi_memory_free(resolver);
}

static void *run_thread_that_looks_up_names(void *argument)
{
    domi_resolver *resolver = argument;

    pthread_mutex_lock(&resolver->mutex);
    for (record *one = find_oldest_record(resolver, QUEUED); one != NULL;
         one = find_oldest_record(resolver, QUEUED)) {
        if (one->lookups == NULL) { /* the actors that waited for this name have given up */
            remove_record_of_name(resolver, one);
            continue;
        }
        one->state = RUNNING;
        resolver->queued--;
        pthread_mutex_unlock(&resolver->mutex);
        int result = resolver->look_up(resolver->context, one->name, one->found, DOMI_FOUND_MAX);
        pthread_mutex_lock(&resolver->mutex);
        finish_lookup_of_name(resolver, one, result);
    }
    resolver->running--;
    unlock_and_release_use_of_resolver(resolver);
    return NULL;
}

/* Start one more thread that looks up names. Returns 0; -EAGAIN if the kernel makes none. */
static int start_thread_that_looks_up(domi_resolver *resolver)
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t before;

    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    domi_signals_block_for_new_thread(&before);
    int result = pthread_create(&thread, &attributes, run_thread_that_looks_up_names, resolver);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (result != 0)
        return -EAGAIN;
    resolver->running++;
    resolver->users++;
    return 0;
}

/* --- names of this machine -------------------------------------------------------------------- */

/* True for "localhost" and each name below it. These names are loopback addresses without a look at
 * a file or a name server, which may be missing or say otherwise (RFC 6761, 6.3). */
static bool is_localhost_name(const char *name)
{
    static const char local[] = "localhost";
    const size_t length = sizeof local - 1;
    size_t size = strlen(name);

    size -= size != 0 && name[size - 1] == '.';
    return size >= length && strncasecmp(name + size - length, local, length) == 0 &&
           (size == length || name[size - length - 1] == '.');
}

/* Answer a lookup of a localhost name, with IPv6 first as getaddrinfo(3) does (RFC 6724). */
static int answer_lookup_of_localhost(domi_lookup *lookup)
{
    const record loopback = {.state = KNOWN,
                             .result = 2,
                             .found = {{.family = AF_INET6, .size = 16, .bytes = {[15] = 1}},
                                       {.family = AF_INET, .size = 4, .bytes = {127, 0, 0, 1}}}};

    copy_result_to_lookup(lookup, &loopback);
    return lookup->error;
}

/* --- lookups for actors ----------------------------------------------------------------------- */

/* Queue a name for a lookup thread. Returns its record; NULL with the errno in `ret_error`. */
static record *add_queued_record_of_name(domi_resolver *resolver, const char *name, int *ret_error)
{
    record *one = NULL;

    if (resolver->queued >= DOMI_LIVE(resolver->system, connect.resolve.queue_max))
        remove_names_nobody_waits_for(resolver);
    if (resolver->queued >= DOMI_LIVE(resolver->system, connect.resolve.queue_max)) {
        *ret_error = -ENOBUFS;
        return NULL;
    }
    /* records may outlive the system, so they do not use its allocator and meter */
    const domus_allocator *before = domi_memory_set_allocator(NULL);
    domi_meter *counted = domi_memory_set_meter(NULL);
    one = add_record_of_name(resolver, name);
    *ret_error = one != NULL ? 0 : -ENOMEM;
    if (one != NULL && resolver->running < DOMI_LIVE(resolver->system, connect.resolve.threads_max))
        *ret_error = start_thread_that_looks_up(resolver);
    if (*ret_error != 0 && one != NULL && resolver->running == 0) {
        remove_record_of_name(resolver, one);
        one = NULL;
    }
    (void)domi_memory_set_meter(counted);
    (void)domi_memory_set_allocator(before);
    return one;
}

static int resolve_name_in_thread(domi_resolver *resolver, domi_lookup *lookup, const char *name)
{
    record known = {.state = KNOWN};

    known.result = resolver->look_up(resolver->context, name, known.found, DOMI_FOUND_MAX);
    copy_result_to_lookup(lookup, &known);
    return lookup->error;
}

int domi_resolver_begin_lookup(domi_manager *manager, struct domi_lookup *lookup, const char *name)
{
    const domus_system *system = manager->system;
    domi_resolver *resolver = system->resolver;
    int result = 0;

    if (resolver == NULL)
        return -EOPNOTSUPP;
    if (is_localhost_name(name))
        return answer_lookup_of_localhost(lookup);
    if (resolver->at_once)
        return resolve_name_in_thread(resolver, lookup, name);
    pthread_mutex_lock(&resolver->mutex);
    record *one = NULL;
    if (resolver->system == NULL)
        result = -ESHUTDOWN;
    else if ((one = find_unexpired_record(resolver, name, manager->now_ns)) == NULL)
        one = add_queued_record_of_name(resolver, name, &result);
    if (one != NULL && one->state == KNOWN) {
        copy_result_to_lookup(lookup, one);
        result = lookup->error;
    } else if (one != NULL) {
        link_lookup_to_record(one, lookup);
        result = -EINPROGRESS;
    }
    pthread_mutex_unlock(&resolver->mutex);
    return result;
}

void domi_resolver_withdraw_lookup(domi_manager *manager, struct domi_lookup *lookup)
{
    const domus_system *system = manager->system;
    domi_resolver *resolver = system->resolver;

    if (resolver == NULL || resolver->at_once)
        return;
    pthread_mutex_lock(&resolver->mutex);
    if (lookup->place != NULL)
        unlink_lookup_of_actor(lookup);
    pthread_mutex_unlock(&resolver->mutex);
}

void domi_resolver_count_names(domi_resolver *resolver, uint64_t *ret_running, uint64_t *ret_queued)
{
    pthread_mutex_lock(&resolver->mutex);
    *ret_running = resolver->running, *ret_queued = resolver->queued;
    pthread_mutex_unlock(&resolver->mutex);
}

/* --- life of the resolver --------------------------------------------------------------------- */

static domi_look_up *choose_default_look_up_function(const domi_resolver *resolver)
{
    return resolver->at_once ? fail_lookup_of_simulation : look_up_by_libc;
}

int domi_resolver_new(domus_system *system, domi_resolver **ret_resolver)
{
    const domus_allocator *before = domi_memory_set_allocator(NULL);
    domi_resolver *resolver = domi_memory_new(sizeof *resolver);

    (void)domi_memory_set_allocator(before);
    if (resolver == NULL)
        return -ENOMEM;
    pthread_mutex_init(&resolver->mutex, NULL);
    resolver->system = system;
    resolver->users = 1;
    resolver->at_once = system->simulator != NULL;
    resolver->look_up = choose_default_look_up_function(resolver);
    *ret_resolver = resolver;
    return 0;
}

void domi_resolver_set_look_up(domi_resolver *resolver, domi_look_up *look_up, void *context)
{
    pthread_mutex_lock(&resolver->mutex);
    resolver->look_up = look_up != NULL ? look_up : choose_default_look_up_function(resolver);
    resolver->context = context;
    pthread_mutex_unlock(&resolver->mutex);
}

void domi_resolver_close(domi_resolver *resolver)
{
    record *next;

    pthread_mutex_lock(&resolver->mutex);
    for (record *one = resolver->records; one != NULL; one = next) {
        next = one->next;
        unlink_all_lookups_of_record(one);
        if (one->state != RUNNING)
            remove_record_of_name(resolver, one);
    }
    resolver->system = NULL;
    pthread_mutex_unlock(&resolver->mutex);
}

void domi_resolver_free(domi_resolver *resolver)
{
    if (resolver == NULL)
        return;
    domi_resolver_close(resolver);
    pthread_mutex_lock(&resolver->mutex);
    unlock_and_release_use_of_resolver(resolver);
}
