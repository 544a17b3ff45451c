/* Places in code, in words. */
#ifndef DOMI_BASE_SYMBOL_H
#define DOMI_BASE_SYMBOL_H

#include <stdbool.h>
#include <stddef.h>

/* A place in code as "module+0x1f (function+0x3)", which tells nothing of where the module lies in
 * memory. `is_return` says that it is a return address, which may be the first of the next
 * function. Code of no module is "code without a module"; with `addresses`, its address. Takes the
 * loader's lock; any thread. */
void domi_symbol_describe(const void *place, bool is_return, bool addresses, char *text,
                          size_t size);

#endif
