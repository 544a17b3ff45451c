/* Reports of the doctor: its findings as text for people and as JSON. */
#ifndef DOMI_PROTOCOLS_OBSERVE_DOCTOR_REPORT_H
#define DOMI_PROTOCOLS_OBSERVE_DOCTOR_REPORT_H

#include "protocols/observe/doctor/rule.h"

/* A function of the caller that takes a piece of a report. */
typedef void domi_report_sink(void *context, const char *text, size_t size);

typedef struct domi_report {
    domi_report_sink *sink;
    void *context;
} domi_report;

/* Write all findings of the doctor in a span as text. */
void domi_report_findings_as_text(const domi_report *to, const domi_span *span,
                                  const domi_finding *findings, uint32_t count);

/* Write one finding of a span as text, with an empty line before it. */
void domi_report_finding_as_text(const domi_report *to, const domi_finding *finding);

/* Write the findings of a span as one JSON object in a line:
 *
 *   {"program": "shop", "pid": 7, "seconds": 10.0,
 *    "findings": [{"rule": "mailbox-full", "harm": "loss", "sentence": "...", "limit": "...",
 *                  "keys": "scheduler.mailboxMax",
 *                  "change": ["scheduler: {mailboxMax: 4096}", "# and ..."]}]} */
void domi_report_findings_as_json(const domi_report *to, const domi_span *span,
                                  const domi_finding *findings, uint32_t count);

/* Returns the word for a harm: "loss", "delay" or "cost". */
const char *domi_word_of_harm(domi_harm harm);

#endif
