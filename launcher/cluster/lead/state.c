/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/lead/private.h"

#define ANSWER_MS 2000 /* most come within a tenth of a second */

bool lead_is_stopped(const struct lead *lead)
{
    return lead->stop.signo || lead->stop.lost.code;
}

int64_t lead_answer_ms(const struct lead *lead)
{
    bool reading = (lead->forecast && forecast_is_looking(lead->forecast)) ||
                   pod_group_is_reading(&lead->group);
    return reading ? lead->asked_ms + ANSWER_MS : 0;
}

const struct prediction *lead_prediction(const struct lead *lead)
{
    return lead->forecast ? forecast_prediction(lead->forecast, lead->gang.step) : NULL;
}
