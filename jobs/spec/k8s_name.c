/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/spec/k8s_name.h"

#include <stddef.h>
#include <string.h>

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

static bool is_alnum(char c)
{
    return c != '\0' && strchr(LOWER UPPER DIGITS, c);
}

static bool label(const char *text, size_t length)
{
    return length > 0 && length <= K8S_LABEL_MAX && strspn(text, LOWER DIGITS "-") >= length &&
           text[0] != '-' && text[length - 1] != '-';
}

/* Letters, digits and inner "-", "_", ".". */
static bool qualified_name(const char *text, size_t length)
{
    return length > 0 && length <= K8S_LABEL_MAX &&
           strspn(text, LOWER UPPER DIGITS "-_.") >= length && is_alnum(text[0]) &&
           is_alnum(text[length - 1]);
}

static bool subdomain(const char *text, size_t length)
{
    if (length == 0 || length > K8S_SUBDOMAIN_MAX)
        return false;
    for (const char *end = text + length; text <= end;) {
        const char *point = memchr(text, '.', (size_t)(end - text));
        size_t n = (size_t)((point ? point : end) - text);
        /* subdomains bound the whole only */
        if (n == 0 || strspn(text, LOWER DIGITS "-") < n || text[0] == '-' || text[n - 1] == '-')
            return false;
        text += n + 1;
    }
    return true;
}

bool k8s_is_label(const char *text)
{
    return label(text, strlen(text));
}

bool k8s_is_subdomain(const char *text)
{
    return subdomain(text, strlen(text));
}

bool k8s_is_qualified(const char *text)
{
    const char *slash = strchr(text, '/');
    if (!slash)
        return qualified_name(text, strlen(text));
    return subdomain(text, (size_t)(slash - text)) && qualified_name(slash + 1, strlen(slash + 1));
}

bool k8s_is_domain_path(const char *text)
{
    const char *slash = strchr(text, '/');
    return slash && subdomain(text, (size_t)(slash - text)) && slash[1] &&
           slash[strspn(slash, LOWER UPPER DIGITS "/-._~%!$&'()*+,;=:")] == '\0';
}

bool k8s_is_label_value(const char *text)
{
    return !*text || qualified_name(text, strlen(text));
}

bool k8s_is_device_name(const char *text)
{
    const char *slash = strchr(text, '/'), *id = slash ? slash + 1 : text;
    if (slash && (slash - text > K8S_DEVICE_DOMAIN_MAX || !subdomain(text, (size_t)(slash - text))))
        return false;
    return strlen(id) <= K8S_DEVICE_ID_MAX && k8s_is_env_name(id);
}

bool k8s_is_env_name(const char *text)
{
    return *text && !strchr(DIGITS, *text) && text[strspn(text, LOWER UPPER DIGITS "_")] == '\0';
}
