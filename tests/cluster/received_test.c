/* A message is unpickled from the memory in which it was received. If slices are to share its page,
 * the bytes are first moved to a page of their own, and are read there. */
#include "tests/cluster/pickles.h"
#include "tests/support/suite.h"

#include <domus/pipeline.h>
#include <domus/stage_kit.h>

#include <string.h>

static const domus_length_options options = {.role = DOMUS_ROLE_SERVER, .width = 4};
static const domus_pipeline_stage stages[] = {{&domus_length_stage, &options}, {NULL, NULL}};
static const domus_pipeline pipeline = {.stages = stages};

/* Feed a kit with a message behind its length, so that the kit decodes it without a copy. */
static domus_stage_message receive_bytes_with_length(domus_stage_kit *kit, domus_slice bytes)
{
    domus_stage_message message;
    char length[4];

    for (int i = 0; i < 4; i++)
        length[i] = (char)(bytes.size >> (24 - 8 * i));
    ck_assert_int_eq(domus_stage_kit_feed(kit, length, sizeof length), 0);
    ck_assert_int_eq(domus_stage_kit_feed(kit, domus_slice_data(bytes), bytes.size), 0);
    ck_assert_int_eq(domus_stage_kit_next(kit, &message), 1);
    ck_assert_ptr_eq(message.type, &domus_packet_type);
    return message;
}

DOMT_TEST(message_is_read_on_where_its_page_was_moved)
{
    domus_pickle_context context = domt_addresses;
    domus_picklers *picklers = domt_make_picklers(domt_all_picklers);
    char error[DOMUS_PICKLE_ERROR_MAX] = "";
    domus_stage_kit *kit = NULL;
    domt_all all;
    domt_all read;

    context.share_min = 1;
    domt_all_fill_at_random(&all, 4, 3);
    ck_assert_uint_gt(all.slice.size, 0);
    /* long texts are cut, so that the message fits into the kit's window */
    for (uint16_t i = 0; i < all.text_count; i++) {
        if (all.texts[i] != NULL && strlen(all.texts[i]) > 100)
            all.texts[i][100] = '\0';
    }
    domus_slice bytes = domt_pickle_payload(picklers, &context, &domt_all_type, &all);
    ck_assert_int_eq(domus_stage_kit_new(&pipeline, &kit), 0);
    domus_stage_message message = receive_bytes_with_length(kit, bytes);
    const domus_slice *received = &((const domus_packet *)message.payload)->bytes;
    const char *before = domus_slice_data(*received);
    int result = domt_unpickle_message(picklers, &context, *received, &read, error, sizeof error);
    ck_assert_msg(result == 0, "%s", error);
    /* the bytes lie in a page of their own now */
    ck_assert_ptr_ne(domus_slice_data(*received), before);
    /* frees the memory in which the message came */
    domus_stage_kit_free(kit);
    ck_assert(domt_are_all_same(&all, &read));
    ck_assert(domus_slice_equals(read.slice, domus_slice_data(all.slice), all.slice.size));
    domus_slice_free(bytes);
    domt_all_free(&all);
    domt_all_free(&read);
    domus_picklers_free(picklers);
}

DOMT_SUITE(20)
