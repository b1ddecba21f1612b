/* SPDX-License-Identifier: MIT */
/* The names of the functions of a build.  A text is stored once, however many builds have it. */
#ifndef HOTFN_COLLECTOR_NAMES_H
#define HOTFN_COLLECTOR_NAMES_H

#include "build_map.h"

/* Store names for the functions of a build that have none yet, or (replace) for all: the names of a
 * registered build are better than those of a stripped program.  False if the database failed. */
bool store_names(store *s, build_map *map, const wire_run *names, bool replace);

#endif
