/* The types of messages that travel to other nodes, and the picklers of answers (travel.h). */
#include "travel.h"

#include "desk.h"
#include "gift.h"
#include "legacy.h"
#include "pubsub.h"
#include "transaction.h"
#include "wait.h"
#include "watch.h"

#include <errno.h>
#include <string.h>

/* --- answers ---------------------------------------------------------------------------------- */

static int pickle_short_string(domus_pickle_writer *writer, const void *payload)
{
    const domus_resp_short *text = payload;

    return domus_pickle_put_bytes(writer, text->bytes, text->size);
}

static int unpickle_short_string(domus_pickle_reader *reader, void *payload, uint32_t version)
{
    domus_resp_short *text = payload;
    domus_slice bytes = {NULL, 0, 0};
    int error = domus_pickle_get_slice(reader, DOMUS_RESP_SHORT_MAX, &bytes);

    (void)version;
    if (error != 0)
        return error;
    text->size = (uint8_t)bytes.size;
    if (bytes.size != 0)
        memcpy(text->bytes, domus_slice_data(bytes), bytes.size);
    domus_slice_free(bytes);
    return 0;
}

static int pickle_slice_answer(domus_pickle_writer *writer, const void *payload)
{
    const domus_slice *slice = payload;

    return domus_pickle_put_bytes(writer, domus_slice_data(*slice), slice->size);
}

static int unpickle_slice_answer(domus_pickle_reader *reader, void *payload, uint32_t version)
{
    (void)version;
    return domus_pickle_get_slice(reader, DOMUS_SLICE_MAX, payload);
}

/* The texts of simple strings in answers. They are constants of the program, so a reader finds them
 * by their text. */
static const char *const simple_texts[] = {"hash", "list", "none", "string"};

static int pickle_simple_string(domus_pickle_writer *writer, const void *payload)
{
    return domus_pickle_put_text(writer, ((const domus_resp_simple *)payload)->text);
}

static int unpickle_simple_string(domus_pickle_reader *reader, void *payload, uint32_t version)
{
    char text[16] = "";
    int error = domus_pickle_get_text(reader, text, sizeof text);

    (void)version;
    for (size_t i = 0; i < sizeof simple_texts / sizeof simple_texts[0] && error == 0; i++) {
        if (strcmp(text, simple_texts[i]) != 0)
            continue;
        ((domus_resp_simple *)payload)->text = simple_texts[i];
        return 0;
    }
    return error != 0 ? error
                      : domus_pickle_reject(reader, -EPROTO, "'%s' is no answer of a shard", text);
}

static int pickle_error_answer(domus_pickle_writer *writer, const void *payload)
{
    const domus_resp_error *error = payload;

    return domus_pickle_put_chars(writer, error->text, strnlen(error->text, sizeof error->text));
}

static int unpickle_error_answer(domus_pickle_reader *reader, void *payload, uint32_t version)
{
    domus_resp_error *error = payload;
    char text[sizeof error->text + 1] = "";
    int result = domus_pickle_get_text(reader, text, sizeof text);

    (void)version;
    for (size_t i = 0; text[i] != '\0'; i++) {
        if (text[i] == '\r' || text[i] == '\n')
            text[i] = ' ';
    }
    memcpy(error->text, text, sizeof error->text);
    return result;
}

/* Write an answer that was built. One that is too large for another node becomes an error that says
 * so. */
static int pickle_built_reply_or_error(domus_pickle_writer *writer, const void *payload)
{
    static const char too_large[] = "-ERR the answer is larger than 500 KiB, and its keys are on "
                                    "another node of the cluster\r\n";
    const domus_resp_reply *reply = payload;
    bool fits = reply->bytes.size <= KV_TRAVEL_MAX;

    (void)domus_pickle_put_array(writer, 3);
    (void)domus_pickle_put_bytes(writer, fits ? domus_slice_data(reply->bytes) : too_large,
                                 fits ? reply->bytes.size : sizeof too_large - 1);
    (void)domus_pickle_put_uint(writer, fits ? reply->values : 1);
    return domus_pickle_put_uint(writer, fits ? reply->form : DOMUS_RESP_EXACT);
}

static int unpickle_built_reply(domus_pickle_reader *reader, void *payload, uint32_t version)
{
    domus_resp_reply *reply = payload;
    uint64_t values = 0, form = 0;
    uint32_t count = 0;

    (void)version;
    (void)domus_pickle_get_array(reader, 3, &count);
    (void)domus_pickle_get_slice(reader, DOMUS_SLICE_MAX, &reply->bytes);
    (void)domus_pickle_get_uint(reader, 0, UINT32_MAX, &values);
    int error = domus_pickle_get_uint(reader, 0, DOMUS_RESP_ONLY_3, &form);
    reply->values = (uint32_t)values;
    reply->form = (uint8_t)form;
    return error;
}

/* --- tables ----------------------------------------------------------------------------------- */

static const domus_pickle_field integer_fields[] = {
    {DOMUS_PICKLE(1, domus_resp_integer, value, INT(0)), .required = true},
};
static const domus_pickle_table integer_table =
    DOMUS_PICKLE_TABLE(domus_resp_integer, integer_fields);

static const domus_pickle_field question_fields[] = {
    {DOMUS_PICKLE(1, struct kv_question, kind, UINT_RANGE(0, KV_LIMIT_MEMORY, 0)),
     .required = true},
    {DOMUS_PICKLE(2, struct kv_question, value, UINT(0))},
};
static const domus_pickle_table question_table =
    DOMUS_PICKLE_TABLE(struct kv_question, question_fields);

static const domus_pickle_field figures_fields[] = {
    {DOMUS_PICKLE(1, struct kv_figures, keys, UINT(0))},
    {DOMUS_PICKLE(2, struct kv_figures, expiring, UINT(0))},
    {DOMUS_PICKLE(3, struct kv_figures, expired, UINT(0))},
    {DOMUS_PICKLE(4, struct kv_figures, hits, UINT(0))},
    {DOMUS_PICKLE(5, struct kv_figures, misses, UINT(0))},
    {DOMUS_PICKLE(6, struct kv_figures, used_bytes, UINT(0))},
    {DOMUS_PICKLE(7, struct kv_figures, waiting, UINT(0))},
};
static const domus_pickle_table figures_table =
    DOMUS_PICKLE_TABLE(struct kv_figures, figures_fields);

static const domus_pickle_field unblock_fields[] = {
    {DOMUS_PICKLE(1, struct kv_unblock, who, ADDRESS), .required = true},
    {DOMUS_PICKLE(2, struct kv_unblock, why, UINT_RANGE(0, KV_BY_END, 0))},
};
static const domus_pickle_table unblock_table =
    DOMUS_PICKLE_TABLE(struct kv_unblock, unblock_fields);

static const domus_pickle_field published_fields[] = {
    {DOMUS_PICKLE(1, struct kv_published, receivers, INT(0))},
    {DOMUS_PICKLE(2, struct kv_published, number, UINT(0))},
};
static const domus_pickle_table published_table =
    DOMUS_PICKLE_TABLE(struct kv_published, published_fields);

static const domus_pickle_field fetch_fields[] = {
    {DOMUS_PICKLE(1, struct kv_fetch, shard, UINT(0)), .required = true},
    {DOMUS_PICKLE(2, struct kv_fetch, looks, BOOL(false))},
};
static const domus_pickle_table fetch_table = DOMUS_PICKLE_TABLE(struct kv_fetch, fetch_fields);

static const domus_pickle_field piece_fields[] = {
    {DOMUS_PICKLE(1, struct kv_piece_of_legacy, fence, UINT(0))},
    {DOMUS_PICKLE(2, struct kv_piece_of_legacy, bytes, SLICE(KV_LEGACY_PIECE))},
    {DOMUS_PICKLE(3, struct kv_piece_of_legacy, ends_commands, BOOL(false))},
    {DOMUS_PICKLE(4, struct kv_piece_of_legacy, ends_all, BOOL(false))},
};
static const domus_pickle_table piece_table =
    DOMUS_PICKLE_TABLE(struct kv_piece_of_legacy, piece_fields);

static const domus_pickle_field keep_fields[] = {
    {DOMUS_PICKLE(1, struct kv_keep, shard, UINT(0)), .required = true},
    {DOMUS_PICKLE(2, struct kv_keep, fence, UINT(0)), .required = true},
    {DOMUS_PICKLE(3, struct kv_keep, porter, ADDRESS), .required = true},
};
static const domus_pickle_table keep_table = DOMUS_PICKLE_TABLE(struct kv_keep, keep_fields);

static const domus_pickle_field lookup_fields[] = {
    {DOMUS_PICKLE(1, struct kv_lookup, shards, UINT(0))},
    {DOMUS_PICKLE(2, struct kv_lookup, check, UINT(0))},
};
static const domus_pickle_table lookup_table = DOMUS_PICKLE_TABLE(struct kv_lookup, lookup_fields);

static const domus_pickle_field here_fields[] = {
    {DOMUS_PICKLE(1, struct kv_here, shard, ADDRESS), .required = true},
};
static const domus_pickle_table here_table = DOMUS_PICKLE_TABLE(struct kv_here, here_fields);

/* --- all of them ------------------------------------------------------------------------------ */

#define BY_TABLE(of, as, by)                                                                       \
    {                                                                                              \
        .type = &(of), .name = (as), .version = 1, .table = &(by)                                  \
    }
#define BY_CODE(of, as, put, get)                                                                  \
    {                                                                                              \
        .type = &(of), .name = (as), .version = 1, .write = (put), .read = (get)                   \
    }
#define WITHOUT_PAYLOAD(of, as)                                                                    \
    {                                                                                              \
        .type = &(of), .name = (as), .version = 1                                                  \
    }

const domus_pickler kv_picklers[] = {
    BY_CODE(domus_resp_command_type, "kv.command", kv_pickle_payload_of_command,
            kv_unpickle_payload_of_command),
    BY_CODE(kv_exec_type, "kv.exec", kv_pickle_transaction_to_run, kv_unpickle_transaction_to_run),
    BY_CODE(kv_executed_type, "kv.executed", kv_pickle_executed_transaction,
            kv_unpickle_executed_transaction),
    BY_CODE(kv_publish_type, "kv.publish", kv_pickle_payload_of_command,
            kv_unpickle_command_publish),
    BY_TABLE(kv_published_type, "kv.published", published_table),
    WITHOUT_PAYLOAD(kv_greeting_type, "kv.greeting"),
    BY_TABLE(kv_fetch_type, "kv.fetch", fetch_table),
    BY_TABLE(kv_legacy_piece_type, "kv.legacy_piece", piece_table),
    WITHOUT_PAYLOAD(kv_drop_type, "kv.drop"),
    BY_TABLE(kv_keep_type, "kv.keep", keep_table),
    BY_CODE(kv_gift_type, "kv.gift", kv_pickle_gift, kv_unpickle_gift),
    BY_CODE(domus_resp_short_type, "kv.short", pickle_short_string, unpickle_short_string),
    BY_CODE(domus_resp_simple_type, "kv.simple", pickle_simple_string, unpickle_simple_string),
    BY_CODE(domus_resp_error_type, "kv.error", pickle_error_answer, unpickle_error_answer),
    BY_CODE(domus_resp_reply_type, "kv.reply", pickle_built_reply_or_error, unpickle_built_reply),
    BY_CODE(domus_slice_type, "kv.bulk", pickle_slice_answer, unpickle_slice_answer),
    BY_TABLE(domus_resp_integer_type, "kv.integer", integer_table),
    BY_TABLE(kv_question_type, "kv.question", question_table),
    BY_TABLE(kv_figures_type, "kv.figures", figures_table),
    BY_TABLE(kv_unblock_type, "kv.unblock", unblock_table),
    BY_TABLE(kv_lookup_type, "kv.lookup", lookup_table),
    BY_TABLE(kv_here_type, "kv.here", here_table),
    WITHOUT_PAYLOAD(domus_resp_ok_type, "kv.ok"),
    WITHOUT_PAYLOAD(domus_resp_null_type, "kv.null"),
    WITHOUT_PAYLOAD(domus_resp_null_array_type, "kv.null_array"),
    WITHOUT_PAYLOAD(kv_unwatch_type, "kv.unwatch"),
    WITHOUT_PAYLOAD(kv_leave_type, "kv.leave"),
    {.type = NULL},
};
