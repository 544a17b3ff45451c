/* Makes the family of a house; family/family.c frees a family and all that it holds. */
#include "house/message/family.h"

#include "base/memory.h"

domi_family *domi_family_get_or_make(domi_house *house)
{
    if (house->family == NULL) {
        house->family = domi_memory_new(sizeof *house->family);
        if (house->family != NULL) {
            house->family->name_slot = DOMI_NAMELESS;
        }
    }
    return house->family;
}
