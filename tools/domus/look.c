/* Reads looks for the doctor from JSON (look.h). Figures are found by the names in the tables of
 * looks, so a new figure needs no line here. */
#include "tools/domus/look.h"

#include "tools/domus/say.h"

#include <jansson.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns a member of a JSON object that is a whole number and not negative; otherwise 0. */
static uint64_t number_or_0_of_json_member(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);

    return json_is_integer(value) && json_integer_value(value) > 0
               ? (uint64_t)json_integer_value(value)
               : 0;
}

static void copy_name_of_member(const json_t *object, const char *name, char *ret_text, size_t size)
{
    const char *text = json_string_value(json_object_get(object, name));

    domi_look_copy_name(ret_text, size, text != NULL ? text : "");
}

static void read_figures_from_json_members(const json_t *object, const char *const names[],
                                           void *ret_group)
{
    for (size_t i = 0; names[i] != NULL; i++)
        *domi_look_figure_at_place_of_group(ret_group, i) =
            number_or_0_of_json_member(object, names[i]);
}

/* --- lists ------------------------------------------------------------------------------------ */

static void read_figures_of_thread(const json_t *thread, const json_t *times, domi_look_thread *to)
{
    const json_t *counters = json_object_get(thread, "counters");

    read_figures_from_json_members(counters, domi_look_counter_names, &to->counters);
    read_figures_from_json_members(json_object_get(counters, "phase_ns"), domi_look_phase_names,
                                   &to->phases);
    read_figures_from_json_members(times, domi_look_time_names, &to->times);
}

static void read_figures_of_runner(const json_t *runner, domi_look_pool_runner *to)
{
    copy_name_of_member(runner, "pool", to->pool, sizeof to->pool);
    to->runner = number_or_0_of_json_member(runner, "runner");
    to->is_spare = json_is_true(json_object_get(runner, "spare"));
    read_figures_from_json_members(json_object_get(runner, "times"), domi_look_runner_names,
                                   &to->times);
    read_figures_from_json_members(json_object_get(runner, "counters"), domi_look_counter_names,
                                   &to->counters);
}

static void read_figures_of_actors(const json_t *actors, domi_look_actors *to)
{
    const json_t *thread = json_object_get(actors, "thread");
    const char *kind = json_string_value(json_object_get(actors, "kind"));

    copy_name_of_member(actors, "name", to->name, sizeof to->name);
    copy_name_of_member(actors, "pool", to->pool, sizeof to->pool);
    to->thread =
        json_is_string(json_object_get(actors, "pool")) ? DOMI_LOOK_POOL : DOMI_LOOK_OUTSIDE;
    if (json_is_integer(thread) && json_integer_value(thread) >= 0)
        to->thread = json_integer_value(thread);
    to->is_channels = kind != NULL && strcmp(kind, "channels") == 0;
    read_figures_from_json_members(actors, domi_look_behaviour_names, &to->counts);
}

static void read_lists_of_look(const json_t *all, domi_look *to)
{
    const json_t *times = json_object_get(json_object_get(all, "machine"), "threads");

    for (uint32_t i = 0; i < to->thread_count; i++)
        read_figures_of_thread(json_array_get(json_object_get(all, "threads"), i),
                               json_array_get(times, i), &to->threads[i]);
    for (uint32_t i = 0; i < to->runner_count; i++)
        read_figures_of_runner(json_array_get(json_object_get(all, "runners"), i), &to->runners[i]);
    for (uint32_t i = 0; i < to->actors_count; i++)
        read_figures_of_actors(json_array_get(json_object_get(all, "behaviours"), i),
                               &to->actors[i]);
    for (uint32_t i = 0; i < to->port_count; i++) {
        const json_t *listener = json_array_get(json_object_get(all, "listeners"), i);
        copy_name_of_member(listener, "name", to->ports[i].name, sizeof to->ports[i].name);
        read_figures_from_json_members(listener, domi_look_listener_names, &to->ports[i].counts);
    }
}

static uint64_t count_stand_ins(const json_t *pairs)
{
    uint64_t sum = 0;
    size_t i;
    json_t *pair;

    json_array_foreach(pairs, i, pair) sum += number_or_0_of_json_member(pair, "stand_ins");
    return sum;
}

/* --- the whole -------------------------------------------------------------------------------- */

static void read_other_members_of_look(const json_t *all, domi_look *to)
{
    const json_t *machine = json_object_get(all, "machine");

    to->now_ns = number_or_0_of_json_member(all, "now_ns");
    to->pid = number_or_0_of_json_member(all, "pid");
    to->uptime_ns = number_or_0_of_json_member(all, "uptime_ns");
    copy_name_of_member(all, "program", to->program, sizeof to->program);
    copy_name_of_member(all, "level", to->level, sizeof to->level);
    read_figures_from_json_members(json_object_get(all, "outside"), domi_look_counter_names,
                                   &to->outside);
    to->stand_ins = count_stand_ins(json_object_get(all, "pairs"));
    read_figures_from_json_members(json_object_get(all, "memory"), domi_look_memory_names,
                                   &to->memory);
    read_figures_from_json_members(json_object_get(all, "usage"), domi_look_usage_names,
                                   &to->usage);
    read_figures_from_json_members(machine, domi_look_machine_names, &to->machine);
    read_figures_from_json_members(json_object_get(machine, "settings"), domi_look_setting_names,
                                   &to->settings);
    copy_name_of_member(machine, "backend", to->backend, sizeof to->backend);
    copy_name_of_member(machine, "backend_why", to->backend_why, sizeof to->backend_why);
}

static size_t get_length_of_list(const json_t *all, const char *name)
{
    return json_array_size(json_object_get(all, name));
}

static const char *read_look_from_json(const json_t *all, domi_look *ret_look)
{
    if (!json_is_array(json_object_get(all, "threads")))
        return "this is not the JSON of /profile?machine=1";
    if (!json_is_object(json_object_get(all, "machine")))
        return "this tells nothing of the machine: it has to be of /profile?machine=1";
    int error = domi_look_allocate_lists(
        ret_look, get_length_of_list(all, "threads"), get_length_of_list(all, "runners"),
        get_length_of_list(all, "behaviours"), get_length_of_list(all, "listeners"));
    if (error != 0)
        return error == -E2BIG ? "no program has that many threads, runners or behaviours"
                               : "there is no memory";
    read_lists_of_look(all, ret_look);
    read_other_members_of_look(all, ret_look);
    return NULL;
}

const char *look_read_text(const char *text, size_t size, domi_look *ret_look)
{
    json_error_t error;
    json_t *all = json_loadb(text, size, 0, &error);
    const char *why = read_look_from_json(all, ret_look);

    json_decref(all);
    return why;
}

bool look_request_from_port(port *from, long ms, domi_look *ret_look)
{
    port_text answer;

    if (!port_get_and_collect_answer(from, "/profile?machine=1", ms, &answer))
        return false;
    const char *why = look_read_text(answer.at, answer.size, ret_look);
    free(answer.at);
    if (why != NULL)
        snprintf(from->error, sizeof from->error, "what answers there is no observation port: %s",
                 why);
    return why == NULL;
}

/* --- files ------------------------------------------------------------------------------------ */

/* Read a whole file into memory. Returns NULL, or the reason why it cannot be read. */
static const char *read_whole_file(const char *name, char **ret_text, size_t *ret_size)
{
    FILE *file = fopen(name, "re");

    if (file == NULL)
        return strerror(errno);
    char *text = malloc(PORT_TEXT_MAX + 1u);
    size_t size = text != NULL ? fread(text, 1, PORT_TEXT_MAX + 1u, file) : 0;
    const char *why = text == NULL           ? "there is no memory"
                      : ferror(file)         ? "it cannot be read"
                      : size > PORT_TEXT_MAX ? "it is too long"
                                             : NULL;
    (void)fclose(file);
    if (why != NULL) {
        free(text);
        return why;
    }
    *ret_text = text;
    *ret_size = size;
    return NULL;
}

bool look_load_file(const char *name, domi_look *ret_look)
{
    char *text = NULL, shown[128];
    size_t size = 0;
    const char *why = read_whole_file(name, &text, &size);

    if (why == NULL) {
        why = look_read_text(text, size, ret_look);
        free(text);
    }
    if (why == NULL)
        return true;
    escape_name_to_ascii(name, strlen(name), shown, sizeof shown);
    say_print_error("%s: %s", shown, why);
    return false;
}
