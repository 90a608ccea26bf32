/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/terminal.h"

#include <sys/ioctl.h>

unsigned terminal_columns(int fd)
{
    struct winsize size;
    return ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}
