/* Turns an address of code into text for backtraces and reports. */
#ifndef DOMI_BASE_SYMBOL_H
#define DOMI_BASE_SYMBOL_H

#include <stdbool.h>
#include <stddef.h>

/* Write `place` as "module+0x1f (function+0x3)". This text does not reveal where the module lies in
 * memory. With `is_return`, `place` is a return address, which may be the first byte of the next
 * function. Code outside of every module is written as "code without a module", or with `addresses`
 * as its address. Takes the lock of the dynamic loader; any thread. */
void domi_symbol_describe_address(const void *place, bool is_return, bool addresses, char *text,
                                  size_t size);

#endif
