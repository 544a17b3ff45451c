/* runtime/files: each allocation of a chain of operations fails once. The conversation hears of it,
 * and nothing is left behind. */
#include "tests/runtime/files.h"

#include "base/memory.h"

#include <errno.h>

static const domus_type go_type = {.name = "go"};

static uint32_t ended;
static int last_error;
static char path[PATH_MAX];

typedef struct chain {
    domus_file *file;
    domus_slice bytes;
    int step;
} chain;

/* Take what an answer owns. */
static void take(domus_stack *stack, chain *frame, const domus_answer *answer)
{
    if (answer->type == &domus_file_type)
        frame->file = *(domus_file *const *)answer->payload;
    else if (answer->type == &domus_slice_type)
        frame->bytes = *(const domus_slice *)answer->payload;
    else
        return;
    (void)domus_take_answer(stack, answer);
}

static int end(chain *frame, int error)
{
    domus_file_close(frame->file);
    domus_slice_free(frame->bytes);
    last_error = error;
    ended++;
    return 0;
}

static int go_on(domus_stack *stack, void *self, const domus_answer *answer);

/* Begin the next operation; a long path takes an envelope of its own. */
static int begin_step(domus_stack *stack, chain *frame)
{
    domus_slice bytes = frame->bytes;
    int result;

    switch (frame->step++) {
    case 0:
        return domus_file_open(stack, NULL, path,
                               DOMUS_FILE_READ | DOMUS_FILE_WRITE | DOMUS_FILE_CREATE, 0600, go_on);
    case 1:
        result = domus_slice_copy(path, 1000, &bytes);
        if (result != 0)
            return result;
        result = domus_file_write(stack, frame->file, 0, bytes, go_on);
        if (result < 0)
            domus_slice_free(bytes);
        return result;
    case 2:
        return domus_file_read(stack, frame->file, 0, 65536, go_on);
    case 3: /* the bytes that were read are written again */
        frame->bytes = (domus_slice){NULL, 0, 0};
        result = domus_file_write(stack, frame->file, 5, bytes, go_on);
        if (result < 0)
            domus_slice_free(bytes);
        return result;
    case 4:
        return domus_file_stat(stack, frame->file, go_on);
    case 5:
        return domus_file_list(stack, frame->file, 0, go_on); /* -ENOTDIR */
    default:
        return domus_file_remove(stack, NULL, path, 0, go_on);
    }
}

static int go_on(domus_stack *stack, void *self, const domus_answer *answer)
{
    chain *frame = domus_frame(stack);

    if (answer->error != 0 && answer->error != -ENOTDIR)
        return end(frame, answer->error);
    take(stack, frame, answer);
    if (frame->step == 7)
        return end(frame, 0);
    int result = begin_step(stack, frame);
    return result < 0 ? end(frame, result) : result;
}

static int go(domus_stack *stack, void *self, const void *payload)
{
    int result = begin_step(stack, domus_frame(stack));
    return result < 0 ? end(domus_frame(stack), result) : result;
}

static const domus_behaviour chained = {
    .name = "chained", .on = (const domus_on[]){{&go_type, go, sizeof(chain)}, {NULL, NULL, 0}}};

DOMT_TEST(each_allocation_may_fail)
{
    uint32_t failures = 0;
    uint32_t clean = 0; /* runs in a row without a failure: there are no more allocations */

    for (int64_t count = 0; clean < 8; count++) {
        domt_files_begin(NULL, true);
        size_t length = (size_t)snprintf(path, sizeof path, "%s", domt_files_now.tree.root);
        while (length < 3000)
            length += (size_t)snprintf(path + length, sizeof path - length, "/.");
        (void)snprintf(path + length, sizeof path - length, "/one");
        ended = 0;
        domt_notice(domt_files_now.system, domt_spawn(domt_files_now.system, 1, &chained, NULL),
                    &go_type, NULL);
        domi_memory_fail_after(count, 0);
        ck_assert_int_eq(domus_testkit_run(domt_files_now.kit), 0);
        domi_memory_fail_after(-1, 0);
        bool has_failed = ended == 0 || last_error == -ENOMEM; /* 0: there was no conversation */
        ck_assert(has_failed || last_error == 0);
        failures += has_failed;
        clean = has_failed ? 0 : clean + 1;
        domt_files_end();
    }
    ck_assert_uint_ge(failures, 8);
}

DOMT_SUITE(60)
