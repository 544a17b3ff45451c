/* The statements that a connection has prepared. They are found by the address of the program's
 * constant, and are listed in the order of their last use. */
#include "protocols/pg/pg.h"

#include <stdio.h>
#include <stdlib.h>

#define BUCKETS_FIRST 16u

static uint32_t hash_statement(const domus_sql_statement *of)
{
    uint64_t hash = (uint64_t)(uintptr_t)of * UINT64_C(0x9e3779b97f4a7c15);

    return (uint32_t)(hash >> 32);
}

static domi_pg_statement **bucket_of_statement(const domi_pg_statements *statements,
                                               const domus_sql_statement *of)
{
    return &statements->buckets[hash_statement(of) & (statements->buckets_count - 1)];
}

static void unlink_from_order_of_use(domi_pg_statements *statements, domi_pg_statement *statement)
{
    if (statement->newer != NULL)
        statement->newer->older = statement->older;
    else
        statements->newest = statement->older;
    if (statement->older != NULL)
        statement->older->newer = statement->newer;
    else
        statements->oldest = statement->newer;
}

static void link_as_last_used(domi_pg_statements *statements, domi_pg_statement *statement)
{
    statement->newer = NULL;
    statement->older = statements->newest;
    if (statements->newest != NULL)
        statements->newest->newer = statement;
    else
        statements->oldest = statement;
    statements->newest = statement;
}

domi_pg_statement *domi_pg_find_statement(domi_pg_statements *statements,
                                          const domus_sql_statement *of)
{
    if (statements->buckets_count == 0)
        return NULL;
    domi_pg_statement *found = *bucket_of_statement(statements, of);
    while (found != NULL && found->of != of)
        found = found->bucket;
    if (found != NULL && found != statements->newest) {
        unlink_from_order_of_use(statements, found);
        link_as_last_used(statements, found);
    }
    return found;
}

/* Double the number of buckets of the hash table of statements. Returns false if there is no
 * memory. */
static bool double_buckets(domi_pg_statements *statements)
{
    uint32_t count = statements->buckets_count != 0 ? 2 * statements->buckets_count : BUCKETS_FIRST;
    domi_pg_statement **buckets = calloc(count, sizeof(domi_pg_statement *));

    if (buckets == NULL)
        return false;
    free(statements->buckets);
    statements->buckets = buckets;
    statements->buckets_count = count;
    for (domi_pg_statement *each = statements->newest; each != NULL; each = each->older) {
        domi_pg_statement **bucket = bucket_of_statement(statements, each->of);
        each->bucket = *bucket;
        *bucket = each;
    }
    return true;
}

domi_pg_statement *domi_pg_add_statement(domi_pg_statements *statements,
                                         const domus_sql_statement *of, uint32_t params,
                                         uint64_t token)
{
    if (statements->count >= statements->buckets_count && !double_buckets(statements))
        return NULL;
    domi_pg_statement *statement =
        calloc(1, sizeof(domi_pg_statement) + params * sizeof statement->types[0]);
    if (statement == NULL)
        return NULL;
    domi_pg_statement **bucket = bucket_of_statement(statements, of);
    statement->of = of;
    statement->params = params;
    snprintf(statement->name, sizeof statement->name, "d%llx_%llx", (unsigned long long)token,
             (unsigned long long)++statements->named);
    statement->bucket = *bucket;
    *bucket = statement;
    link_as_last_used(statements, statement);
    statements->count++;
    return statement;
}

void domi_pg_remove_statement(domi_pg_statements *statements, domi_pg_statement *statement)
{
    domi_pg_statement **place = bucket_of_statement(statements, statement->of);

    while (*place != statement)
        place = &(*place)->bucket;
    *place = statement->bucket;
    unlink_from_order_of_use(statements, statement);
    statements->count--;
    free(statement);
}

void domi_pg_free_all_statements(domi_pg_statements *statements)
{
    while (statements->newest != NULL)
        domi_pg_remove_statement(statements, statements->newest);
    free(statements->buckets);
    statements->buckets = NULL;
    statements->buckets_count = 0;
}
