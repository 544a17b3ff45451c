/* Answers and events that wait at a seat (seat.h) until its owner receives them. */
#ifndef DOMI_RUNTIME_OUTSIDE_SEAT_MAIL_H
#define DOMI_RUNTIME_OUTSIDE_SEAT_MAIL_H

#include "house/message/manager.h"

#include <domus/outsider.h>

/* An answer or an event that waits to be received, or a place for one. */
typedef struct domi_outside_mail domi_outside_mail;

struct domi_outside_mail {
    domi_outside_mail *next;
    domi_outside_mail *previous;
    domus_outside_message message;
    domus_watch watch; /* in a place for an event: the watch whose event will use it */
    /* envelope with the payload of a reply; NULL: the payload is below, or there is none */
    domi_envelope *envelope;
    /* the event counts towards the bound on events, because no watch has allocated its place */
    bool counted;
    /* the payload of the event owns something that is still to be released */
    bool owned;
    int error;                          /* payload of a failed ask: its negative errno */
    alignas(8) unsigned char payload[]; /* payload of an event */
};

/* List of answers or events, the oldest first. */
typedef struct domi_outside_mails {
    domi_outside_mail *first;
    domi_outside_mail *last;
} domi_outside_mails;

/* Add an entry to a list, remove it, free it with what it owns, or free all entries of a list. */
void domi_outside_mail_add(domi_outside_mails *list, domi_outside_mail *mail);
void domi_outside_mail_remove(domi_outside_mails *list, domi_outside_mail *mail);
void domi_outside_mail_free(domi_manager *manager, domi_outside_mail *mail);
void domi_outside_mails_free(domi_manager *manager, domi_outside_mails *list);

#endif
