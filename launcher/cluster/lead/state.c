/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cluster/lead/private.h"

bool lead_is_stopped(const struct lead *lead)
{
    return lead->stop.signo || lead->stop.lost.code;
}

const struct prediction *lead_prediction(const struct lead *lead)
{
    return lead->forecast ? forecast_prediction(lead->forecast, lead->gang.step) : NULL;
}
