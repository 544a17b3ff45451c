/* Implements the verb of domus/letters.h; message/letters.c has the table of subscribers. */
#include "house/message/letters.h"
#include "house/conversation/stack.h"

#include <errno.h>

int domus_letters_subscribe(domus_stack *stack, uint32_t what)
{
    domi_letters *letters = stack->manager->directory.letters;

    if (letters == NULL)
        return -ENOSPC;
    return domi_letters_subscribe(letters, domus_self(stack), what);
}
