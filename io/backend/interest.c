/* Keeps the interests of the epoll backend (interest.h) in a table, by descriptor. The table
 * doubles up to the largest descriptor, and an interest is freed when its descriptor is closed, so
 * there are never more interests than descriptors. */
#include "io/backend/interest.h"

#include "base/memory.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* number of descriptors for which the first table of interests has room; it doubles when it is
 * full */
#define TABLE_FIRST 64u
#define SLAB_BYTES  (16u * 1024) /* bytes that a slab of interests or polls maps at a time */
#define POLL_BYTES  64u /* objects of the slabs of interests and polls are whole cache lines */

static_assert(sizeof(domi_interest) == 64 && sizeof(domi_poll) <= POLL_BYTES, "a cache line each");

int domi_interests_init(domi_interests *interests)
{
    int fd = epoll_create1(EPOLL_CLOEXEC);

    if (fd < 0)
        return -errno;
    *interests = (domi_interests){.epoll_fd = fd};
    domi_slab_init(&interests->interest_slab, sizeof(domi_interest), 8, SLAB_BYTES);
    domi_slab_init(&interests->poll_slab, POLL_BYTES, 8, SLAB_BYTES);
    return 0;
}

void domi_interests_fini(domi_interests *interests)
{
    (void)close(interests->epoll_fd);
    domi_memory_free(interests->of_fd);
    domi_slab_fini(&interests->interest_slab);
    domi_slab_fini(&interests->poll_slab);
}

domi_interest *domi_interest_find_reported(const domi_interests *interests, uint64_t data)
{
    domi_interest *interest = domi_interest_find(interests, (int)(uint32_t)data);

    return interest != NULL && interest->generation == data >> 32 ? interest : NULL;
}

static int grow_interest_table(domi_interests *interests, uint32_t fd)
{
    uint32_t capacity = interests->capacity == 0 ? TABLE_FIRST : interests->capacity;

    while (capacity <= fd)
        capacity *= 2;
    domi_interest **of_fd = domi_memory_new(capacity * sizeof(domi_interest *));
    if (of_fd == NULL)
        return -ENOMEM;
    if (interests->capacity != 0)
        memcpy(of_fd, interests->of_fd, interests->capacity * sizeof(domi_interest *));
    domi_memory_free(interests->of_fd);
    interests->of_fd = of_fd;
    interests->capacity = capacity;
    return 0;
}

int domi_interest_find_or_make(domi_interests *interests, int fd, domi_interest **ret_interest)
{
    domi_interest *interest = domi_interest_find(interests, fd);

    if (interest == NULL) {
        if (fd < 0)
            return -EBADF;
        if ((uint32_t)fd >= interests->capacity &&
            grow_interest_table(interests, (uint32_t)fd) != 0)
            return -ENOMEM;
        interest = domi_slab_take_object(&interests->interest_slab);
        if (interest == NULL)
            return -ENOMEM;
        *interest = (domi_interest){.fd = fd, .generation = ++interests->generation};
        interests->of_fd[fd] = interest;
    }
    *ret_interest = interest;
    return 0;
}

static uint32_t get_wanted_events(const domi_interest *interest)
{
    uint32_t events = interest->output_data != 0 ? EPOLLOUT : 0;

    if (interest->input_data != 0)
        events |= interest->input == DOMI_INPUT_POLL ? EPOLLIN | EPOLLET : EPOLLIN;
    for (const domi_poll *poll = interest->polls; poll != NULL; poll = poll->next)
        events |= poll->events | EPOLLONESHOT;
    return events;
}

/* Tell epoll_ctl(2) which events to report about the descriptor. Returns 0 or a negative errno. */
static int change_epoll_registration(domi_interests *interests, const domi_interest *interest,
                                     int operation, uint32_t events)
{
    struct epoll_event event = {
        .events = events,
        .data.u64 = (uint64_t)interest->generation << 32 | (uint32_t)interest->fd,
    };

    interests->has_told = true;
    return epoll_ctl(interests->epoll_fd, operation, interest->fd, &event) == 0 ? 0 : -errno;
}

static int register_events_with_epoll(domi_interests *interests, domi_interest *interest,
                                      uint32_t events)
{
    int result = change_epoll_registration(
        interests, interest, interest->told != 0 ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, events);

    /* the owner has closed the descriptor, and its number stands for another file now */
    if (result == -ENOENT)
        result = change_epoll_registration(interests, interest, EPOLL_CTL_ADD, events);
    else if (result == -EEXIST)
        result = change_epoll_registration(interests, interest, EPOLL_CTL_MOD, events);
    if (result == 0)
        interest->told = events;
    /* epoll_ctl(2) returns ENOSPC when the limit fs.epoll.max_user_watches is reached */
    return result == -ENOSPC ? -ENOMEM : result;
}

int domi_interest_register_exact_events(domi_interests *interests, domi_interest *interest)
{
    uint32_t events = get_wanted_events(interest);

    if (events != 0)
        return register_events_with_epoll(interests, interest, events);
    if (interest->told == EPOLLONESHOT)
        return 0;
    /* A registration without events would still report errors, again and again, so it is
     * removed. */
    if (interest->told != 0)
        (void)change_epoll_registration(interests, interest, EPOLL_CTL_DEL, 0);
    interest->told = 0;
    return 0;
}

int domi_interest_register_if_events_grow(domi_interests *interests, domi_interest *interest)
{
    uint32_t events = get_wanted_events(interest);

    return (events & ~interest->told) != 0
               ? domi_interest_register_exact_events(interests, interest)
               : 0;
}

void domi_interest_record_epoll_report(domi_interest *interest)
{
    if ((interest->told & EPOLLONESHOT) != 0)
        /* a one-shot registration that has reported stays, but reports nothing */
        interest->told = EPOLLONESHOT;
}

int domi_interest_add_one_shot_poll(domi_interests *interests, domi_interest *interest,
                                    uint32_t events, uint64_t user_data)
{
    domi_poll *poll = domi_slab_take_object(&interests->poll_slab);

    if (poll == NULL)
        return -ENOMEM;
    *poll = (domi_poll){.next = interest->polls, .user_data = user_data, .events = events};
    interest->polls = poll;
    int result = domi_interest_register_exact_events(interests, interest);
    if (result != 0)
        domi_interest_remove_one_shot_poll(interests, &interest->polls);
    return result;
}

void domi_interest_remove_one_shot_poll(domi_interests *interests, domi_poll **place)
{
    domi_poll *poll = *place;

    *place = poll->next;
    domi_slab_put_object(&interests->poll_slab, poll);
}

void domi_interest_forget_descriptor(domi_interests *interests, int fd)
{
    domi_interest *interest = domi_interest_find(interests, fd);

    if (interest == NULL)
        return;
    /* The registration with epoll is removed, because a close does not end it while a forked
     * process still has the descriptor. */
    if (interest->told != 0)
        (void)change_epoll_registration(interests, interest, EPOLL_CTL_DEL, 0);
    while (interest->polls != NULL)
        domi_interest_remove_one_shot_poll(interests, &interest->polls);
    interests->of_fd[fd] = NULL;
    domi_slab_put_object(&interests->interest_slab, interest);
}
