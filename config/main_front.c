/* Opens, finds and reloads the fronts of listeners; see the header.
 *
 * A reload reads files, which may take long, so it runs on a helper thread. That thread writes the
 * outcome to `fronts` alone, and the actor tells it: if the system stops meanwhile and gives the
 * work up, nothing that the thread still uses is freed or written. */
#include "config/main_front.h"

#include "config/values.h"

#include <domus/blocking.h>
#include <domus/text.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define ERROR_SIZE 512
#define LINE_SIZE  1024

typedef struct domi_opened_front {
    char listener[64];
    void *state;
    const domus_pipeline_stage *stages;
    char error[ERROR_SIZE]; /* of the last reading; "": it went well */
} domi_opened_front;

static struct {
    const domus_front *table;
    uint32_t count;
    domi_opened_front each[DOMUS_LISTENERS_MAX];
    domi_sink *sink;
    domus_address reader; /* the actor that has files read */
    atomic_bool is_read;  /* a helper thread is at it */
} fronts;

/* --- begin and end ---------------------------------------------------------------------------- */

/* Print an error of a listener, which may hold any bytes of a path. */
static void complain(const char *program, const char *listener, const char *error)
{
    char line[LINE_SIZE], shown[2 * LINE_SIZE];

    snprintf(line, sizeof line, "listeners.%s.%s", listener, error);
    (void)domus_text_escape(line, strlen(line), shown, sizeof shown);
    fprintf(stderr, "%s: %s\n", program, shown);
}

/* The first key of TLS that the listener has; NULL: none. Any of them says that its operator means
 * it to speak TLS, also if certFile was forgotten. */
static const char *find_key(const domus_listener_config *listener)
{
    static const domus_listener_config nothing = {0};
    const domus_config_key *key;

    for (size_t row = 0; (key = domus_config_listener_key_get(row)) != NULL; row++)
        if (strncmp(key->path, "tls.", 4) == 0 && domi_value_differs(key, &nothing, listener))
            return key->path;
    return NULL;
}

/* Open the front of a listener, if it wants one. Returns whether that is right. */
static bool open_one(const domus_program *program, const domus_listener_config *listener)
{
    domi_opened_front *front = &fronts.each[fronts.count];
    const char *key = find_key(listener);
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
        complain(program->name, listener->name, error);
        return false;
    }
    if (front->stages != NULL) {
        snprintf(front->listener, sizeof front->listener, "%s", listener->name);
        front->error[0] = '\0';
        fronts.count++;
    }
    return true;
}

bool domi_fronts_open(const domus_program *program, const domus_config *config)
{
    bool right = true;

    if (atomic_load(&fronts.is_read)) {
        fprintf(stderr, "%s: the files of listeners are still read for the run before\n",
                program->name);
        return false;
    }
    fronts.table = program->front;
    fronts.count = 0;
    for (size_t i = 0; i < config->listener_count; i++)
        right = open_one(program, &config->listeners[i]) && right;
    if (!right)
        domi_fronts_close(false);
    return right;
}

const domus_pipeline_stage *domi_fronts_find(const char *listener)
{
    for (uint32_t i = 0; i < fronts.count; i++)
        if (strcmp(fronts.each[i].listener, listener) == 0)
            return fronts.each[i].stages;
    return NULL;
}

void domi_fronts_close(bool is_stuck)
{
    if (atomic_load(&fronts.is_read))
        return; /* `count` is read by the helper thread, too */
    if (!is_stuck)
        for (uint32_t i = 0; i < fronts.count; i++)
            fronts.table->close(fronts.each[i].state);
    fronts.count = 0;
}

/* --- reading again ---------------------------------------------------------------------------- */

/* The state of the actor. */
typedef struct domi_reader {
    bool is_busy;   /* files are being read */
    bool is_wanted; /* and have to be read once more */
} domi_reader;

static const domus_type read_type = {.name = "read files again"};

/* Read all files again, on a helper thread. */
static int read_all(void *unused)
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

static domus_resumed tell;

static int begin_to_read(domus_stack *stack)
{
    atomic_store(&fronts.is_read, true);
    return domus_blocking(stack, read_all, NULL, tell);
}

static void tell_outcome(void)
{
    uint32_t right = 0;

    for (uint32_t i = 0; i < fronts.count; i++) {
        const domi_opened_front *front = &fronts.each[i];
        right += front->error[0] == '\0';
        if (front->error[0] != '\0')
            domi_sink_add_line(fronts.sink,
                               "SIGHUP: listeners.%s.%s: this listener keeps what it has",
                               front->listener, front->error);
    }
    if (right != 0)
        domi_sink_add_line(fronts.sink, "SIGHUP: the files of %u listener%s were read again", right,
                           right == 1 ? "" : "s");
}

static int tell(domus_stack *stack, void *self, const domus_answer *answer)
{
    domi_reader *reader = self;

    if (answer->error != 0) { /* the work has not begun */
        atomic_store(&fronts.is_read, false);
        domi_sink_add_line(fronts.sink, "SIGHUP: the files of listeners were not read: %s",
                           strerror(-answer->error));
    } else {
        tell_outcome();
    }
    reader->is_busy = reader->is_wanted;
    reader->is_wanted = false;
    return reader->is_busy ? begin_to_read(stack) : 0;
}

static int take_wish(domus_stack *stack, void *self, const void *payload)
{
    domi_reader *reader = self;

    (void)payload;
    if (reader->is_busy) {
        reader->is_wanted = true;
        return 0;
    }
    reader->is_busy = true;
    return begin_to_read(stack);
}

static const domus_behaviour reader_behaviour = {
    .name = "reader of files",
    .state_size = sizeof(domi_reader),
    .on = (const domus_on[]){{&read_type, take_wish, 0}, {NULL, NULL, 0}},
};

int domi_fronts_start(domus_system *system, domi_sink *sink)
{
    fronts.sink = sink;
    return fronts.count != 0 ? domus_outside_spawn(system, &reader_behaviour, NULL, &fronts.reader)
                             : 0;
}

void domi_fronts_reload(domus_system *system)
{
    int error =
        fronts.count != 0 ? domus_outside_notice(system, fronts.reader, &read_type, NULL) : 0;

    if (error != 0)
        domi_sink_add_line(fronts.sink, "SIGHUP: the files of listeners were not read: %s",
                           strerror(-error));
}
