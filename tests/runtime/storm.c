/* The counts and checks of the storm, and the crowd of addresses (tests/runtime/storm.h). */
#include "tests/runtime/storm.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEMORY_BYTES 48u
#define LARGEST      3000u
#define TICKETS_MAX  (1u << 20)
#define ALIVE        'a'
#define DEAD         'd'

_Atomic uint64_t domt_storm_did[DOMT_DEEDS];
_Atomic int64_t domt_storm_budget;

static _Atomic uint64_t made, released, freed;
static char first_wrong[160];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

void domt_storm_record_wrong(const char *what)
{
    pthread_mutex_lock(&mutex);
    if (first_wrong[0] == '\0')
        snprintf(first_wrong, sizeof first_wrong, "%s", what);
    pthread_mutex_unlock(&mutex);
}

/* --- payloads --------------------------------------------------------------------------------- */

void domt_storm_check_payload(const void *payload)
{
    const domt_load_text_as_file *load = payload;
    if (load->memory == NULL || load->memory[0] != ALIVE)
        domt_storm_record_wrong("a payload was looked at that is gone");
}

static void end_memory_of_payload(const domt_load_text_as_file *load)
{
    domt_storm_check_payload(load);
    if (load->memory != NULL)
        memset(load->memory, DEAD, MEMORY_BYTES);
    free(load->memory);
}

static void release_payload(void *payload)
{
    const domt_load_text_as_file *load = payload;
    if (load->memory == NULL) /* the payload of a new message was never filled */
        return;
    end_memory_of_payload(load);
    atomic_fetch_add(&released, 1);
}

const domus_type domt_storm_note = {"note", sizeof(domt_load_text_as_file), release_payload};
const domus_type domt_storm_letter = {"letter", 600, release_payload};
const domus_type domt_storm_question = {"question", sizeof(domt_load_text_as_file),
                                        release_payload};
const domus_type domt_storm_essay = {"essay", LARGEST, release_payload};
const domus_type domt_storm_answer = {"answer", sizeof(domt_load_text_as_file), release_payload};
const domus_type domt_storm_volume = {"volume", 2000, release_payload};
const domus_type domt_storm_alarm = {"alarm", sizeof(domt_load_text_as_file), release_payload};
const domus_type domt_storm_news = {"news", 100, release_payload};
const domus_type domt_storm_unknown = {"unknown", sizeof(domt_load_text_as_file), release_payload};

void *domt_storm_new_payload(uint64_t depth)
{
    static _Thread_local union {
        domt_load_text_as_file load;
        char bytes[LARGEST];
    } payload;

    payload.load = (domt_load_text_as_file){malloc(MEMORY_BYTES), depth};
    memset(payload.load.memory, ALIVE, MEMORY_BYTES);
    atomic_fetch_add(&made, 1);
    return &payload;
}

void domt_storm_free_payload(domt_load_text_as_file load)
{
    end_memory_of_payload(&load);
    atomic_fetch_add(&freed, 1);
}

int domt_storm_free_if_failed(int result, const void *payload)
{
    if (result < 0)
        domt_storm_free_payload(*(const domt_load_text_as_file *)payload);
    return result;
}

/* --- asks ------------------------------------------------------------------------------------- */

enum { NONE, ASKED, ANSWERED, ABANDONED, UNDONE };

static _Atomic uint8_t tickets[TICKETS_MAX];
static _Atomic uint32_t tickets_count;

uint32_t domt_ticket_new(void)
{
    uint32_t ticket = atomic_fetch_add(&tickets_count, 1) + 1;
    if (ticket >= TICKETS_MAX)
        return 0;
    atomic_store(&tickets[ticket], ASKED);
    return ticket;
}

static void end_open_ticket(uint32_t ticket, uint8_t as)
{
    if (atomic_exchange(&tickets[ticket], as) != ASKED)
        domt_storm_record_wrong("an ask was answered twice, or after its conversation had ended");
}

void domt_ticket_answer(uint32_t ticket)
{
    end_open_ticket(ticket, ANSWERED);
}

void domt_ticket_abandon(uint32_t ticket)
{
    domt_storm_count_deed(DOMT_DID_ABANDON, true);
    end_open_ticket(ticket, ABANDONED);
}

void domt_ticket_undo(uint32_t ticket)
{
    end_open_ticket(ticket, UNDONE);
}

/* --- the run ---------------------------------------------------------------------------------- */

static uint32_t tickets_used_count(void)
{
    uint32_t count = atomic_load(&tickets_count) + 1;
    return count < TICKETS_MAX ? count : TICKETS_MAX;
}

void domt_storm_begin(int64_t budget)
{
    for (uint32_t i = 0; i < tickets_used_count(); i++)
        atomic_store(&tickets[i], NONE);
    atomic_store(&tickets_count, 0);
    atomic_store(&made, 0);
    atomic_store(&released, 0);
    atomic_store(&freed, 0);
    atomic_store(&domt_storm_budget, budget);
    first_wrong[0] = '\0';
    for (uint32_t i = 0; i < DOMT_STORM_CROWD; i++)
        domt_storm_crowd_set(i, (domus_address){NULL, 0});
}

const char *domt_storm_end(bool killed)
{
    static char text[200];
    uint64_t open = 0;

    for (uint32_t i = 0; i < tickets_used_count(); i++)
        open += atomic_load(&tickets[i]) == ASKED;
    if (first_wrong[0] != '\0')
        return first_wrong;
    if (atomic_load(&made) == atomic_load(&released) + atomic_load(&freed) && (open == 0 || killed))
        return "";
    snprintf(text, sizeof text,
             "%" PRIu64 " payloads were made, %" PRIu64 " released by the library and %" PRIu64
             " freed by actors; %" PRIu64 " asks were never answered",
             atomic_load(&made), atomic_load(&released), atomic_load(&freed), open);
    return text;
}

/* --- the crowd -------------------------------------------------------------------------------- */

static domus_address crowd[DOMT_STORM_CROWD];

void domt_storm_crowd_set(uint32_t place, domus_address address)
{
    pthread_mutex_lock(&mutex);
    crowd[place % DOMT_STORM_CROWD] = address;
    pthread_mutex_unlock(&mutex);
}

domus_address domt_storm_crowd_at(uint32_t place)
{
    pthread_mutex_lock(&mutex);
    domus_address address = crowd[place % DOMT_STORM_CROWD];
    pthread_mutex_unlock(&mutex);
    return address;
}
