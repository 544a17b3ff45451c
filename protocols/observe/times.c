/* Writes calendar times as text (texts.h). */
#include "protocols/observe/texts.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#define SECOND_NS UINT64_C(1000000000)

void domi_observe_write_utc(uint64_t utc_ns, char text[DOMI_UTC_SIZE])
{
    time_t second = (time_t)(utc_ns / SECOND_NS);
    char day[24] = "";
    struct tm parts;

    if (gmtime_r(&second, &parts) != NULL)
        (void)strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(text, DOMI_UTC_SIZE, "%s.%03" PRIu64 "Z", day, utc_ns % SECOND_NS / 1000000);
}
