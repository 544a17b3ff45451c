/* This bench measures what a read of cached bytes costs an actor, beside a loop of pread(2).
 *
 * bench_files [ROW [READS]]: a file of 4 MiB lies in the page cache, and 4 KiB of it are read READS
 * times (200,000) on one thread. Without ROW all rows run. The rows are:
 *
 *     pread     pread(2) in a loop, into one buffer
 *     calloc    pread(2) in a loop, into memory that is allocated for each read
 *     alone     an actor that reads, and reads again when it has the answer
 *     deep      an actor with 16 reads under way
 *     blocking  an actor that lets a helper thread call pread(2) (domus_blocking())
 *
 * stdout: lines `name value unit`: time and CPU time of the process for one read. Exit 1 when a
 * read fails. */
#include "bench/support/measure.h"

#include <domus/blocking.h>
#include <domus/domus.h>

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_BYTES (4u << 20)
#define READ_BYTES 4096u
#define DEPTH      16u

static uint32_t reads = 200000;
static int fd;
static char path[64];
static atomic_bool is_over;

static uint64_t choose_next_read_position(void)
{
    static uint64_t position;

    position = (position + 12289 * READ_BYTES) % FILE_BYTES;
    return position;
}

static void exit_with_error(const char *what)
{
    fprintf(stderr, "files: %s\n", what);
    exit(1);
}

static void make_file_to_read(void)
{
    static char bytes[FILE_BYTES];

    snprintf(path, sizeof path, "/tmp/domus-bench-%ld", (long)getpid());
    fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    memset(bytes, 'x', sizeof bytes);
    if (fd < 0 || write(fd, bytes, sizeof bytes) != (ssize_t)sizeof bytes)
        exit_with_error("no file");
}

/* --- the loop of pread(2)
 * ---------------------------------------------------------------------- */

static void read_file_by_pread_in_loop(bool allocates)
{
    static char own[READ_BYTES];

    for (uint32_t i = 0; i < reads; i++) {
        char *bytes = allocates ? calloc(1, READ_BYTES) : own;
        if (bytes == NULL ||
            pread(fd, bytes, READ_BYTES, (off_t)choose_next_read_position()) != (ssize_t)READ_BYTES)
            exit_with_error("pread");
        if (allocates)
            free(bytes);
    }
}

/* --- actors ----------------------------------------------------------------------------------- */

typedef struct reader {
    domus_file *file;
    uint32_t depth;
    bool blocking;
    uint32_t begun, done;
} reader;

static const domus_type go_type = {.name = "go"};

static int count_read_and_continue(domus_stack *stack, void *self, const domus_answer *answer);

static int pread_next_block_on_helper(void *argument)
{
    static char bytes[READ_BYTES];

    (void)argument;
    return (int)pread(fd, bytes, READ_BYTES, (off_t)choose_next_read_position());
}

static int read_next_block(domus_stack *stack, reader *self)
{
    if (self->blocking)
        return domus_blocking(stack, pread_next_block_on_helper, NULL, count_read_and_continue);
    for (; self->begun < reads && self->begun - self->done < self->depth; self->begun++)
        if (domus_file_read_add(stack, self->file, choose_next_read_position(), READ_BYTES, 0) != 0)
            exit_with_error("a read");
    return domus_wait_first(stack, count_read_and_continue);
}

static int count_read_and_continue(domus_stack *stack, void *self_, const domus_answer *answer)
{
    reader *self = self_;

    if (answer->error != 0)
        exit_with_error(strerror(-answer->error));
    if (++self->done == reads) {
        domus_file_close(self->file);
        atomic_store(&is_over, true);
        domus_quit(stack);
        return 0;
    }
    return read_next_block(stack, self);
}

static int begin_reading_opened_file(domus_stack *stack, void *self_, const domus_answer *answer)
{
    reader *self = self_;

    if (answer->error != 0)
        exit_with_error(strerror(-answer->error));
    self->file = *(domus_file *const *)answer->payload;
    (void)domus_take_answer(stack, answer);
    return read_next_block(stack, self);
}

static int open_file_and_begin_reading(domus_stack *stack, void *self, const void *payload)
{
    (void)self, (void)payload;
    return domus_file_open(stack, NULL, path, DOMUS_FILE_READ, 0, begin_reading_opened_file);
}

static const domus_behaviour reader_behaviour = {
    .name = "reader",
    .state_size = sizeof(reader),
    .on = (const domus_on[]){{&go_type, open_file_and_begin_reading, 0}, {NULL, NULL, 0}},
};

static void run_actor_that_reads_file(uint32_t depth, bool blocking)
{
    const reader state = {.depth = depth, .blocking = blocking};
    domus_config config;
    domus_system *system;
    domus_address address;
    char error[256] = "";

    domus_config_init(&config);
    config.system.threads = 1;
    if (domus_system_new(&config, error, sizeof error, &system) != 0)
        exit_with_error(error);
    if (domus_system_start(system) != 0)
        exit_with_error(domus_system_error(system));
    if (domus_outside_spawn(system, &reader_behaviour, &state, &address) != 0 ||
        domus_outside_notice(system, address, &go_type, NULL) != 0)
        exit_with_error("no actor");
    domus_system_wait(system);
    (void)domus_system_stop(system);
    domus_system_free(system);
}

/* --- rows ------------------------------------------------------------------------------------- */

static void run_row_of_bench(const char *name)
{
    uint64_t began_ns = measure_now_ns();
    uint64_t cpu_ns = measure_process_cpu_ns();

    if (strcmp(name, "pread") == 0)
        read_file_by_pread_in_loop(false);
    else if (strcmp(name, "calloc") == 0)
        read_file_by_pread_in_loop(true);
    else if (strcmp(name, "alone") == 0)
        run_actor_that_reads_file(1, false);
    else if (strcmp(name, "deep") == 0)
        run_actor_that_reads_file(DEPTH, false);
    else if (strcmp(name, "blocking") == 0)
        run_actor_that_reads_file(1, true);
    else
        exit_with_error("no such row");
    printf("files.%s %.0f ns\n", name, (double)(measure_now_ns() - began_ns) / reads);
    printf("files.%s.cpu %.0f ns\n", name, (double)(measure_process_cpu_ns() - cpu_ns) / reads);
}

int main(int argc, char **argv)
{
    static const char *const rows[] = {"pread", "calloc", "alone", "deep", "blocking"};

    if (argc > 2)
        reads = (uint32_t)strtoul(argv[2], NULL, 10);
    if (reads == 0)
        return 2;
    make_file_to_read();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (argc < 2 || strcmp(argv[1], rows[i]) == 0)
            run_row_of_bench(rows[i]);
    (void)close(fd);
    (void)unlink(path);
    return 0;
}
