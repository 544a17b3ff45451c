/* Answers and events that wait at a seat (seat.h) until its owner receives them. */
#ifndef DOMI_RUNTIME_OUTSIDE_SEAT_MAIL_H
#define DOMI_RUNTIME_OUTSIDE_SEAT_MAIL_H

#include "house/message/manager.h"

#include <domus/outsider.h>

/* An answer or an event that waits to be received. */
typedef struct domi_outside_mail domi_outside_mail;

struct domi_outside_mail {
    domi_outside_mail *next;
    domi_outside_mail *previous;
    domus_outside_message message;
    domus_watch watch;       /* for a spare: the watch whose event will use it */
    domi_envelope *envelope; /* holds the payload of a reply; NULL: the payload is below, or none */
    bool counted;            /* an event that counts for the bound, as no watch has paid for it */
    bool owned;              /* the payload of an event owns something that was taken for it */
    int error;               /* the payload of a failure */
    alignas(8) unsigned char payload[]; /* the payload of an event */
};

/* A list of them, the oldest first. */
typedef struct domi_outside_mails {
    domi_outside_mail *first;
    domi_outside_mail *last;
} domi_outside_mails;

/* Lists of mail, and the end of one piece of it. */
void domi_outside_mail_add(domi_outside_mails *list, domi_outside_mail *mail);
void domi_outside_mail_remove(domi_outside_mails *list, domi_outside_mail *mail);
void domi_outside_mail_free(domi_manager *manager, domi_outside_mail *mail);
void domi_outside_mails_free(domi_manager *manager, domi_outside_mails *list);

#endif
