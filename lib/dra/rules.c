/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/dra/predict_private.h"

struct predict_rules predict_rules_of(unsigned minor)
{
    bool before_37 = minor != 0 && minor < 37;
    return (struct predict_rules){
        .distinct_from_latest = before_37,
        .losses_stay = before_37,
        .all_needs_room = before_37,
        .counters_everywhere = before_37,
        .use_by_capacity = before_37,
        .counters_by_name = before_37,
        .whole_capacity = before_37,
    };
}
