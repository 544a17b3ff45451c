/* A thumbnail: a picture of 384 by 192 points, shrunk to 32 by 16 letters. */
#ifndef THUMBNAIL_H
#define THUMBNAIL_H

enum { THUMBNAIL_WIDTH = 32, THUMBNAIL_HEIGHT = 16 };

struct thumbnail {
    /* number of the picture, which says what is drawn */
    long number;
    char letters[THUMBNAIL_HEIGHT * (THUMBNAIL_WIDTH + 1)]; /* the thumbnail as lines of letters */
};

/* Draw the picture of a struct thumbnail, which takes 20 ms, and shrink it to letters. Returns
 * 0. */
int thumbnail_draw(void *thumbnail);

#endif
