/* The tables of figures (domus/figures.h) that a system has, with the mutex under which they are
 * read. */
#ifndef DOMI_RUNTIME_SYSTEM_FIGURES_H
#define DOMI_RUNTIME_SYSTEM_FIGURES_H

#include <domus/figures.h>

#include <pthread.h>

/* The tables of figures of a system. A reader holds the mutex while it reads, so a table cannot be
 * removed while it is read. No thread that runs actors takes the mutex. */
typedef struct domi_figures {
    pthread_mutex_t mutex;
    uint32_t count;
    struct {
        const domus_figures_table *table;
        void *context;
    } each[DOMUS_FIGURES_TABLES_MAX];
} domi_figures;

#endif
