/* SPDX-License-Identifier: MIT */
/* The command line and the configuration file, whose lines are the long options: `listen = ...`. */
#ifndef HOTFN_COLLECTOR_OPTIONS_H
#define HOTFN_COLLECTOR_OPTIONS_H

#include "server.h"

typedef struct collector_options {
    server_options server;
    char listen[64], data[4096], certificate[4096], key[4096];
    clickhouse_options clickhouse;
    char **command; /* the words after the options: "token add", ...; NULL-terminated */
} collector_options;

/* Returns -1 to continue, else the exit status. */
int read_options(collector_options *o, int argc, char **argv);

#endif
