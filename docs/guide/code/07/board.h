/* The parts of the board. store.c has the scores; lines.c and web.c are its two ports. */
#ifndef BOARD_H
#define BOARD_H

#include <domus/domus.h>

#define SECOND     UINT64_C(1000000000)
#define NAME_BYTES 23      /* of a player's name, which has small letters and digits */
#define POINTS_MAX 1000000 /* of one game */

struct score {
    char name[NAME_BYTES + 1];
    int64_t points;
};

/* The asks. Each carries a struct score and is answered by one: `add` adds points, `show` and
 * `best` only look. `best` needs no name. */
extern const domus_type add_type, show_type, best_type;
extern const domus_type score_type;

/* store.c: who is asked for a player, and for the best one: both are the same here. */
extern domus_address board_keepers, board_referee;
/* Open the database. Prints what is wrong; returns 0; a negative errno. */
int board_begin(domus_system *system, const char *url);

/* lines.c */
extern const domus_behaviour board_lines;

/* web.c */
extern const domus_behaviour board_web;
void board_web_begin(uint32_t rate); /* requests of one address in a minute */
void board_web_end(void);            /* the system has stopped */

#endif
