/* Opens, finds and reloads the fronts of listeners and of servers (main_parts.h).
 *
 * A reload reads files, which may take long, so it runs on a helper thread. That thread writes the
 * outcome to `fronts` alone, and the actor tells it: if the system stops meanwhile and gives the
 * work up, nothing that the thread still uses is freed or written. */
#include "config/main_parts.h"

#include "config/values.h"

#include <domus/blocking.h>
#include <domus/text.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define ERROR_SIZE 512
#define LINE_SIZE  1024
/* bytes of the path of a front's key: "listeners." and a name, with a NUL */
#define OWNER_SIZE 80
/* stands for the front of servers in place of a listener's name, which is never empty */
#define SERVERS ""

typedef struct domi_opened_front {
    /* name of the listener that has this front; SERVERS: it is that of connections to the servers
     * of the cluster */
    char listener[64];
    void *state;
    const domus_pipeline_stage *stages;
    /* error of the last time that the front's files were read; "": that succeeded */
    char error[ERROR_SIZE];
} domi_opened_front;

static struct {
    const domus_front *table;
    uint32_t count;
    domi_opened_front each[DOMUS_LISTENERS_MAX + 1];
    domi_sink *sink;
    domus_address reader; /* address of the actor that lets files of fronts be read again */
    atomic_bool is_read;  /* whether a helper thread is reading files of fronts */
} fronts;

/* --- begin and end ---------------------------------------------------------------------------- */

/* Write the path of the configuration's key to which the front belongs. */
static void write_path_of_key_that_owns_front(const char *listener, char path[OWNER_SIZE])
{
    if (strcmp(listener, SERVERS) == 0)
        snprintf(path, OWNER_SIZE, "cluster");
    else
        snprintf(path, OWNER_SIZE, "listeners.%s", listener);
}

/* Print an error of a front, escaped, because it may hold any bytes of a path. */
static void print_front_error(const char *program, const char *listener, const char *error)
{
    char line[LINE_SIZE], shown[2 * LINE_SIZE], owner[OWNER_SIZE];

    write_path_of_key_that_owns_front(listener, owner);
    snprintf(line, sizeof line, "%s.%s", owner, error);
    (void)domus_text_escape(line, strlen(line), shown, sizeof shown);
    fprintf(stderr, "%s: %s\n", program, shown);
}

/* Returns the first key of TLS that the listener has; NULL: it has none. Any such key says that the
 * operator means the listener to speak TLS, also if certFile was forgotten. */
static const char *find_tls_key_of_listener(const domus_listener_config *listener)
{
    static const domus_listener_config nothing = {0};
    const domus_config_key *key;

    for (size_t row = 0; (key = domus_config_listener_key_get(row)) != NULL; row++)
        if (strncmp(key->path, "tls.", 4) == 0 && domi_value_is_different(key, &nothing, listener))
            return key->path;
    return NULL;
}

/* Add a front that was opened to the list of fronts, if it has stages. */
static void add_front_to_list_if_it_has_stages(domi_opened_front *front, const char *listener)
{
    if (front->stages == NULL)
        return;
    snprintf(front->listener, sizeof front->listener, "%s", listener);
    front->error[0] = '\0';
    fronts.count++;
}

/* Open the front of a listener, if its configuration wants one. Returns whether that has
 * succeeded. */
static bool open_front_of_listener(const domus_program *program,
                                   const domus_listener_config *listener)
{
    domi_opened_front *front = &fronts.each[fronts.count];
    const char *key = find_tls_key_of_listener(listener);
    char error[ERROR_SIZE];
    int result = -EINVAL;

    if (program->front == NULL) {
        if (key == NULL)
            return true;
        snprintf(error, sizeof error, "%s: this program has no TLS", key);
    } else if (key != NULL && strcmp(key, "tls.certFile") != 0) {
        snprintf(error, sizeof error, "%s: needs certFile", key);
    } else {
        snprintf(error, sizeof error, "tls: it is refused");
        result = program->front->open(listener, error, sizeof error, &front->state, &front->stages);
    }
    if (result != 0) {
        print_front_error(program->name, listener->name, error);
        return false;
    }
    add_front_to_list_if_it_has_stages(front, listener->name);
    return true;
}

/* Returns the first key of `cluster.tls` that is set, other than `enabled`; NULL: none is. */
static const char *find_tls_key_of_servers(const domus_config *config)
{
    const size_t skipped = strlen("cluster.");
    const domus_config_key *key;
    domus_config presets;

    domus_config_init(&presets);
    for (size_t row = 0; (key = domus_config_key_get(row)) != NULL; row++)
        if (strncmp(key->path, "cluster.tls.", strlen("cluster.tls.")) == 0 &&
            strcmp(key->path, "cluster.tls.enabled") != 0 &&
            domi_value_is_different(key, &presets, config))
            return key->path + skipped;
    return NULL;
}

/* Open the front of connections to the cluster's servers, if the program is in a cluster and its
 * configuration wants such a front. Returns whether that has succeeded. */
static bool open_front_of_servers(const domus_program *program, const domus_config *config)
{
    const domus_servers_tls_config *settings = &config->cluster.tls;
    domi_opened_front *front = &fronts.each[fronts.count];
    const char *key = find_tls_key_of_servers(config);
    char error[ERROR_SIZE] = "tls: it is refused";
    int result = -EINVAL;

    if (program->cluster == NULL || (!settings->enabled && key == NULL))
        return true;
    if (!settings->enabled)
        snprintf(error, sizeof error, "%s: needs tls.enabled: true", key);
    else if (program->front == NULL || program->front->open_servers == NULL)
        snprintf(error, sizeof error, "tls.enabled: this program has no TLS");
    else
        result = program->front->open_servers(settings, error, sizeof error, &front->state,
                                              &front->stages);
    if (result != 0)
        print_front_error(program->name, SERVERS, error);
    else
        add_front_to_list_if_it_has_stages(front, SERVERS);
    return result == 0;
}

bool domi_fronts_open(const domus_program *program, const domus_config *config)
{
    bool right = true;

    if (atomic_load(&fronts.is_read)) {
        fprintf(stderr, "%s: the files of fronts are still read for the run before\n",
                program->name);
        return false;
    }
    fronts.table = program->front;
    fronts.count = 0;
    for (size_t i = 0; i < config->listener_count; i++)
        right = open_front_of_listener(program, &config->listeners[i]) && right;
    right = open_front_of_servers(program, config) && right;
    if (!right)
        domi_fronts_close(false);
    return right;
}

const domus_pipeline_stage *domi_fronts_find_stages_of_listener(const char *listener)
{
    for (uint32_t i = 0; i < fronts.count; i++)
        if (strcmp(fronts.each[i].listener, listener) == 0)
            return fronts.each[i].stages;
    return NULL;
}

const domus_pipeline_stage *domi_fronts_find_stages_of_servers(void)
{
    return domi_fronts_find_stages_of_listener(SERVERS);
}

void domi_fronts_close(bool is_stuck)
{
    if (atomic_load(&fronts.is_read))
        /* nothing is freed: the helper thread that reads the files may still use the list of
         * fronts */
        return;
    if (!is_stuck)
        for (uint32_t i = 0; i < fronts.count; i++)
            fronts.table->close(fronts.each[i].state);
    fronts.count = 0;
}

/* --- reading again ---------------------------------------------------------------------------- */

/* The state of the actor that lets files of fronts be read again. */
typedef struct domi_reader {
    bool is_busy;   /* whether the files are being read */
    bool is_wanted; /* whether the files have to be read once more after that */
} domi_reader;

static const domus_type read_type = {.name = "read files again"};

/* Read the files of all fronts again, on a helper thread. */
static int read_all_front_files(void *unused)
{
    (void)unused;
    for (uint32_t i = 0; i < fronts.count; i++) {
        domi_opened_front *front = &fronts.each[i];
        char error[ERROR_SIZE] = "tls: it is refused";
        int result = fronts.table->reload(front->state, error, sizeof error);
        snprintf(front->error, sizeof front->error, "%s", result != 0 ? error : "");
    }
    atomic_store(&fronts.is_read, false);
    return 0;
}

static domus_resumed on_front_files_read_log_outcome;

static int begin_reading_front_files(domus_stack *stack)
{
    atomic_store(&fronts.is_read, true);
    return domus_blocking(stack, read_all_front_files, NULL, on_front_files_read_log_outcome);
}

/* Log the error with which a front's files were read. Returns whether there was none. */
static bool log_error_of_reading_front_files(const domi_opened_front *front)
{
    char owner[OWNER_SIZE];
    const bool is_servers = strcmp(front->listener, SERVERS) == 0;

    if (front->error[0] == '\0')
        return true;
    write_path_of_key_that_owns_front(front->listener, owner);
    domi_sink_add_line(fronts.sink, "SIGHUP: %s.%s: this %s keeps what it has", owner, front->error,
                       is_servers ? "node" : "listener");
    return false;
}

static void log_outcome_of_read_front_files(void)
{
    uint32_t right = 0;

    for (uint32_t i = 0; i < fronts.count; i++) {
        const domi_opened_front *front = &fronts.each[i];
        const bool is_servers = strcmp(front->listener, SERVERS) == 0;
        if (!log_error_of_reading_front_files(front))
            continue;
        right += !is_servers;
        if (is_servers)
            domi_sink_add_line(fronts.sink, "SIGHUP: the files of the cluster were read again");
    }
    if (right != 0)
        domi_sink_add_line(fronts.sink, "SIGHUP: the files of %u listener%s were read again", right,
                           right == 1 ? "" : "s");
}

static int on_front_files_read_log_outcome(domus_stack *stack, void *self,
                                           const domus_answer *answer)
{
    domi_reader *reader = self;

    if (answer->error != 0) { /* the blocking work of reading the files could not begin */
        atomic_store(&fronts.is_read, false);
        domi_sink_add_line(fronts.sink, "SIGHUP: the files of listeners were not read: %s",
                           strerror(-answer->error));
    } else {
        log_outcome_of_read_front_files();
    }
    reader->is_busy = reader->is_wanted;
    reader->is_wanted = false;
    return reader->is_busy ? begin_reading_front_files(stack) : 0;
}

static int on_request_read_front_files(domus_stack *stack, void *self, const void *payload)
{
    domi_reader *reader = self;

    (void)payload;
    if (reader->is_busy) {
        reader->is_wanted = true;
        return 0;
    }
    reader->is_busy = true;
    return begin_reading_front_files(stack);
}

static const domus_behaviour reader_behaviour = {
    .name = "reader of files",
    .state_size = sizeof(domi_reader),
    .on = (const domus_on[]){{&read_type, on_request_read_front_files, 0}, {NULL, NULL, 0}},
};

int domi_fronts_start_reader(domus_system *system, domi_sink *sink)
{
    fronts.sink = sink;
    return fronts.count != 0 ? domus_outside_spawn(system, &reader_behaviour, NULL, &fronts.reader)
                             : 0;
}

void domi_fronts_read_files_again(domus_system *system)
{
    int error =
        fronts.count != 0 ? domus_outside_notice(system, fronts.reader, &read_type, NULL) : 0;

    if (error != 0)
        domi_sink_add_line(fronts.sink, "SIGHUP: the files of listeners were not read: %s",
                           strerror(-error));
}
