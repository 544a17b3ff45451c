/* Opens a consumer of JetStream: subscribes to its inbox, and makes the consumer on the server,
 * where it may exist already. */
#include "protocols/nats/js_pull.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int domi_js_subscribe_to_consumer_inbox(domus_stack *stack, const domi_js_consumer *consumer,
                                        domus_resumed *then)
{
    char subject[DOMI_JS_INBOX_SIZE + 2];
    domus_nats_subscribe subscribe;

    if (consumer->subscription != 0)
        /* the inbox is subscribed already, so the conversation waits for nothing and continues at
         * once */
        return domus_wait_all(stack, then);
    (void)snprintf(subject, sizeof subject, "%s.*", consumer->inbox);
    int error = domus_nats_subscribe_make(subject, NULL, &subscribe);
    if (error != 0)
        return error;
    subscribe.to = domus_self(stack);
    int result = domus_ask(stack, consumer->client, &domus_nats_subscribe_type, &subscribe, then);
    if (result < 0)
        domus_nats_subscribe_type.release(&subscribe);
    return result;
}

int domi_js_store_number_of_subscription(domi_js_consumer *consumer, const domus_answer *answer)
{
    if (consumer->subscription != 0)
        return answer->error;
    int error = answer->error;
    if (error == 0 && answer->type != &domus_nats_subscription_type)
        error = -EPROTO;
    if (error == 0)
        consumer->subscription = ((const domus_nats_subscription *)answer->payload)->number;
    else
        /* the client may have subscribed all the same, so a new inbox is used, and nothing is
         * sent to the old one */
        domi_js_make_inbox_name(&consumer->random, consumer->inbox);
    return error;
}

int domi_js_make_consumer_on_server(domus_stack *stack, const domi_js_consumer *consumer,
                                    domus_resumed *then)
{
    domus_slice body = {NULL, 0, 0};
    int error = domus_slice_keep(consumer->create, &body);

    if (error != 0)
        return error;
    if (!consumer->is_shared)
        return domi_js_ask_server(stack, consumer->client, body, then, "$JS.API.CONSUMER.CREATE.%s",
                                  consumer->stream);
    return domi_js_ask_server(stack, consumer->client, body, then,
                              "$JS.API.CONSUMER.DURABLE.CREATE.%s.%s", consumer->stream,
                              consumer->name);
}

/* Store the consumer's name that the server tells. It is checked first, because it becomes a part
 * of subjects. */
static int store_name_of_consumer(domi_js_consumer *consumer, const json_t *json)
{
    const char *name = NULL;
    size_t size = 0;
    int error = domi_js_get_text(json, "name", &name, &size);

    if (error != 0 || !domi_js_is_valid_stream_name(name) || strlen(name) != size)
        return -EPROTO;
    if (consumer->is_shared)
        return strcmp(name, consumer->name) == 0 ? 0 : -EPROTO;
    memcpy(consumer->name, name, size + 1);
    return 0;
}

int domi_js_store_name_of_made_consumer(domi_js_consumer *consumer, const domus_answer *answer)
{
    json_t *json = NULL;
    int error = domi_js_read_api_answer(answer, DOMUS_NATS_ANSWER_MAX, &json);

    if (error != 0)
        return error;
    error = store_name_of_consumer(consumer, json);
    json_decref(json);
    consumer->is_open = error == 0;
    return error;
}
