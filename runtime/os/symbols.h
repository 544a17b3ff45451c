/* Names of functions, also of those that a module does not export: they are read from the symbol
 * table in the module's file.
 *
 * The tables of the modules that were asked for are kept. Thread-safety: one thread at a time; it
 * takes the lock of the dynamic loader. */
#ifndef DOMI_RUNTIME_OS_SYMBOLS_H
#define DOMI_RUNTIME_OS_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

/* Modules whose tables are kept, and bytes of a table, and of its names, at most. Beyond these a
 * function has the name of the nearest one that is exported. */
#define DOMI_SYMBOLS_MODULES_MAX 64u
#define DOMI_SYMBOLS_BYTES_MAX   ((size_t)256 * 1024 * 1024)

typedef struct domi_symbols domi_symbols;

/* Returns NULL without memory. */
domi_symbols *domi_symbols_new(void);

/* Free the tables. NULL is allowed. */
void domi_symbols_free(domi_symbols *symbols);

/* Write the name of the function that holds the byte at `at` into `text` (of `size` bytes,
 * NUL-terminated; a longer name is cut). Returns where the function begins. If it has no name, that
 * of its module is written, as in "libc.so.6", or "code without a module", and 0 is returned. */
uintptr_t domi_symbols_find(domi_symbols *symbols, uintptr_t at, char *text, size_t size);

#endif
