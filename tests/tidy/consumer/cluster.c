/* A user's program with libdomus-cluster: it pickles a message with several sorts of fields, and
 * returns 0 if it reads the same values again. */
#include <domus/pickle.h>

#include <string.h>

struct point {
    int32_t x;
    double y;
};

struct shape {
    uint64_t id;
    char name[8];
    struct point points[4];
    uint32_t point_count;
    bool has_tag;
    uint8_t tag;
};

static const domus_pickle_field point_fields[] = {
    {DOMUS_PICKLE(1, struct point, x, INT_RANGE(-10, 10, 0))},
    {DOMUS_PICKLE(2, struct point, y, REAL(0.5))},
};
static const domus_pickle_table point_table = DOMUS_PICKLE_TABLE(struct point, point_fields);

static const domus_pickle_field shape_fields[] = {
    {DOMUS_PICKLE(1, struct shape, id, UINT(0)), .required = true},
    {DOMUS_PICKLE(2, struct shape, name, TEXT("shape"))},
    {DOMUS_PICKLE_LIST(3, struct shape, points, point_count, STRUCT(point_table))},
    {DOMUS_PICKLE(4, struct shape, tag, UINT(0)), DOMUS_PICKLE_HAS(struct shape, has_tag)},
};
static const domus_pickle_table shape_table = DOMUS_PICKLE_TABLE(struct shape, shape_fields);

static const domus_type shape_type = {"shape", sizeof(struct shape), NULL};
static const domus_pickler list[] = {
    {.type = &shape_type, .version = 1, .table = &shape_table},
    {.type = NULL},
};

int main(void)
{
    domus_picklers *picklers = NULL;
    domus_appender appender = {0, 0, 0, 0, NULL};
    domus_slice bytes = {NULL, 0, 0};
    domus_pickled pickled;
    struct shape shape;
    struct shape read;
    char error[DOMUS_PICKLE_ERROR_MAX];

    memset(&shape, 0, sizeof shape);
    shape.id = 7;
    memcpy(shape.name, "square", 7);
    shape.point_count = 2;
    shape.points[0].x = -3;
    shape.points[1].y = 1.5;
    if (domus_picklers_new(list, error, sizeof error, &picklers) != 0 ||
        domus_pickle(picklers, NULL, &shape_type, &shape, &appender, error, sizeof error) != 0 ||
        domus_append_end(&appender, &bytes) != 0)
        return 1;
    if (domus_pickled_open(picklers, NULL, bytes, &pickled, error, sizeof error) != 0 ||
        domus_unpickle(&pickled, NULL, &read, error, sizeof error) != 0)
        return 2;
    domus_slice_free(bytes);
    domus_picklers_free(picklers);
    return memcmp(&shape, &read, sizeof shape) == 0 ? 0 : 3;
}
