/* Grains: a kind and a key lead to an actor that is made at its first message and ends when it is
 * idle; each such actor is a *life* of the grain (domus/grain.h).
 *
 * Each kind has a table of names (name_table.h) that leads from a key to the life, and beside each
 * slot of that table a domi_grain. A name stands in the table from the message that makes the first
 * life until a life has ended and no message waits for the next. So the number of names is the
 * number of living grains, and the capacity of the table is their limit.
 *
 * A sender on the home of the life uses the home lane, as for any actor: there nothing can end the
 * life between the find and the put. All other puts are made under one of the kind's locks, which
 * the key chooses. The end of a life takes the same lock, so a put either comes before it, and goes
 * on to the next life with all mail that the house gives back, or finds the end and is held:
 *
 *     state     a put under the lock                     the end of a life
 * (domi_grain_remove_or_make_next_life()) MAKING    is held                                  ENDED:
 * whoever makes it goes on LIVES     goes to the house; if that refuses,      MAKING, if anything
 * is held and the life because it stops, it is held             was made; else the name is removed
 *     ENDED     is held                                  never
 *
 * Order: messages that a house gives back (`returned`) were put before those that are held
 * (`waiting`), because a house that has begun to stop takes none any more. Both go to the inbox of
 * the next life before any other thread can find its address.
 *
 * At most one life: the next one is spawned by domi_grain_remove_or_make_next_life(), which
 * free_house() calls behind on_stop, or by the sender that has put the name into the table, which
 * nobody else then can. */
#ifndef DOMI_HOUSE_DIRECTORY_GRAIN_H
#define DOMI_HOUSE_DIRECTORY_GRAIN_H

#include "house/directory/name_table.h"
#include "house/message/manager.h"

#include <domus/grain.h>
#include <domus/remote.h>

#include <stdalign.h>

typedef struct domi_grain_kind domi_grain_kind;

/* The state of all kinds of a system whose grains are spread over nodes (grain_parts.h). */
typedef struct domi_grain_parts {
    /* fence of each part of grains; 0: this system makes no life of the part; any thread reads */
    _Atomic uint64_t fences[DOMUS_REMOTE_PARTS];
    /* number of grains of each part that live in this system */
    _Atomic uint32_t living[DOMUS_REMOTE_PARTS];
    /* address for messages to grains that a gateway is to send; constant, as is `here` */
    domus_address elsewhere;
    domus_address here; /* address for messages that a gateway passes on to grains of this system */
    uint32_t threads;   /* number of threads of the system; constant */
    /* Whether each thread has opened each part: DOMUS_REMOTE_PARTS flags for each thread, which
     * alone reads and writes its own. */
    uint8_t opened[];
} domi_grain_parts;

typedef enum domi_grain_state {
    DOMI_GRAIN_MAKING, /* a thread makes a life of the grain */
    DOMI_GRAIN_LIVES,  /* the grain's name leads to its life, which may have begun to stop */
    /* the grain's life has ended before the thread that made it could record it */
    DOMI_GRAIN_ENDED,
} domi_grain_state;

/* A living grain; its index is the slot of its name. Written under the lock of its key, except for
 * the fields that are constant from the put of the name to its removal. */
typedef struct domi_grain {
    alignas(64) domi_grain_kind *kind; /* the kind of the grain; constant */
    /* address of the grain's newest life; nobody before the first life */
    domus_address address;
    /* mail that a life of the grain gave back: a circular list, by its tail */
    domi_node *returned;
    /* mail that is held for the grain's next life: a circular list, by its tail */
    domi_node *waiting;
    uint64_t fence; /* the fence of the grain's part; 0: its kind is not spread; constant */
    uint32_t held;  /* number of messages in `waiting` */
    uint32_t slot;  /* the slot of the grain's name in the table of its kind; constant */
    uint8_t state;  /* state of the grain, a domi_grain_state */
    uint8_t stripe; /* index of the kind's lock for the grain's key; constant */
    /* reason why the grain's life could not be made, if the state is ENDED: a negative errno; 0: it
     * was made */
    int16_t reason;
    uint16_t part;               /* the part to which the grain's key belongs; constant */
    char key[DOMI_NAME_MAX + 1]; /* the grain's key; constant */
} domi_grain;

static_assert(sizeof(domi_grain) == 128, "two cache lines");
static_assert(DOMI_NAME_MAX == DOMUS_GRAIN_KEY_MAX, "keys are names");

#define DOMI_GRAIN_STRIPES 64u /* number of locks of each kind */

/* A lock of a kind of grains, on cache lines of its own. */
typedef struct domi_grain_stripe {
    alignas(64) domi_spinlock lock;
    /* unused, keeps the next lock off these cache lines */
    unsigned char apart[DOMI_LINES - sizeof(domi_spinlock)];
} domi_grain_stripe;

/* A kind of grains, as it was opened. All fields are constant but `parts` and `stripes`; the
 * contents of `names` and `grains` change, too. */
struct domi_grain_kind {
    /* state of the spread kinds; NULL: the grains of this kind are not spread over nodes */
    _Atomic(domi_grain_parts *) parts;
    domus_grain_kind table; /* the user's table; `table.name` points to `name` below */
    domi_names names;       /* the keys of this kind's grains that live */
    /* array of this kind's grains, with the slots of their names as indices */
    domi_grain *grains;
    size_t grains_bytes;   /* bytes that are mapped for `grains` */
    domi_grain_kind *next; /* the next kind of the system */
    char name[DOMI_NAME_MAX + 1];
    domi_grain_stripe stripes[DOMI_GRAIN_STRIPES];
};

/* All kinds of grains of a system. */
typedef struct domi_grains {
    domi_spinlock lock;     /* lock that guards `first` and `count` */
    domi_grain_kind *first; /* the first kind of grains; `next` leads to the others */
    uint32_t count;         /* number of kinds of grains in the list */
    /* most kinds of grains; this field and those below are constant, except `parts` */
    uint32_t kinds_max;
    uint32_t living_max; /* most grains of a kind that sets no limit of its own */
    uint64_t key[2];     /* secret and random key of the hashes of grains' keys */
    /* state of spread kinds; NULL: no kind is spread over nodes */
    _Atomic(domi_grain_parts *) parts;
} domi_grains;

/* --- kinds (grain_kind.c) ----------------------------------------------------------------------
 */

void domi_grains_init(domi_grains *grains, uint32_t kinds_max, uint32_t living_max,
                      const uint64_t key[2]);

/* Free all kinds of grains, when no thread uses them any more and no grain lives. A zeroed or
 * finished registry is accepted. */
void domi_grains_fini(domi_grains *grains);

/* Find the kind of grains with this name. Returns NULL if there is none. Any thread. */
domi_grain_kind *domi_grain_kind_find(domi_grains *grains, const char *name);

/* Returns the first kind of grains, from which `next` leads to the others; NULL: there is none.
 * Kinds are added at the front and stay. Any thread. */
domi_grain_kind *domi_grain_kind_first(domi_grains *grains);

/* Open a kind of grains as domus_grain_open() does, on the thread of `manager`. */
int domi_grain_open_kind(domi_manager *manager, const domus_grain_kind *table,
                         domi_grain_kind **ret_kind);

/* --- messages (grain.c) ------------------------------------------------------------------------
 */

/* Put `node`, an ask or a notice as `mail` says, to the grain `key` of this system; a grain that
 * does not live is made. `near` is the home of the sender. `ret_address` gets the life that the
 * message is for, or nobody if it waits for the first life. Returns 0; the errors of
 * domus_grain_ask(), and then the caller still owns the node. Owner. */
int domi_grain_put_in_this_system(domi_manager *manager, domi_manager *near, domi_grain_kind *kind,
                                  const char *key, domi_node *node, uint32_t mail,
                                  domus_address *ret_address);

/* Returns the part of grains to which a key belongs, for a kind that is spread over nodes; -EINVAL
 * if the key is not valid (grain.c). */
int domi_grain_part_of_key(const domi_grain_kind *kind, const char *key);

/* Send a notice to a grain as domus_grain_notice() does, from the thread of `manager`; `sender` may
 * be NULL. */
int domi_grain_send_notice(domi_manager *manager, const domi_house *sender, domi_grain_kind *kind,
                           const char *key, const domus_type *type, const void *payload);

/* Move the asks and notices out of a house that stops to its grain, for the next life, if the house
 * is a life of a grain (domi_doors.return_mail). Home. */
void domi_grain_take_mail_of_ending_life(domi_manager *manager, domi_house *house);

/* End a life of a grain, after its on_stop has returned: make the next life if mail waits for it,
 * else remove the grain. Does nothing for other houses. Home. */
void domi_grain_remove_or_make_next_life(domi_manager *manager, domi_house *house);

#endif
