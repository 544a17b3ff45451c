/* A user's program with libdomus-json: it reads a struct from JSON, writes it, and returns 0 if
 * both succeed. */
#include <domus/json.h>
#include <domus/json_feed.h>
#include <domus/json_writer.h>

struct point {
    double x;
    uint32_t name_count;
    char names[2][8];
};

static const domus_json_field fields[] = {
    {DOMUS_JSON_REAL("x", struct point, x, -10, 10), .required = true},
    {DOMUS_JSON_LIST("names", struct point, names, name_count, TEXT)},
};
static const domus_json_table table = DOMUS_JSON_TABLE(struct point, fields);

int main(void)
{
    static const char text[] = "{\"x\":1.5,\"names\":[\"a\",\"b\"]}";
    domus_appender appender = {0};
    domus_json_error error;
    domus_slice bytes;
    struct point point;

    if (domus_json_check_table(&table, NULL, 0) != 0 ||
        domus_json_read(&table, NULL, text, sizeof text - 1, &point, NULL, &error) != 0 ||
        domus_json_write(&table, &point, &appender, &error) != 0 ||
        domus_append_end(&appender, &bytes) != 0)
        return 1;
    int result = domus_slice_equals(bytes, text, sizeof text - 1) ? 0 : 1;
    domus_slice_free(bytes);
    return result;
}
