/* Finds out which findings of the doctor last (lasting.h). */
#include "protocols/observe/doctor/lasting.h"

domi_lasting_change domi_lasting_record_whether_rule_spoke(domi_lasting *lasting, bool has_spoken)
{
    const uint32_t all = (1u << DOMI_LASTING_LOOKS) - 1;

    lasting->spoken = (lasting->spoken << 1 | (has_spoken ? 1u : 0u)) & all;
    if (lasting->is_on && lasting->spoken == 0) {
        lasting->is_on = false;
        return DOMI_LASTING_ENDED;
    }
    if (lasting->is_on || (uint32_t)__builtin_popcount(lasting->spoken) < DOMI_LASTING_BEGINS)
        return DOMI_LASTING_SAME;
    lasting->is_on = true;
    return DOMI_LASTING_BEGUN;
}
