/* Reads and judges the bounds on figures that a candidate must keep (parts.h). */
#include "tools/domus/tune/parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

bool tune_bound_read_text(const char *text, tune_bound *ret_bound)
{
    size_t blanks = strspn(text, " "), length = strcspn(text + blanks, " <>");
    const char *sign = text + blanks + length;

    sign += strspn(sign, " ");
    if (length == 0 || length >= sizeof ret_bound->name || (*sign != '<' && *sign != '>'))
        return false;
    snprintf(ret_bound->name, sizeof ret_bound->name, "%.*s", (int)length, text + blanks);
    ret_bound->is_most = *sign == '<';
    return tune_value_read_with_unit(sign + (sign[1] == '=' ? 2 : 1), &ret_bound->value) &&
           ret_bound->value > 0;
}

double tune_bound_log_of_ratio_if_broken(const tune_bound *bound, double figure)
{
    double ratio = bound->is_most ? figure / bound->value : bound->value / figure;

    return ratio > 1 ? log(ratio) : 0;
}
