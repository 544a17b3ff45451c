/* The actor with a table of sessions (domus/http_sessions.h). Each ask is one call of the table. A
 * timer fires when the session that was not used for longest may have expired; without sessions
 * there is no timer. */
#include <domus/conversation.h>
#include <domus/http_sessions.h>
#include <domus/spawn.h>
#include <domus/timer.h>

#include <errno.h>

#define SWEPT 256u /* expired sessions that one timer event removes, at most */

typedef struct store {
    domus_http_sessions *sessions;
    bool has_timer;
} store;

static void release_value_of_session(void *payload)
{
    domus_slice_free(((domus_http_session *)payload)->value);
}

#define TYPE(text)                                                                                 \
    {                                                                                              \
        .name = (text), .size = sizeof(domus_http_session), .release = release_value_of_session    \
    }

const domus_type domus_http_session_begin_type = TYPE("http session begin");
const domus_type domus_http_session_find_type = TYPE("http session find");
const domus_type domus_http_session_put_type = TYPE("http session put");
const domus_type domus_http_session_renew_type = TYPE("http session renew");
const domus_type domus_http_session_end_type = TYPE("http session end");
const domus_type domus_http_session_type = TYPE("http session");

static const domus_type sweep_type = {.name = "http sessions sweep"};

/* Set a timer for the time at which the next session expires. If no timer can be set, the next ask
 * frees the session's memory. */
static void set_timer_for_next_expiry(domus_stack *stack, store *own, uint64_t due_ns)
{
    uint64_t now_ns = domus_now_ns(stack);
    uint64_t delay_ns = due_ns > now_ns ? due_ns - now_ns : 0;

    if (!own->has_timer && due_ns != UINT64_MAX)
        own->has_timer = domus_after(stack, delay_ns, &sweep_type, NULL, NULL) == 0;
}

static int remove_expired_sessions(domus_stack *stack, void *self, const void *payload)
{
    store *own = self;

    (void)payload;
    own->has_timer = false;
    set_timer_for_next_expiry(stack, own,
                              domus_http_sessions_sweep(own->sessions, domus_now_ns(stack), SWEPT));
    return 0;
}

/* Answer an ask with a session. The session's value is consumed. */
static int reply_with_session_or_free_value(domus_stack *stack, const domus_http_session *made)
{
    int error = domus_reply(stack, &domus_http_session_type, made);

    if (error != 0)
        domus_slice_free(made->value);
    return error;
}

static int begin_session_and_reply_with_id(domus_stack *stack, void *self, const void *payload)
{
    const domus_http_session *asked = payload;
    store *own = self;
    uint64_t now_ns = domus_now_ns(stack);
    domus_http_session made = {.value = {NULL, 0, 0}};
    domus_slice value;
    /* The value is copied, because it may be a slice of a request, all of whose bytes would be kept
     * in memory. */
    int error = domus_slice_copy(domus_slice_data(asked->value), asked->value.size, &value);

    if (error != 0)
        return error;
    error = domus_http_sessions_begin(own->sessions, now_ns, value, &made.id);
    if (error != 0) {
        domus_slice_free(value);
        return error;
    }
    set_timer_for_next_expiry(stack, own, domus_http_sessions_sweep(own->sessions, now_ns, 0));
    return reply_with_session_or_free_value(stack, &made);
}

/* Answer an ask with a copy of the value that the table has for the session's id. */
static int answer_with_value_of_session(domus_stack *stack, store *own, domus_http_session made)
{
    domus_slice value;
    int error = domus_http_sessions_find(own->sessions, domus_now_ns(stack), &made.id, &value);

    if (error == 0)
        error = domus_slice_keep(value, &made.value);
    return error != 0 ? error : reply_with_session_or_free_value(stack, &made);
}

static int reply_with_session_of_id(domus_stack *stack, void *self, const void *payload)
{
    const domus_http_session *asked = payload;

    return answer_with_value_of_session(stack, self, (domus_http_session){.id = asked->id});
}

static int store_copied_value_in_session(domus_stack *stack, void *self, const void *payload)
{
    const domus_http_session *asked = payload;
    store *own = self;
    domus_slice value;
    int error = domus_slice_copy(domus_slice_data(asked->value), asked->value.size, &value);

    if (error != 0)
        return error;
    error = domus_http_sessions_put(own->sessions, domus_now_ns(stack), &asked->id, value);
    if (error != 0) {
        domus_slice_free(value);
        return error;
    }
    return reply_with_session_or_free_value(stack, &(const domus_http_session){.id = asked->id});
}

static int renew_id_and_reply_with_session(domus_stack *stack, void *self, const void *payload)
{
    const domus_http_session *asked = payload;
    store *own = self;
    domus_http_session made = {.value = {NULL, 0, 0}};
    int error = domus_http_sessions_renew(own->sessions, domus_now_ns(stack), &asked->id, &made.id);

    return error != 0 ? error : answer_with_value_of_session(stack, own, made);
}

static int end_session_of_id_and_reply(domus_stack *stack, void *self, const void *payload)
{
    const domus_http_session *asked = payload;
    store *own = self;
    int error = domus_http_sessions_end(own->sessions, domus_now_ns(stack), &asked->id);

    return error != 0 ? error
                      : reply_with_session_or_free_value(
                            stack, &(const domus_http_session){.id = asked->id});
}

static void free_session_table_at_stop(domus_stack *stack, void *self)
{
    store *own = self;

    (void)stack;
    own->sessions = domus_http_sessions_close(own->sessions);
}

static const domus_behaviour behaviour = {
    .name = "http sessions",
    .kind = DOMUS_STATE,
    .state_size = sizeof(store),
    .on =
        (const domus_on[]){
            {.type = &domus_http_session_find_type, .handle = reply_with_session_of_id},
            {.type = &domus_http_session_put_type, .handle = store_copied_value_in_session},
            {.type = &domus_http_session_begin_type, .handle = begin_session_and_reply_with_id},
            {.type = &domus_http_session_renew_type, .handle = renew_id_and_reply_with_session},
            {.type = &domus_http_session_end_type, .handle = end_session_of_id_and_reply},
            {.type = &sweep_type, .handle = remove_expired_sessions},
            {.type = NULL},
        },
    .on_stop = free_session_table_at_stop,
};

int domus_http_sessions_spawn(domus_stack *stack, const domus_http_sessions_options *options,
                              domus_address *ret_store)
{
    store own = {.sessions = NULL};
    int error = domus_http_sessions_open(options, &own.sessions);

    if (error != 0)
        return error;
    error = domus_spawn(stack, &behaviour, &own, ret_store);
    if (error != 0)
        (void)domus_http_sessions_close(own.sessions);
    return error;
}

int domus_outside_http_sessions_spawn(domus_system *system,
                                      const domus_http_sessions_options *options,
                                      domus_address *ret_store)
{
    store own = {.sessions = NULL};
    int error = domus_http_sessions_open(options, &own.sessions);

    if (error != 0)
        return error;
    error = domus_outside_spawn(system, &behaviour, &own, ret_store);
    if (error != 0)
        (void)domus_http_sessions_close(own.sessions);
    return error;
}
