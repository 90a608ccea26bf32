/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/kube/proxy.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/base/cleanup.h"

#define PLACE_MAX 320 /* bytes of host and port: a name has at most 253 */

struct place { /* where a server listens */
    char host[PLACE_MAX], port[8];
};

struct address {
    size_t length; /* bytes; 0: none */
    unsigned char bytes[16];
};

static const char *variable(const char *name, const char *lower)
{
    const char *value = getenv(name);
    return value && *value ? value : getenv(lower);
}

void proxy_read_variables(struct proxy_variables *ret_variables)
{
    ret_variables->http = variable("HTTP_PROXY", "http_proxy");
    ret_variables->https = variable("HTTPS_PROXY", "https_proxy");
    ret_variables->except = variable("NO_PROXY", "no_proxy");
}

/* ---- where the server is ---- */

static struct address address_of(const char *text)
{
    struct address address = {0};
    if (inet_pton(AF_INET, text, address.bytes) == 1)
        address.length = 4;
    else if (inet_pton(AF_INET6, text, address.bytes) == 1)
        address.length = 16;
    return address;
}

/* HOST[:PORT], [ADDRESS][:PORT] or an IPv6 address, in place. */
static void split_port(char *text, const char **ret_host, const char **ret_port)
{
    char *close = text[0] == '[' ? strchr(text, ']') : NULL, *colon = strchr(text, ':');
    *ret_host = text;
    *ret_port = "";
    if (close) {
        *ret_host = text + 1;
        *close = '\0';
        colon = close[1] == ':' ? close + 1 : NULL;
    } else if (colon && strchr(colon + 1, ':')) {
        colon = NULL;
    }
    if (colon) {
        *colon = '\0';
        *ret_port = colon + 1;
    }
}

/* False for what is no URL with a host that a proxy's exceptions could name. */
static bool read_place(const char *server, struct place *ret_place)
{
    const char *scheme_end = strstr(server, "://"), *host, *port;
    char text[PLACE_MAX];
    if (!scheme_end)
        return false;
    const char *from = scheme_end + 3;
    size_t length = strcspn(from, "/?#");
    const char *at = memrchr(from, '@', length);
    if (at) {
        length -= (size_t)(at + 1 - from);
        from = at + 1;
    }
    if (length == 0 || length >= sizeof text)
        return false;
    for (size_t i = 0; i < length; i++)
        text[i] = (char)tolower((unsigned char)from[i]);
    text[length] = '\0';
    split_port(text, &host, &port);
    if (!*port)
        port = strncasecmp(server, "https:", 6) == 0 ? "443" : "80";
    snprintf(ret_place->host, sizeof ret_place->host, "%s", host);
    return (size_t)snprintf(ret_place->port, sizeof ret_place->port, "%s", port) <
           sizeof ret_place->port;
}

static bool is_this_machine(const char *host)
{
    static const unsigned char loopback[16] = {[15] = 1};
    struct address address = address_of(host);
    if (address.length == 4)
        return address.bytes[0] == 127;
    return strcmp(host, "localhost") == 0 ||
           (address.length == 16 && memcmp(address.bytes, loopback, sizeof loopback) == 0);
}

/* ---- exceptions ---- */

static bool same_bits(const struct address *one, const struct address *two, unsigned bits)
{
    unsigned whole = bits / 8, rest = bits % 8;
    if (one->length != two->length || memcmp(one->bytes, two->bytes, whole) != 0)
        return false;
    return rest == 0 || (one->bytes[whole] ^ two->bytes[whole]) >> (8 - rest) == 0;
}

/* ADDRESS/BITS, split at its slash. */
static bool is_network_of(const char *network, const char *bits, const struct address *address)
{
    struct address base = address_of(network);
    size_t digits = strspn(bits, "0123456789");
    unsigned long count = strtoul(bits, NULL, 10);
    return base.length > 0 && digits > 0 && !bits[digits] && count <= 8 * base.length &&
           same_bits(&base, address, (unsigned)count);
}

/* example.com: this host and those below it; .example.com and *.example.com: those below it. */
static bool is_domain_of(const char *domain, const char *host)
{
    domain += strncmp(domain, "*.", 2) == 0;
    size_t own = strlen(domain), whole = strlen(host);
    if (own == 0 || own > whole || strcmp(host + whole - own, domain) != 0)
        return false;
    return domain[0] == '.' ? own < whole : own == whole || host[whole - own - 1] == '.';
}

/* entry: in lower case, which is changed. */
static bool is_exception(char *entry, const struct place *place)
{
    const char *host, *port;
    struct address address = address_of(place->host);
    char *slash = strchr(entry, '/');
    if (strcmp(entry, "*") == 0)
        return true;
    if (slash) {
        *slash = '\0';
        return is_network_of(entry, slash + 1, &address);
    }
    split_port(entry, &host, &port);
    if (*port && strcmp(port, place->port) != 0)
        return false;
    struct address own = address_of(host);
    if (own.length > 0)
        return same_bits(&own, &address, 8 * (unsigned)own.length);
    return address.length == 0 && is_domain_of(host, place->host);
}

/* Separated by commas, with blanks around them. -1: out of memory. */
static int is_excepted(const char *list, const struct place *place, bool *ret_is)
{
    cleanup_free char *copy = strdup(list);
    char *rest = copy;
    *ret_is = false;
    if (!copy)
        return -1;
    for (char *c = copy; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    for (char *entry; !*ret_is && (entry = strsep(&rest, ","));) {
        entry += strspn(entry, " \t\r\n");
        size_t length = strlen(entry);
        while (length && isspace((unsigned char)entry[length - 1]))
            entry[--length] = '\0';
        *ret_is = *entry && is_exception(entry, place);
    }
    return 0;
}

/* ---- the proxy ---- */

/* Go lets the proxy resolve names, libcurl's socks5 does not. */
char *proxy_for_curl(const char *url)
{
    char *text = NULL;
    if (strncasecmp(url, "socks5://", 9) != 0)
        return strdup(url);
    return asprintf(&text, "socks5h://%s", url + 9) < 0 ? NULL : text;
}

char *proxy_of(const char *server, const struct proxy_variables *variables)
{
    struct place place;
    bool is_tls = strncasecmp(server, "https://", 8) == 0, excepted = false;
    const char *proxy = is_tls ? variables->https : variables->http;
    if (!proxy || !*proxy)
        return strdup("");
    if (read_place(server, &place)) {
        if (is_this_machine(place.host))
            return strdup("");
        if (variables->except && is_excepted(variables->except, &place, &excepted) < 0)
            return NULL;
    }
    return excepted ? strdup("") : proxy_for_curl(proxy);
}
