/* Fuzzes the readers of `domus tune`: one reads the output of a load, others read a bound and the
 * values of a key from the input's first line. */
#include "tests/fuzz/support/fuzz.h"
#include "tools/domus/tune/keys.h"
#include "tools/domus/tune/parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void read_figures_of_load(const uint8_t *data, size_t size)
{
    tune_figures figures;
    bool is_right = tune_figures_read_output((const char *)data, size, &figures);

    domt_fuzz_abort_unless(is_right == (figures.error[0] == '\0'));
    domt_fuzz_abort_unless(figures.count <= TUNE_FIGURES_MAX);
    for (size_t i = 0; i < figures.count; i++) {
        char shown[32];
        domt_fuzz_abort_unless(figures.each[i].value >= 0 && figures.each[i].name[0] != '\0');
        domt_fuzz_abort_unless(tune_figures_find_by_name(&figures, figures.each[i].name) ==
                               &figures.each[i]);
        tune_value_write_with_unit(figures.each[i].name, figures.each[i].value, shown,
                                   sizeof shown);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static tune_keys keys;
    char line[256];
    tune_bound bound;

    read_figures_of_load(data, size);
    snprintf(line, sizeof line, "%.*s", size < 255 ? (int)size : 255, (const char *)data);
    line[strcspn(line, "\n")] = '\0';
    domt_fuzz_abort_unless(!tune_bound_read_text(line, &bound) ||
                           (bound.value > 0 && bound.name[0] != '\0'));
    keys.count = 0;
    (void)tune_keys_add_comma_list_of_names(&keys, line);
    (void)tune_keys_set_values_to_try(&keys, line);
    domt_fuzz_abort_unless(keys.count <= TUNE_KEYS_MAX);
    return 0;
}
