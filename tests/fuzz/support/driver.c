/* Runs a fuzzer without libFuzzer: over its corpus, and then over random mutations of the corpus,
 * for a second (20 s in the long form of the tests).
 *
 *   fuzz_NAME            as the tests run it; the seed is DOMT_SEED, else 1, or the time in the
 *                        long form
 *   fuzz_NAME FILE ...   with these inputs alone
 *
 * When an execution fails, its input is written to a file, whose name is printed to stderr. */
#include "base/clock.h"
#include "base/random.h"

#include "tests/fuzz/support/fuzz.h"

#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INPUT_MAX 70000u /* largest input in bytes, larger than the window of a stage */
#define FILES_MAX 2048u

typedef struct input {
    uint8_t *bytes;
    size_t size;
} input;

static input corpus[FILES_MAX];
static uint32_t corpus_count;
static input at_work; /* The input that is executed now, for the handler of failures. */
static uint64_t executions;

/* --- failures --------------------------------------------------------------------------------- */

static const char *const kept = DOMT_BIN_DIR "/tests/fuzz_" DOMT_FUZZ_NAME "_failed";

/* Write the current input to a file, which can reproduce a failure. This also runs in a signal
 * handler. */
static void write_failing_input_to_file(void)
{
    static const char text[] = "fuzz: the input that failed is in ";
    int fd = open(kept, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

    if (fd < 0 || write(fd, at_work.bytes, at_work.size) < 0)
        return;
    (void)close(fd);
    if (write(2, text, sizeof text - 1) < 0 || write(2, kept, strlen(kept)) < 0 ||
        write(2, "\n", 1) < 0)
        return;
}

static void handle_signal_of_failure(int number)
{
    struct sigaction plain = {.sa_handler = SIG_DFL};

    write_failing_input_to_file();
    (void)sigaction(number, &plain, NULL);
    (void)raise(number);
}

/* AddressSanitizer ends the program without a signal, so its callback keeps the input of a
 * failure. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static void install_failure_handlers(void)
{
    static const int numbers[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM};
    struct sigaction action = {.sa_handler = handle_signal_of_failure};

    if (__sanitizer_set_death_callback != NULL) {
        __sanitizer_set_death_callback(write_failing_input_to_file);
        (void)sigaction(SIGALRM, &action, NULL);
        return;
    }
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        (void)sigaction(numbers[i], &action, NULL);
}

/* Execute the fuzzer on an input. The input is copied to a block of its exact size, so that
 * AddressSanitizer sees a read beyond it. */
static void execute_input(const uint8_t *bytes, size_t size)
{
    at_work.size = size;
    at_work.bytes = malloc(size != 0 ? size : 1);
    if (at_work.bytes == NULL)
        abort();
    if (size != 0)
        memcpy(at_work.bytes, bytes, size);
    (void)alarm(20); /* the alarm ends an execution that hangs for 20 s */
    (void)LLVMFuzzerTestOneInput(at_work.bytes, size);
    free(at_work.bytes);
    executions++;
}

/* --- corpus ----------------------------------------------------------------------------------- */

/* Read the next `size` bytes of a file (or all that are left) as an input of the corpus. */
static void add_input_to_corpus(FILE *file, size_t size, const char *name)
{
    input *to = &corpus[corpus_count];

    if (corpus_count == FILES_MAX || size > INPUT_MAX) {
        fprintf(stderr, "fuzz: no room for %s\n", name);
        exit(EXIT_FAILURE);
    }
    to->bytes = malloc(INPUT_MAX);
    if (to->bytes == NULL)
        abort();
    to->size = fread(to->bytes, 1, size, file);
    corpus_count++;
}

static void read_input_file(const char *path)
{
    FILE *file = fopen(path, "rb");

    if (file == NULL) {
        fprintf(stderr, "fuzz: cannot read %s\n", path);
        exit(EXIT_FAILURE);
    }
    add_input_to_corpus(file, INPUT_MAX, path);
    (void)fclose(file);
}

/* The header of a file in a tar archive (POSIX ustar, 512 bytes), with names for the members that
 * are used. The bytes of the file follow, and zeros up to the next multiple of 512. */
typedef struct tar_header {
    char name[100];
    char ids[24];
    char size[12]; /* the file's size in octal digits */
    char times[20];
    char kind; /* the kind of the entry; '0' means a file */
    char rest[355];
} tar_header;

static_assert(sizeof(tar_header) == 512, "a header fills a block");

/* Read all files of a corpus's archive, in the order of the archive, so that one seed always gives
 * the same inputs. */
static void read_corpus_archive(const char *path)
{
    FILE *file = fopen(path, "rb");
    tar_header header;

    while (file != NULL && fread(&header, sizeof header, 1, file) == 1 && header.name[0] != '\0') {
        size_t size = strtoul(header.size, NULL, 8);
        long padding = (long)((sizeof header - size % sizeof header) % sizeof header);
        if (header.kind == '0')
            add_input_to_corpus(file, size, header.name);
        else
            padding += (long)size;
        (void)fseek(file, padding, SEEK_CUR);
    }
    if (file != NULL)
        (void)fclose(file);
}

/* --- chance ----------------------------------------------------------------------------------- */

static domi_random chance;
static domi_clock watch;

static size_t draw_number_below(size_t bound)
{
    return (size_t)domi_random_below(&chance, bound);
}

static uint8_t draw_likely_byte(void)
{
    static const uint8_t bytes[] = {0, 1, 2, 7, 8, '\n', '\r', '}', '~', 0x7f, 0x80, 0xfe, 0xff};

    return draw_number_below(3) == 0 ? (uint8_t)draw_number_below(256)
                                     : bytes[draw_number_below(sizeof bytes)];
}

/* Insert `count` bytes (those at `bytes`, or copies of `fill` if that is NULL) before byte `at` of
 * the input, or as many as there is room for. */
static void insert_bytes_into_input(input *to, size_t at, const uint8_t *bytes, size_t count,
                                    uint8_t fill)
{
    if (count > INPUT_MAX - to->size)
        count = INPUT_MAX - to->size;
    memmove(to->bytes + at + count, to->bytes + at, to->size - at);
    if (bytes != NULL)
        memcpy(to->bytes + at, bytes, count);
    else
        memset(to->bytes + at, fill, count);
    to->size += count;
}

static void mutate_input(input *to)
{
    static uint8_t copy[INPUT_MAX];
    size_t at = draw_number_below(to->size + 1);
    size_t count = draw_number_below(to->size - at + 1);
    const input *other = &corpus[draw_number_below(corpus_count)];

    switch (draw_number_below(8)) {
    case 0:
    case 1:
        if (at < to->size)
            to->bytes[at] = draw_likely_byte();
        break;
    case 2:
        if (at < to->size)
            to->bytes[at] ^= (uint8_t)(1u << draw_number_below(8));
        break;
    case 3:
        insert_bytes_into_input(to, at, NULL, 1 + draw_number_below(4), draw_likely_byte());
        break;
    case 4:
        insert_bytes_into_input(to, at, NULL,
                                (size_t)1 << draw_number_below(draw_number_below(8) == 0 ? 17 : 10),
                                draw_likely_byte());
        break;
    case 5:
        memmove(to->bytes + at, to->bytes + at + count, to->size - at - count);
        to->size -= count;
        break;
    case 6:
        memcpy(copy, to->bytes + at, count);
        insert_bytes_into_input(to, at, copy, count, 0);
        break;
    default:
        insert_bytes_into_input(to, at, other->bytes, draw_number_below(other->size + 1), 0);
        break;
    }
}

static void execute_mutated_inputs(uint64_t seed, uint64_t span_ns)
{
    static uint8_t bytes[INPUT_MAX];
    uint64_t end_ns = domi_clock_now(&watch) + span_ns;

    domi_random_init(&chance, seed);
    while (corpus_count != 0 && domi_clock_now(&watch) < end_ns) {
        const input *from = &corpus[draw_number_below(corpus_count)];
        input made = {bytes, from->size};
        memcpy(bytes, from->bytes, from->size);
        for (size_t i = draw_number_below(6) + 1; i > 0; i--)
            mutate_input(&made);
        execute_input(made.bytes, made.size);
    }
}

static void execute_inputs_of_corpus(void)
{
    for (uint32_t i = 0; i < corpus_count; i++)
        execute_input(corpus[i].bytes, corpus[i].size);
}

int main(int count, char **arguments)
{
    const char *given = getenv("DOMT_SEED");
    bool is_long = getenv("DOMT_LONG") != NULL;

    domi_clock_init(&watch);
    uint64_t now_ns = domi_clock_now(&watch);
    uint64_t seed = given != NULL ? strtoull(given, NULL, 0) : is_long ? now_ns : 1;
    install_failure_handlers();
    for (int i = 1; i < count; i++)
        read_input_file(arguments[i]);
    if (count <= 1)
        read_corpus_archive(DOMT_SOURCE_DIR "/tests/fuzz/corpus/" DOMT_FUZZ_NAME ".tar");
    execute_inputs_of_corpus();
    uint64_t in_corpus = executions;
    if (count <= 1)
        execute_mutated_inputs(seed, is_long ? UINT64_C(20000000000) : UINT64_C(1000000000));
    for (uint32_t i = 0; i < corpus_count; i++)
        free(corpus[i].bytes);
    printf("fuzz_" DOMT_FUZZ_NAME ": %llu inputs, %llu executions, seed %llu\n",
           (unsigned long long)in_corpus, (unsigned long long)executions, (unsigned long long)seed);
    /* tests/run reads the counts in this line. */
    printf("%d%%: Checks: 1, Failures: %d, Errors: 0\n", in_corpus != 0 ? 100 : 0, in_corpus == 0);
    return in_corpus != 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
