/* runtime/os/symbols.c: functions have names, also those that no module exports. */
#include "base/memory.h"
#include "runtime/os/symbols.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char name[64];

__attribute__((noinline)) static int hidden_function(int by)
{
    static volatile int sum;

    for (int i = 0; i < by; i++)
        sum += i * by;
    return sum;
}

DOMT_TEST(static_function_has_its_name)
{
    domi_symbols *symbols = domi_symbols_new();
    uintptr_t begin = (uintptr_t)hidden_function;

    ck_assert_int_eq(hidden_function(1), 0);
    for (uintptr_t at = begin; at < begin + 8; at++) {
        ck_assert_uint_eq(domi_symbols_find(symbols, at, name, sizeof name), begin);
        ck_assert_str_eq(name, "hidden_function");
    }
    uintptr_t before = domi_symbols_find(symbols, begin - 1, name, sizeof name);
    ck_assert_uint_ne(before, begin);
    ck_assert_str_ne(name, "hidden_function");
    domi_symbols_free(symbols);
}

DOMT_TEST(function_of_another_module_has_its_name)
{
    domi_symbols *symbols = domi_symbols_new();

    ck_assert_uint_ne(domi_symbols_find(symbols, (uintptr_t)qsort_r, name, sizeof name), 0);
    ck_assert_ptr_nonnull(strstr(name, "qsort_r"));
    domi_symbols_free(symbols);
}

DOMT_TEST(code_without_a_module_says_so)
{
    domi_symbols *symbols = domi_symbols_new();
    void *code = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    ck_assert_ptr_ne(code, MAP_FAILED);
    ck_assert_uint_eq(domi_symbols_find(symbols, (uintptr_t)code, name, sizeof name), 0);
    ck_assert_str_eq(name, "code without a module");
    ck_assert_uint_eq(domi_symbols_find(symbols, 1, name, sizeof name), 0);
    munmap(code, 4096);
    domi_symbols_free(symbols);
}

DOMT_TEST(long_name_is_cut)
{
    domi_symbols *symbols = domi_symbols_new();

    ck_assert_uint_ne(domi_symbols_find(symbols, (uintptr_t)hidden_function, name, 7), 0);
    ck_assert_str_eq(name, "hidden");
    domi_symbols_free(symbols);
}

/* Without memory for the table, the name is one that the loader knows, or a place in the module. */
DOMT_TEST(without_memory_there_is_some_name)
{
    domi_memory_fail_after(0, 0);
    ck_assert_ptr_null(domi_symbols_new());
    domi_memory_fail_after(-1, 0);
    for (int64_t n = 0; n < 6; n++) {
        domi_symbols *symbols = domi_symbols_new();
        name[0] = '\0';
        domi_memory_fail_after(n, 0);
        (void)domi_symbols_find(symbols, (uintptr_t)hidden_function, name, sizeof name);
        domi_memory_fail_after(-1, 0);
        ck_assert_str_ne(name, "");
        if (n < 3)
            ck_assert_str_ne(name, "hidden_function");
        domi_symbols_free(symbols);
    }
    ck_assert_str_eq(name, "hidden_function");
}

DOMT_SUITE(60)
