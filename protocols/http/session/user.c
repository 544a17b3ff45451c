/* The parts of a chain that set the user of a request by the session in its cookie, and that refuse
 * requests without a user. */
#include <domus/http_user.h>

#include <errno.h>
#include <time.h>

static int check_options_of_session_user(const void *options)
{
    const domus_http_user_session *session = options;

    return session != NULL && session->keys != NULL ? 0 : -EINVAL;
}

static int set_user_by_cookie_of_session(domus_stack *stack, domus_http_exchange *exchange,
                                         domus_http_request *request, const void *options)
{
    const domus_http_user_session *session = options;
    char name[DOMUS_HTTP_USER_MAX];
    struct timespec now;

    (void)stack;
    (void)clock_gettime(CLOCK_REALTIME_COARSE, &now);
    int64_t size = domus_http_session_unseal(request->fields, session->cookie, session->keys,
                                             now.tv_sec, name, sizeof name);
    if (size > 0)
        /* a user's name that has a zero in it is ignored */
        (void)domus_http_set_user(exchange, name, (size_t)size);
    return 0;
}

static int refuse_request_without_user(domus_stack *stack, domus_http_exchange *exchange,
                                       domus_http_request *request, const void *options)
{
    (void)request, (void)options;
    if (exchange->user[0] != '\0')
        return 0;
    return domus_http_answer(stack, 401, NULL, NULL, NULL);
}

const domus_http_part domus_http_session_user = {.name = "session_user",
                                                 .check = check_options_of_session_user,
                                                 .enter = set_user_by_cookie_of_session};
const domus_http_part domus_http_wants_user = {.name = "wants_user",
                                               .enter = refuse_request_without_user};
