/* Traces (domus/trace.h): each field as protobuf's own decoder reads it, the texts and their
 * limits, which records of which system are written, errors of a sink, and the trace that a crashed
 * process leaves. */
#include "base/memory.h"
#include "runtime/trace/perfetto.h"
#include "runtime/trace/recorder.h"
#include "tests/runtime/traced.h"
#include "tests/support/suite.h"
#include "tests/support/tree.h"

#include <domus/actor.h>
#include <domus/trace.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const domus_behaviour counter = {.name = "counter"};
static const domus_behaviour nameless = {.name = NULL};
static const domus_type increment = {.name = "increment"};

/* Recorders belong to a system by its address alone, so any memory can stand for a system. */
static long system_space;
static long other_space;
static const struct domus_system *const a_system = (const struct domus_system *)&system_space;
static const struct domus_system *const other = (const struct domus_system *)&other_space;

static uint8_t bytes[8 << 20];
static size_t length;
static domt_traced traced;

static domi_recorder *make_recorder_of_system(const struct domus_system *owner, const char *name,
                                              uint32_t places)
{
    domi_recorder *recorder = NULL;
    ck_assert_int_eq(domi_recorder_new(owner, name, places, &recorder), 0);
    return recorder;
}

static void write_record(domi_recorder *recorder, domi_record_kind kind, uint64_t begin_ns,
                         uint64_t end_ns, const void *name, uint64_t value)
{
    domi_recorder_write_ended_thing(recorder, kind, begin_ns, end_ns, name, value);
}

/* A sink of traces that gathers all bytes. */
static int gather_bytes_of_trace(void *context, const void *more, size_t count)
{
    ck_assert_uint_gt(count, 0);
    ck_assert_uint_le(count, 8192);
    ck_assert_uint_le(count, sizeof bytes - length);
    memcpy(bytes + length, more, count);
    length += count;
    return 0;
}

static void write_and_decode_trace(const struct domus_system *system, uint64_t since_ns)
{
    length = 0;
    ck_assert_int_eq(domus_trace_write(system, since_ns, gather_bytes_of_trace, NULL), 0);
    domt_traced_decode(bytes, length, &traced);
}

/* Record an iteration with two phases: in the first a run asks, and in the second a steal has a run
 * that takes the answer. */
static void write_records_of_iteration(domi_recorder *recorder)
{
    uint64_t type = (uintptr_t)&increment;

    write_record(recorder, DOMI_RECORD_ASK_OUT, 105, 105, &increment, 77);
    write_record(recorder, DOMI_RECORD_RUN, 100, 200, &counter, type);
    write_record(recorder, DOMI_RECORD_RUN, 200, 200, &counter, 0);
    write_record(recorder, DOMI_RECORD_PHASE, 100, 200, "state", 0);
    write_record(recorder, DOMI_RECORD_ANSWER_IN, 210, 210, &increment, 77);
    write_record(recorder, DOMI_RECORD_RUN, 205, 290, &counter, type);
    write_record(recorder, DOMI_RECORD_STEAL, 200, 300, &counter, 2);
    write_record(recorder, DOMI_RECORD_ITERATION, 90, 300, NULL, 300);
}

/* ---- protobuf's decoder ---------------------------------------------------------------------- */

#define EVENT(at)     "packet { timestamp: " at " trusted_packet_sequence_id: 2 track_event { "
#define END(at)       EVENT(at) "type: TYPE_SLICE_END } sequence_flags: 2 } "
#define BEGIN(iid)    "type: TYPE_SLICE_BEGIN name_iid: " iid " } "
#define NEW(iid, txt) "interned_data { event_names { iid: " iid " name: \"" txt "\" } } "
#define FLAGS         "sequence_flags: 2 } "

/* The trace that write_records_of_iteration() must give, as protobuf's decoder prints it. */
static const char events[] = EVENT(
    "90") "category_iids: 1 debug_annotations { uint_value: 300 name: \"completions\" } " BEGIN("1")
    NEW("1", "iteration") FLAGS EVENT("100") "category_iids: 2 " BEGIN("2") NEW(
        "2",
        "state") FLAGS EVENT("100") "category_iids: 6 " BEGIN("3") NEW("3",
                                                                       "run counter (increment)")
        FLAGS EVENT("105") "category_iids: 9 type: TYPE_INSTANT name_iid: 4 flow_ids: 77 } " NEW(
            "4", "ask increment") FLAGS END("200") EVENT("200") "category_iids: 6 " BEGIN("5")
            NEW("5", "run counter") FLAGS END("200") END("200") EVENT(
                "200") "category_iids: 4 debug_annotations { uint_value: 2 name: \"from thread\" "
                       "} " BEGIN("6") NEW("6", "steal counter")
                           FLAGS EVENT("205") "category_iids: 6 " BEGIN("3")
                               FLAGS EVENT("210") "category_iids: 12 type: TYPE_INSTANT name_iid: "
                                                  "7 terminating_flow_ids: 77 } " NEW(
                                                      "7", "take answer increment") FLAGS END("290")
                                                      END("300") END("300");

static const char categories[] =
    "interned_data { event_categories { iid: 1 name: \"iteration\" } "
    "event_categories { iid: 2 name: \"phase\" } event_categories { iid: 3 name: \"park\" } "
    "event_categories { iid: 4 name: \"steal\" } event_categories { iid: 5 name: \"stand-in\" } "
    "event_categories { iid: 6 name: \"run\" } event_categories { iid: 7 name: \"stall\" } "
    "event_categories { iid: 8 name: \"loan\" } event_categories { iid: 9 name: \"flow\" } "
    "event_categories { iid: 10 name: \"flow\" } event_categories { iid: 11 name: \"flow\" } "
    "event_categories { iid: 12 name: \"flow\" } event_categories { iid: 13 name: \"crash\" } } ";

DOMT_TEST(protobuf_decodes_each_field)
{
    static char expected[16384];
    domi_recorder *recorder = make_recorder_of_system(a_system, "thread 0", 64);
    unsigned long process = ((unsigned long)getpid() << 20) + 1;
    domi_perfetto *perfetto = malloc(sizeof *perfetto);
    domi_record records[64];
    domi_record open[DOMI_RECORD_DEPTHS];

    domi_recorder_set_writing_thread(recorder);
    write_records_of_iteration(recorder);
    length = 0;
    domi_perfetto_begin_trace(perfetto, gather_bytes_of_trace, NULL, "prog\"ram", 1234567890123);
    domi_recorder_copy_open_things(recorder, open);
    domi_perfetto_write_thread(perfetto, recorder, records,
                               domi_recorder_copy_records(recorder, 0, records), open);
    ck_assert_int_eq(domi_perfetto_end_trace(perfetto), 0);
    free(perfetto);
    domt_traced_decode(bytes, length, &traced);
    ck_assert_str_eq(traced.process, "prog\"ram");
    ck_assert_uint_eq(traced.clock_ns, 1234567890123);
    snprintf(expected, sizeof expected,
             "packet { clock_snapshot { clocks { clock_id: 3 timestamp: 1234567890123 } "
             "primary_trace_clock: BUILTIN_CLOCK_MONOTONIC } trusted_packet_sequence_id: 1 } "
             "packet { trusted_packet_sequence_id: 1 track_descriptor { uuid: %lu "
             "process { pid: %d process_name: \"prog\\\"ram\" } } } "
             "packet { trusted_packet_sequence_id: 2 %ssequence_flags: 1 "
             "trace_packet_defaults { track_event_defaults { track_uuid: %lu } "
             "timestamp_clock_id: 3 } track_descriptor { uuid: %lu "
             "thread { pid: %d tid: %d thread_name: \"thread 0\" } parent_uuid: %lu } } %s",
             process, (int)getpid(), categories, process + 1, process + 1, (int)getpid(),
             (int)gettid(), process, events);
    if (domt_protoc_is_installed())
        ck_assert_str_eq(domt_protoc_decode_trace(bytes, length), expected);
    domi_recorder_free(recorder);
}

DOMT_TEST(protobuf_knows_each_field_of_a_long_trace)
{
    domi_recorder *recorder = make_recorder_of_system(a_system, "thread", 4096);

    for (uint64_t i = 0; i < 5000; i++) {
        domi_record_kind kind = DOMI_RECORD_ITERATION + (i % (DOMI_RECORD_KINDS - 1));
        const void *name = kind == DOMI_RECORD_PHASE ? (const void *)"state" : &counter;
        if (kind >= DOMI_RECORD_ASK_OUT)
            name = &increment;
        write_record(recorder, kind, i << 40, (i << 40) + 1, name,
                     kind == DOMI_RECORD_RUN || kind == DOMI_RECORD_STALL ? (uintptr_t)&increment
                                                                          : UINT64_MAX - i);
    }
    write_and_decode_trace(a_system, 0);
    ck_assert_uint_gt(traced.events, 4096);
    ck_assert_uint_eq(traced.unended, 0);
    if (domt_protoc_is_installed()) {
        /* The decoder prints a field that it does not know by its number, as "7: 5" or "7 {". So no
         * word may begin with a digit unless a colon stands before it. */
        for (const char *at = domt_protoc_decode_trace(bytes, length);
             (at = strchr(at, ' ')) != NULL; at++)
            ck_assert_msg(at[1] < '0' || at[1] > '9' || at[-1] == ':', "%.60s", at);
    }
    domi_recorder_free(recorder);
}

/* ---- What is written ------------------------------------------------------------------------- */

DOMT_TEST(threads_of_a_system_are_tracks)
{
    domi_recorder *first = make_recorder_of_system(a_system, "thread 0", 64);
    domi_recorder *second = make_recorder_of_system(a_system, "thread 1", 1024);
    domi_recorder *stranger = make_recorder_of_system(other, "thread 0 of the other", 64);

    write_records_of_iteration(first);
    domi_recorder_set_writing_thread(second);
    write_record(second, DOMI_RECORD_ASK_IN, 150, 150, &increment, 77);
    write_record(second, DOMI_RECORD_ANSWER_OUT, 155, 155, &increment, 77);
    write_record(second, DOMI_RECORD_RUN, 150, 160, &nameless, 0);
    write_record(second, DOMI_RECORD_STALL, 170, 180, NULL, 0);
    /* this run has the same texts as one on the first thread */
    write_record(second, DOMI_RECORD_RUN, 190, 195, &counter, (uintptr_t)&increment);
    write_record(stranger, DOMI_RECORD_PARK, 1, 2, NULL, 0);
    write_and_decode_trace(a_system, 0);
    ck_assert_uint_eq(traced.threads, 2);
    ck_assert_uint_eq(traced.events, 14 + 8);
    ck_assert_uint_eq(traced.unended, 0);
    ck_assert_uint_gt(traced.clock_ns, 0);
    ck_assert_str_eq(traced.process, program_invocation_short_name);

    const domt_traced_event *event =
        domt_traced_find_event(&traced, 'B', "run counter (increment)");
    ck_assert_ptr_nonnull(event);
    ck_assert_str_eq(event->thread, "thread 0");
    ck_assert_str_eq(event->category, "run");
    ck_assert_uint_eq(event->depth, 2);
    event = domt_traced_find_event(&traced, 'I', "take ask increment");
    ck_assert_ptr_nonnull(event);
    ck_assert_str_eq(event->thread, "thread 1");
    ck_assert_uint_eq(event->flow, 77);
    ck_assert(!event->is_last);
    ck_assert_uint_eq(event->depth, 1);
    ck_assert_uint_eq(domt_traced_find_event(&traced, 'I', "answer increment")->flow, 77);
    ck_assert(domt_traced_find_event(&traced, 'I', "take answer increment")->is_last);
    ck_assert_ptr_nonnull(domt_traced_find_event(&traced, 'B', "run ?"));
    ck_assert_ptr_nonnull(domt_traced_find_event(&traced, 'E', "stall in ?"));
    ck_assert_ptr_null(domt_traced_find_event(&traced, 'B', "park"));

    write_and_decode_trace(a_system, 300);
    ck_assert_uint_eq(traced.threads, 2);
    /* only two of the events, with their ends, did not end before 300 */
    ck_assert_uint_eq(traced.events, 4);
    write_and_decode_trace(other, 0);
    ck_assert_uint_eq(traced.threads, 1);
    ck_assert_ptr_nonnull(domt_traced_find_event(&traced, 'B', "park"));
    domi_recorder_free(first);
    domi_recorder_free(second);
    domi_recorder_free(stranger);
}

DOMT_TEST(each_kind_of_record_has_its_text)
{
    static const struct {
        domi_record_kind kind;
        const void *name;
        const char *text;
    } rows[] = {
        {DOMI_RECORD_ITERATION, NULL, "iteration"},
        {DOMI_RECORD_PHASE, "channels", "channels"},
        {DOMI_RECORD_PARK, NULL, "park"},
        {DOMI_RECORD_STEAL, &counter, "steal counter"},
        {DOMI_RECORD_STAND_IN, &counter, "stand in for counter"},
        {DOMI_RECORD_RUN, &counter, "run counter"},
        {DOMI_RECORD_STALL, &counter, "stall in counter"},
        {DOMI_RECORD_LOAN, &counter, "lend counter"},
        {DOMI_RECORD_ASK_OUT, &increment, "ask increment"},
        {DOMI_RECORD_ASK_IN, &increment, "take ask increment"},
        {DOMI_RECORD_ANSWER_OUT, &increment, "answer increment"},
        {DOMI_RECORD_ANSWER_IN, &increment, "take answer increment"},
        {DOMI_RECORD_CRASH, "SIGBUS", "crash by SIGBUS"},
    };
    char text[DOMI_LABEL_BYTES];

    ck_assert_uint_eq(sizeof rows / sizeof rows[0], DOMI_RECORD_KINDS - 1);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        domi_record record = {.kind_length = domi_record_pack_kind_and_length(rows[i].kind, 0, 0),
                              .name = rows[i].name};
        ck_assert_uint_eq(rows[i].kind, i + 1);
        ck_assert_uint_eq(domi_label_write_text(&record, text), strlen(rows[i].text));
        ck_assert_str_eq(text, rows[i].text);
    }
}

DOMT_TEST(long_label_of_a_record_is_cut_at_a_whole_character)
{
    static const char euro[] = "\xE2\x82\xAC";
    char name[4 * DOMI_LABEL_BYTES] = "";
    char text[DOMI_LABEL_BYTES];
    domi_record record = {.kind_length = domi_record_pack_kind_and_length(DOMI_RECORD_PHASE, 0, 0),
                          .name = name};

    for (size_t shift = 0; shift < 3; shift++) {
        memset(name, 'x', shift);
        for (size_t i = 0; i < DOMI_LABEL_BYTES; i++)
            memcpy(name + shift + 3 * i, euro, sizeof euro);
        size_t size = domi_label_write_text(&record, text);
        ck_assert_uint_eq(strlen(text), size);
        ck_assert_uint_ge(size, DOMI_LABEL_BYTES - 3);
        ck_assert_uint_eq((size - shift) % 3, 0);
        ck_assert_mem_eq(text, name, size);
    }
}

DOMT_TEST(texts_beyond_limit_of_shared_ones_stand_in_events)
{
    static char names[DOMI_LABELS_MAX + 50][16];
    domi_recorder *recorder = make_recorder_of_system(a_system, "thread 0", 4096);

    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < DOMI_LABELS_MAX + 50; i++) {
            uint64_t at_ns = 1000 * round + i;
            snprintf(names[i], sizeof names[i], "phase %u", i);
            write_record(recorder, DOMI_RECORD_PHASE, at_ns, at_ns + 1, names[i], 0);
        }
    }
    write_and_decode_trace(a_system, 0);
    ck_assert_uint_eq(traced.named, 2 * 50);
    ck_assert_uint_eq(traced.events, 4 * (DOMI_LABELS_MAX + 50));
    for (uint32_t i = 0; i < DOMI_LABELS_MAX + 50; i++)
        ck_assert_ptr_nonnull(domt_traced_find_event(&traced, 'E', names[i]));
    domi_recorder_free(recorder);
}

/* ---- Errors ---------------------------------------------------------------------------------- */

static uint32_t calls;

static int refuse_second_call_of_sink(void *error, const void *more, size_t count)
{
    return ++calls == 2 ? *(const int *)error : 0;
}

DOMT_TEST(a_sink_that_fails_is_not_called_again)
{
    domi_recorder *first = make_recorder_of_system(a_system, "thread 0", 4096);
    domi_recorder *second = make_recorder_of_system(a_system, "thread 1", 4096);
    int error = -ECONNRESET;

    for (uint64_t i = 0; i < 5000; i++) {
        write_record(first, DOMI_RECORD_PARK, i, i + 1, NULL, 0);
        write_record(second, DOMI_RECORD_PARK, i, i + 1, NULL, 0);
    }
    ck_assert_int_eq(domus_trace_write(a_system, 0, refuse_second_call_of_sink, &error),
                     -ECONNRESET);
    ck_assert_uint_eq(calls, 2);
    domi_recorder_free(first);
    domi_recorder_free(second);
}

DOMT_TEST(a_trace_without_memory_or_records_says_so)
{
    domi_recorder *recorder = make_recorder_of_system(a_system, "thread 0", 64);

    length = 0;
    ck_assert_int_eq(domus_trace_write(other, 0, gather_bytes_of_trace, NULL), -ENODATA);
    for (int i = 0; i < 2; i++) {
        domi_memory_fail_allocation_after(i, 0);
        ck_assert_int_eq(domus_trace_write(a_system, 0, gather_bytes_of_trace, NULL), -ENOMEM);
    }
    domi_memory_fail_allocation_after(-1, 0);
    ck_assert_uint_eq(length, 0);
    write_and_decode_trace(a_system, 0);
    ck_assert_uint_eq(traced.events, 0);
    domi_recorder_free(recorder);
    ck_assert_int_eq(domus_trace_write(a_system, 0, gather_bytes_of_trace, NULL), -ENODATA);
}

/* ---- A crash --------------------------------------------------------------------------------- */

static int crash_fd;

/* Handle the signal of a crash: only the first call writes the trace. (Here the same thread calls
 * again, in place of a second thread that crashes.) */
static void handle_crash_and_write_trace(int signal)
{
    errno = 12345;
    int first = domus_trace_crash_write(crash_fd);
    int second = domus_trace_crash_write(crash_fd);
    _exit(signal == SIGSEGV && first == 0 && second == -EBUSY && errno == 12345 ? 42 : 43);
}

/* Run two systems, and let a handler of one of them crash. */
static void crash_in_handler(void)
{
    domi_recorder *first = make_recorder_of_system(a_system, "thread 0", 64);
    domi_recorder *second = make_recorder_of_system(other, "thread 1", 64);
    struct sigaction action = {.sa_handler = handle_crash_and_write_trace};

    sigaction(SIGSEGV, &action, NULL);
    domi_recorder_set_writing_thread(first);
    for (uint64_t i = 1; i < 100; i++) {
        write_record(first, DOMI_RECORD_RUN, 10 * i, 10 * i + 5, &counter, 0);
        write_record(second, DOMI_RECORD_PARK, 10 * i, 10 * i + 10, NULL, 0);
    }
    domi_recorder_note_begin_of_thing(first, DOMI_RECORD_PHASE, 2000, "state", 0);
    domi_recorder_note_begin_of_thing(first, DOMI_RECORD_RUN, 2010, &counter,
                                      (uintptr_t)&increment);
    raise(SIGSEGV);
}

DOMT_TEST(a_crash_leaves_a_trace_that_names_the_last_run)
{
    domt_tree tree;
    char path[PATH_MAX];
    int status = 0;

    domt_tree_make(&tree);
    snprintf(path, sizeof path, "%s/trace", tree.root);
    crash_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_ge(crash_fd, 0);
    pid_t child = fork();
    if (child == 0) {
        crash_in_handler();
        _exit(44);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 42);
    ssize_t size = pread(crash_fd, bytes, sizeof bytes, 0);
    ck_assert_int_gt(size, 0);
    domt_traced_decode(bytes, (size_t)size, &traced);
    ck_assert_uint_eq(traced.threads, 2);
    ck_assert_uint_eq(traced.unended, 2);
    const domt_traced_event *last = domt_traced_find_event(&traced, 'B', "run counter (increment)");
    ck_assert_ptr_nonnull(last);
    ck_assert_uint_eq(last->at_ns, 2010);
    ck_assert_uint_eq(last->depth, 1);
    ck_assert_ptr_null(domt_traced_find_event(&traced, 'E', "run counter (increment)"));
    ck_assert_ptr_nonnull(domt_traced_find_event(&traced, 'E', "park"));
    length = (size_t)size;
    if (domt_protoc_is_installed())
        ck_assert_ptr_nonnull(
            strstr(domt_protoc_decode_trace(bytes, length), "\"run counter (increment)\""));
    close(crash_fd);
    domt_tree_remove_copy(&tree);
}

static void write_crash_without_recorder(void)
{
    int result = domus_trace_crash_write(-1);
    if (result != -ENODATA)
        _exit(43);
    _exit(42);
}

static void write_crash_to_bad_descriptor(void)
{
    domi_recorder *recorder = make_recorder_of_system(a_system, "thread 0", 64);
    write_records_of_iteration(recorder);
    _exit(domus_trace_crash_write(-1) == -EBADF ? 42 : 43);
}

static void check_child_exits_as_expected(void (*body)(void))
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        body();
        _exit(44);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 42);
}

DOMT_TEST(a_trace_of_a_crash_that_is_impossible_says_so)
{
    check_child_exits_as_expected(write_crash_without_recorder);
    check_child_exits_as_expected(write_crash_to_bad_descriptor);
}

DOMT_SUITE(60)
