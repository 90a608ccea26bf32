/* SPDX-License-Identifier: Apache-2.0 */
/* Which proxy leads to an API server, as kubectl finds it (golang.org/x/net/http/httpproxy): what
 * libcurl makes of the same variables differs. Pure. */
#ifndef DRARUN_KUBE_PROXY_H
#define DRARUN_KUBE_PROXY_H

struct proxy_variables { /* of the environment; NULL: not set */
    const char *http, *https, *except;
};

/* HTTP_PROXY, HTTPS_PROXY and NO_PROXY, or else their names in lower case. Borrowed from it. */
void proxy_read_variables(struct proxy_variables *ret_variables);
/* The proxy to this URL as libcurl takes it, a new text; "": none. Hosts of this machine are
 * reached without one. NULL: out of memory. */
char *proxy_of(const char *server, const struct proxy_variables *variables);
/* A proxy's URL as kubeconfigs and the variables have it, as libcurl takes it. NULL: out of
 * memory. */
char *proxy_for_curl(const char *url);

#endif
