/* Names of functions, also of those that a module does not export: they are read from the symbol
 * table in the module's file.
 *
 * Tables that were read are kept. Thread-safety: one thread at a time; the functions take the lock
 * of the dynamic loader. */
#ifndef DOMI_RUNTIME_OS_SYMBOLS_H
#define DOMI_RUNTIME_OS_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

/* Most modules whose symbol tables are kept, and most bytes of a table and of its names. Beyond
 * these limits a function gets the name of the nearest exported one. */
#define DOMI_SYMBOLS_MODULES_MAX 64u
#define DOMI_SYMBOLS_BYTES_MAX   ((size_t)256 * 1024 * 1024)

typedef struct domi_symbols domi_symbols;

/* Make an empty set of symbol tables. Returns NULL if there is no memory. */
domi_symbols *domi_symbols_new(void);

/* Free all symbol tables of a set. NULL is allowed. */
void domi_symbols_free(domi_symbols *symbols);

/* Write the name of the function whose code holds the byte at the address `at` into `text` (of
 * `size` bytes, NUL-terminated; a longer name is cut). Returns the address at which the function
 * begins. For a function without a name the name of its module is written, such as "libc.so.6",
 * or "code without a module", and 0 is returned. */
uintptr_t domi_symbols_find_name(domi_symbols *symbols, uintptr_t at, char *text, size_t size);

#endif
