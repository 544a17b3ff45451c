/* Names and addresses for the tests of names, each told by a number. */
#ifndef DOMT_NAMING_H
#define DOMT_NAMING_H

#include "house/directory/name_table.h"
#include "tests/support/suite.h"

#include <stdbool.h>
#include <stdio.h>

#define NAME_BYTES (DOMI_NAME_MAX + 1)

static const uint64_t key[2] = {UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)};
static domi_names names;

/* The address is not of a house; the registry never looks there. */
static inline domus_address address_of(uint64_t number)
{
    return (domus_address){(struct domi_house *)(uintptr_t)((number + 1) * 64),
                           (uint32_t)number * 2654435761u + 1};
}

static inline bool same(domus_address a, domus_address b)
{
    return a.house == b.house && a.lease == b.lease;
}

static inline const char *name_of(uint64_t number, char *ret_text)
{
    snprintf(ret_text, NAME_BYTES, "user/%llu", (unsigned long long)number);
    return ret_text;
}

static inline bool is_found(uint64_t number)
{
    char text[NAME_BYTES];
    domus_address address;

    return domi_names_find(&names, name_of(number, text), &address) == 0 &&
           same(address, address_of(number));
}

static inline int put(uint64_t number, uint32_t *ret_slot)
{
    char text[NAME_BYTES];

    return domi_names_put(&names, name_of(number, text), address_of(number), ret_slot);
}

static inline void open_names(uint32_t capacity)
{
    ck_assert_int_eq(domi_names_init(&names, capacity, key), 0);
}

#endif
