/* The drawing of a thumbnail: a Julia set. */
#include "thumbnail.h"

enum { SHRINK = 12, TURNS_MAX = 256 };

/* Returns the number of steps after which a point leaves the Julia set of this number. */
static int brightness_of_point(double x, double y, long number)
{
    int turns = 0;

    for (; turns < TURNS_MAX && x * x + y * y < 4; turns++) {
        double next = x * x - y * y - 0.73 + (double)(number % 20) / 640;
        y = 2 * x * y + 0.156;
        x = next;
    }
    return turns;
}

/* Draw the picture of a thumbnail, and make each letter of the mean of 12 by 12 points. */
int thumbnail_draw(void *thumbnail)
{
    struct thumbnail *made = thumbnail;

    for (int row = 0; row < THUMBNAIL_HEIGHT; row++) {
        for (int column = 0; column < THUMBNAIL_WIDTH; column++) {
            long sum = 0;
            for (int i = 0; i < SHRINK * SHRINK; i++)
                sum += brightness_of_point((column * SHRINK + i % SHRINK) / 96.0 - 2,
                                           (row * SHRINK + i / SHRINK) / 96.0 - 1, made->number);
            made->letters[row * (THUMBNAIL_WIDTH + 1) + column] =
                " .:-=+*%@#"[sum * 9 / (SHRINK * SHRINK * TURNS_MAX)];
        }
        made->letters[row * (THUMBNAIL_WIDTH + 1) + THUMBNAIL_WIDTH] = '\n';
    }
    return 0;
}
