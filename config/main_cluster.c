/* Checks, opens and closes the cluster of a program of domus_main() (main_parts.h). */
#include "config/main_parts.h"

#include "config/values.h"

#include <domus/text.h>

#include <stdio.h>
#include <string.h>

#define ERROR_SIZE 512
#define SECTION    "cluster."

static struct domus_cluster *opened; /* state of the cluster that is open; NULL: none is */

/* Returns the first key of the section `cluster` that is not at its default; NULL: all are. */
static const char *find_changed_key_of_cluster(const domus_config *config)
{
    const domus_config_key *key;
    domus_config presets;

    domus_config_init(&presets);
    for (size_t row = 0; (key = domus_config_key_get(row)) != NULL; row++)
        if (strncmp(key->path, SECTION, strlen(SECTION)) == 0 &&
            domi_value_is_different(key, &presets, config))
            return key->path;
    return NULL;
}

static domus_cluster_setup make_cluster_setup(const domus_program *program,
                                              const domus_config *config)
{
    return (domus_cluster_setup){.config = config,
                                 .program = program->name,
                                 .options = program->cluster->options,
                                 .front = domi_fronts_find_stages_of_servers()};
}

bool domi_main_cluster_check_section(const domus_program *program, const domus_config *config)
{
    char error[ERROR_SIZE] = "cluster: it is refused", shown[2 * ERROR_SIZE];

    if (program->cluster == NULL) {
        const char *key = find_changed_key_of_cluster(config);
        if (key == NULL)
            return true;
        snprintf(error, sizeof error, "%s: this program is in no cluster", key);
    } else {
        const domus_cluster_setup setup = make_cluster_setup(program, config);
        if (program->cluster->joiner->check(&setup, error, sizeof error) == 0)
            return true;
    }
    (void)domus_text_escape(error, strlen(error), shown, sizeof shown);
    fprintf(stderr, "%s: %s\n", program->name, shown);
    return false;
}

int domi_main_cluster_open(const domus_program *program, domus_system *system, char *error,
                           size_t error_size)
{
    const domus_cluster_member *member = program->cluster;

    if (member == NULL)
        return 0;
    const domus_cluster_setup setup = make_cluster_setup(program, domus_system_config(system));
    snprintf(error, error_size, "cluster: it is refused");
    int result = member->joiner->open(system, &setup, error, error_size, &opened);
    if (result != 0)
        return result;
    error[0] = '\0';
    if (member->cluster != NULL)
        *member->cluster = opened;
    return 0;
}

void domi_main_cluster_leave(const domus_program *program)
{
    if (opened != NULL)
        program->cluster->joiner->leave(opened);
}

void domi_main_cluster_close(const domus_program *program, bool is_stuck)
{
    if (opened != NULL && program->cluster->cluster != NULL)
        *program->cluster->cluster = NULL;
    if (opened != NULL && !is_stuck)
        program->cluster->joiner->close(opened);
    opened = NULL;
}
