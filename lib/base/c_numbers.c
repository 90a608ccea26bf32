/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/c_numbers.h"

struct c_numbers c_numbers_begin(void)
{
    struct c_numbers numbers = {0};
    locale_t copy = duplocale(uselocale((locale_t)0));
    numbers.own = copy ? newlocale(LC_NUMERIC_MASK, "C", copy) : (locale_t)0;
    if (numbers.own)
        numbers.before = uselocale(numbers.own);
    else if (copy)
        freelocale(copy);
    return numbers;
}

void c_numbers_end(struct c_numbers *numbers)
{
    if (!numbers->own)
        return;
    uselocale(numbers->before);
    freelocale(numbers->own);
    numbers->own = (locale_t)0;
}
