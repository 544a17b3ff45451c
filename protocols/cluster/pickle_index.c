/* The index of a program's picklers: two hash tables with open addressing, one by the type and one
 * by the hash of the type's name, in one block of memory. They are at most half full. */
#include "protocols/cluster/pickle.h"

#include <stdio.h>
#include <stdlib.h>

struct domus_picklers {
    const domus_pickler *list;
    uint32_t count;
    uint32_t mask; /* mask by which a hash becomes a place in either hash table */
    /* hashes of the types' names, in the order of the program's list of picklers */
    uint64_t *hashes;
    /* hash table by type: an index in the list of picklers plus one; 0: a free place */
    uint16_t *by_type;
    uint16_t *by_hash;
};

static uint32_t place_of_type_in_table(const domus_picklers *picklers, const domus_type *type)
{
    uint64_t mixed = (uint64_t)(uintptr_t)type * UINT64_C(0x9e3779b97f4a7c15);

    return (uint32_t)(mixed >> 32) & picklers->mask;
}

/* Returns the place of a pickler's hash in the hash table. Strangers may send any hash; for an
 * unknown one the search ends at the next free place. */
static uint32_t place_of_hash_in_table(const domus_picklers *picklers, uint64_t hash)
{
    return (uint32_t)(hash ^ (hash >> 32)) & picklers->mask;
}

uint64_t domus_pickle_hash(const char *name)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (const char *at = name; *at != '\0'; at++)
        hash = (hash ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
    return hash;
}

uint64_t domi_pickle_hash_of_listed_pickler(const domus_picklers *picklers,
                                            const domus_pickler *pickler)
{
    return picklers->hashes[pickler - picklers->list];
}

const domus_pickler *domus_pickler_of_type(const domus_picklers *picklers, const domus_type *type)
{
    uint32_t place = place_of_type_in_table(picklers, type);

    for (; picklers->by_type[place] != 0; place = (place + 1) & picklers->mask) {
        const domus_pickler *pickler = &picklers->list[picklers->by_type[place] - 1];
        if (pickler->type == type)
            return pickler;
    }
    return NULL;
}

const domus_pickler *domus_pickler_of_hash(const domus_picklers *picklers, uint64_t hash)
{
    uint32_t place = place_of_hash_in_table(picklers, hash);

    for (; picklers->by_hash[place] != 0; place = (place + 1) & picklers->mask) {
        uint32_t index = picklers->by_hash[place] - 1u;
        if (picklers->hashes[index] == hash)
            return &picklers->list[index];
    }
    return NULL;
}

static void put_pickler_into_hash_table(const domus_picklers *picklers, uint16_t *places,
                                        uint32_t place, uint32_t index)
{
    while (places[place] != 0)
        place = (place + 1) & picklers->mask;
    places[place] = (uint16_t)(index + 1);
}

/* Check a pickler of the program's list, and add it to both hash tables. */
static int add_pickler_to_index(domus_picklers *picklers, uint32_t index, char *error,
                                size_t error_size)
{
    const domus_pickler *pickler = &picklers->list[index];
    const char *name = domi_pickler_name_on_wire(pickler);
    char text[DOMUS_PICKLE_ERROR_MAX] = "";

    if (name == NULL) {
        (void)snprintf(error, error_size, "type %u has no name", index);
        return -EINVAL;
    }
    int result = domi_pickler_check(pickler, text, sizeof text);
    uint64_t hash = result == 0 ? domus_pickle_hash(name) : 0;
    if (result == 0 && domus_pickler_of_type(picklers, pickler->type) != NULL) {
        (void)snprintf(text, sizeof text, "the type is there twice");
        result = -EINVAL;
    }
    const domus_pickler *other = result == 0 ? domus_pickler_of_hash(picklers, hash) : NULL;
    if (other != NULL) {
        (void)snprintf(text, sizeof text, "its name has the same hash as \"%s\"",
                       domi_pickler_name_on_wire(other));
        result = -EINVAL;
    }
    if (result != 0) {
        if (error_size != 0)
            (void)snprintf(error, error_size, "%s: %s", name, text);
        return result;
    }
    picklers->hashes[index] = hash;
    put_pickler_into_hash_table(picklers, picklers->by_type,
                                place_of_type_in_table(picklers, pickler->type), index);
    put_pickler_into_hash_table(picklers, picklers->by_hash, place_of_hash_in_table(picklers, hash),
                                index);
    return 0;
}

int domus_picklers_new(const domus_pickler *list, char *error, size_t error_size,
                       domus_picklers **ret_picklers)
{
    uint32_t count = 0;
    uint32_t places = 2;

    while (list[count].type != NULL) {
        if (count++ == DOMUS_PICKLERS_MAX) {
            if (error_size != 0)
                (void)snprintf(error, error_size, "more than %u types", DOMUS_PICKLERS_MAX);
            return -E2BIG;
        }
    }
    while (places < 2 * count)
        places *= 2;
    domus_picklers *picklers = calloc(1, sizeof *picklers + count * sizeof *picklers->hashes +
                                             2 * (size_t)places * sizeof *picklers->by_type);
    if (picklers == NULL) {
        if (error_size != 0)
            (void)snprintf(error, error_size, "no memory");
        return -ENOMEM;
    }
    picklers->list = list;
    picklers->count = count;
    picklers->mask = places - 1;
    picklers->hashes = (uint64_t *)(picklers + 1);
    picklers->by_type = (uint16_t *)(picklers->hashes + count);
    picklers->by_hash = picklers->by_type + places;
    for (uint32_t i = 0; i < count; i++) {
        int result = add_pickler_to_index(picklers, i, error, error_size);
        if (result != 0) {
            domus_picklers_free(picklers);
            return result;
        }
    }
    *ret_picklers = picklers;
    return 0;
}

void domus_picklers_free(domus_picklers *picklers)
{
    free(picklers);
}
