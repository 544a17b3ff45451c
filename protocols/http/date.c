/* Writes the field Date of a message, whose text each thread makes once a second. */
#include "protocols/http/write.h"

#include <domus/http_date.h>

#include <time.h>

char *domi_http_put_date_field(char *to)
{
    static _Thread_local time_t second = -1;
    static _Thread_local char line[DOMI_HTTP_DATE_SIZE];
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME_COARSE, &now);
    if (now.tv_sec != second) {
        char text[DOMUS_HTTP_DATE_SIZE + 1];
        domus_http_date(now.tv_sec, text);
        char *end = DOMI_HTTP_PUT(line, "Date: ");
        end = domi_http_put_bytes(end, text, DOMUS_HTTP_DATE_SIZE);
        (void)DOMI_HTTP_PUT(end, "\r\n");
        second = now.tv_sec;
    }
    return domi_http_put_bytes(to, line, sizeof line);
}
