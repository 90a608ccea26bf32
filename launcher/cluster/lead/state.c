/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/lead/private.h"

#define ANSWER_MS 2000 /* most come within a tenth of a second */

bool lead_is_stopped(const struct lead *lead)
{
    return lead->stop.signo || lead->stop.lost.code;
}

static bool is_reading(const struct lead *lead)
{
    return (lead->forecast && forecast_is_looking(lead->forecast)) ||
           pod_group_is_reading(&lead->group);
}

void lead_begin_read(struct lead *lead)
{
    if (!is_reading(lead))
        lead->asked_ms = lead_now();
}

int64_t lead_answer_ms(const struct lead *lead)
{
    return is_reading(lead) ? lead->asked_ms + ANSWER_MS : 0;
}

const struct prediction *lead_prediction(const struct lead *lead)
{
    return lead->forecast ? forecast_prediction(lead->forecast, lead->gang.step) : NULL;
}
